// The order of findings, merging of duplicates, and when two findings are the same defect.
#include <algorithm>
#include <tuple>

#include "validator/findings/finding.h"

namespace assay {
namespace {

auto SiteKey(const SourceSite& site) {
  return std::tie(site.file, site.line, site.ptx_line, site.column);
}

/// Where a person looks: the source line where there is one, the PTX line otherwise.
std::tuple<std::string_view, std::uint32_t> LineKey(const SourceSite& site) {
  if (site.line != 0) return {site.file, site.line};
  return {"", site.ptx_line};
}

// Block z first, as blocks are numbered in a grid.
auto ThreadKey(const ThreadId& id) {
  return std::tuple(id.block[2], id.block[1], id.block[0], id.thread[2], id.thread[1],
                    id.thread[0]);
}

int CompareAccesses(const Finding& a, const Finding& b) {
  const std::size_t common = std::min(a.accesses.size(), b.accesses.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (SiteKey(a.accesses[i].site) != SiteKey(b.accesses[i].site)) {
      return SiteKey(a.accesses[i].site) < SiteKey(b.accesses[i].site) ? -1 : 1;
    }
  }
  if (a.accesses.size() != b.accesses.size()) return a.accesses.size() < b.accesses.size() ? -1 : 1;
  for (std::size_t i = 0; i < common; ++i) {
    if (ThreadKey(a.accesses[i].thread) != ThreadKey(b.accesses[i].thread)) {
      return ThreadKey(a.accesses[i].thread) < ThreadKey(b.accesses[i].thread) ? -1 : 1;
    }
  }
  return 0;
}

std::tuple<std::string_view, std::string_view, std::int64_t, std::uint64_t> MemoryKey(
    const Finding& finding) {
  if (!finding.memory) return {};
  return {finding.memory->space, finding.memory->buffer, finding.memory->index,
          finding.memory->address};
}

std::tuple<std::string_view, std::vector<std::int64_t>> ElementKey(const Finding& finding) {
  if (!finding.element) return {};
  return {finding.element->output, finding.element->index};
}

bool Before(const Finding& a, const Finding& b) {
  if (a.kind != b.kind) return a.kind < b.kind;
  if (const int order = CompareAccesses(a, b); order != 0) return order < 0;
  if (MemoryKey(a) != MemoryKey(b)) return MemoryKey(a) < MemoryKey(b);
  if (ElementKey(a) != ElementKey(b)) return ElementKey(a) < ElementKey(b);
  return a.message < b.message;
}

/// A line that the compiler unrolled is one place for its author.
bool SameSites(const Finding& a, const Finding& b) {
  return std::ranges::equal(a.accesses, b.accesses, [](const Access& x, const Access& y) {
    return LineKey(x.site) == LineKey(y.site) && x.what == y.what;
  });
}

/// Findings about output elements have no sites: different outputs are different defects.
bool SameSubject(const Finding& a, const Finding& b) {
  if (a.element.has_value() != b.element.has_value()) return false;
  if (a.element && a.element->output != b.element->output) return false;
  const bool located = !a.accesses.empty();
  if (!located && a.memory.has_value() && b.memory.has_value())
    return a.memory->buffer == b.memory->buffer;
  return located || a.message == b.message || a.element.has_value();
}

}  // namespace

void SortAndMerge(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, Before);
  std::vector<Finding> merged;
  for (Finding& finding : findings) {
    const auto twin = std::ranges::find_if(merged, [&](const Finding& other) {
      return other.kind == finding.kind && SameSites(other, finding) && SameSubject(other, finding);
    });
    if (twin == merged.end()) {
      merged.push_back(std::move(finding));
      continue;
    }
    for (std::size_t i = 0; i < twin->accesses.size(); ++i)
      twin->accesses[i].threads += finding.accesses[i].threads;
    // The order that is missing is the one that all copies need.
    if (RaceReachOf(finding) > RaceReachOf(*twin)) {
      twin->missing = std::move(finding.missing);
      twin->statistics = std::move(finding.statistics);
    }
  }
  findings = std::move(merged);
}

RaceReach RaceReachOf(const Finding& finding) {
  const auto found = std::ranges::find(finding.statistics, kRaceReach, &Statistic::name);
  if (found == finding.statistics.end() || !(found->value >= 1 && found->value <= 3))
    return RaceReach::kUnknown;
  return static_cast<RaceReach>(static_cast<int>(found->value));
}

Statistic StatisticOf(RaceReach reach) {
  constexpr std::string_view kNotes[] = {"not known", "lanes of one warp", "warps of one block",
                                         "threads of different blocks"};
  const auto index = static_cast<std::size_t>(reach);
  return {.name = std::string(kRaceReach),
          .value = static_cast<double>(index),
          .limit = 0,
          .note = std::string(kNotes[index])};
}

bool SameDefect(const Finding& a, const Finding& b) {
  if (a.kind != b.kind) return false;
  if (a.element && b.element) return a.element->output == b.element->output;
  std::vector<std::tuple<std::string_view, std::uint32_t>> lines_a, lines_b;
  for (const Access& access : a.accesses) lines_a.push_back(LineKey(access.site));
  for (const Access& access : b.accesses) lines_b.push_back(LineKey(access.site));
  // Which side of a race is named first depends on the schedule.
  std::ranges::sort(lines_a);
  std::ranges::sort(lines_b);
  if (lines_a != lines_b) return false;
  if (!lines_a.empty()) return true;
  return !a.memory || !b.memory || a.memory->buffer == b.memory->buffer;
}

}  // namespace assay

// What the buffers say after the runs: outputs left unwritten, results that depend on the schedule.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "validator/sanitize/parts.h"

namespace assay::sanitize {
namespace {

using Role = ops::SanitizeBuffer::Role;

MemoryPlace PlaceOf(const ops::SanitizeBuffer& buffer, std::int64_t index) {
  MemoryPlace place;
  place.space = "global";
  place.buffer = buffer.name;
  place.index = index;
  place.elements = static_cast<std::uint64_t>(buffer.elements);
  place.bytes = static_cast<std::uint32_t>(SizeOf(buffer.dtype));
  return place;
}

std::string ValueAt(const ops::SanitizeBuffer& buffer, const SharedMemory& memory,
                    std::int64_t index) {
  const std::byte* const element =
      memory.bytes().data() + static_cast<std::size_t>(index) * SizeOf(buffer.dtype);
  return IsFloat(buffer.dtype) ? fmt::format("{:.9g}", LoadAsDouble(buffer.dtype, element))
                               : fmt::format("{}", LoadAsInt64(buffer.dtype, element));
}

/// Outputs, what is saved, and where neither is named all that is not said to be scratch.
bool IsResult(const ops::SanitizePlan& plan, const ops::SanitizeBuffer& buffer) {
  if (buffer.may_differ) return false;
  if (buffer.save || buffer.role == Role::kOutput) return true;
  const bool names_results = std::ranges::any_of(plan.buffers, [](const auto& each) {
    return each.save.has_value() || each.role == Role::kOutput;
  });
  return !names_results && buffer.role == Role::kPlain;
}

/// True when something else says why bytes of `buffer` are undefined.
bool Explained(const std::string& buffer, const Report& report) {
  return std::ranges::any_of(report.findings, [&](const Finding& finding) {
    if (FamilyOf(finding.kind) == "race") return true;
    return finding.kind == FindingKind::kUninitialisedUse && finding.memory &&
           finding.memory->buffer == buffer;
  });
}

/// "reversed order, seed 3": what replays a schedule.
std::string Describe(const Schedule& schedule) {
  return fmt::format(
      "in {} order, seed {}{}{}", ToJson(schedule)["policy"].get<std::string>(), schedule.seed,
      schedule.stale == 0 ? std::string() : fmt::format(", {} % old values", schedule.stale),
      schedule.hold ? ", one pair the other way round" : "");
}

/// Lines and the missing order, from what the plain run noted: float sums in this buffer, then sums
/// anywhere, then whoever saw who came first: `guilty`, where that is known, or else those of this
/// buffer before others.
void Explain(const OrderReport& order, const std::string& buffer, const Finding* guilty,
             Finding& finding) {
  const auto here = [&](const Finding& each) {
    return each.memory && each.memory->buffer == buffer;
  };
  const Finding* why = nullptr;
  for (const auto* facts : {&order.sums, &order.contests}) {
    if (why == nullptr && !facts->empty()) {
      const auto at = std::ranges::find_if(*facts, here);
      const bool known = guilty != nullptr && facts == &order.contests;
      why = known ? guilty : at != facts->end() ? &*at : &facts->front();
    }
  }
  if (why == nullptr) {
    finding.cause = "what stays there depends on the order in which blocks and warps come";
    return;
  }
  finding.accesses = why->accesses;
  finding.missing = why->missing;
  finding.cause = why->message;
}

/// Old reads that a finding is made of: those that come after have others to thank.
constexpr std::size_t kBlamed = 2;

}  // namespace

std::vector<Finding> Unwritten(const ops::SanitizePlan& plan, const Report& report) {
  std::vector<Finding> findings;
  if (report.stop != Stop::kCompleted) return findings;
  for (std::size_t i = 0; i < plan.buffers.size() && i < report.unwritten_bytes.size(); ++i) {
    const ops::SanitizeBuffer& buffer = plan.buffers[i];
    if (buffer.role != Role::kOutput || report.unwritten_bytes[i] == 0 ||
        Explained(buffer.name, report))
      continue;
    Finding finding;
    finding.kind = FindingKind::kUnwrittenOutput;
    const std::uint64_t size = SizeOf(buffer.dtype);
    finding.message = fmt::format(
        "{} of the {} elements of the output '{}' were never written; the first one is {}[{}]",
        (report.unwritten_bytes[i] + size - 1) / size, buffer.elements, buffer.name, buffer.name,
        report.first_unwritten[i]);
    finding.memory = PlaceOf(buffer, report.first_unwritten[i]);
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> OrderedSums(const ops::SanitizePlan& plan, const Report& report) {
  std::vector<Finding> findings;
  for (const Finding& sum : report.order.sums) {
    const bool result = std::ranges::any_of(plan.buffers, [&](const auto& buffer) {
      return sum.memory && sum.memory->buffer == buffer.name && IsResult(plan, buffer);
    });
    if (result) findings.push_back(sum);
  }
  return findings;
}

std::vector<Finding> Blame(const Report& report, const std::string& consequence) {
  std::vector<Finding> findings(
      report.stale_reads.begin(),
      report.stale_reads.begin() +
          static_cast<std::ptrdiff_t>(std::min(kBlamed, report.stale_reads.size())));
  for (Finding& finding : findings)
    finding.cause =
        fmt::format("of the runs with and without such a read, only that one: {}", consequence);
  return findings;
}

std::vector<Finding> Differences(const ops::SanitizePlan& plan, const Run& plain, const Run& other,
                                 const Finding* guilty) {
  std::vector<Finding> findings =
      DifferentBits(plan, {Describe(plain.schedule), &plain.buffers},
                    {Describe(other.schedule), &other.buffers}, FindingKind::kNondeterministic);
  for (Finding& finding : findings) {
    if (finding.memory) Explain(plain.report.order, finding.memory->buffer, guilty, finding);
  }
  return findings;
}

std::vector<Finding> DifferentBits(const ops::SanitizePlan& plan, const Ending& one,
                                   const Ending& other, FindingKind kind) {
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const ops::SanitizeBuffer& buffer = plan.buffers[i];
    if (!IsResult(plan, buffer)) continue;
    const SharedMemory &here = (*one.buffers)[i], &there = (*other.buffers)[i];
    const auto first = std::ranges::mismatch(here.bytes(), there.bytes()).in1;
    if (first == here.bytes().end()) continue;
    const auto index =
        (first - here.bytes().begin()) / static_cast<std::int64_t>(SizeOf(buffer.dtype));
    Finding finding;
    finding.kind = kind;
    finding.message = fmt::format("{}[{}] is {} ({}) and {} ({})", buffer.name, index,
                                  ValueAt(buffer, here, index), one.how,
                                  ValueAt(buffer, there, index), other.how);
    finding.memory = PlaceOf(buffer, index);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace assay::sanitize

#include "validator/gates/tool_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace assay::gates {
namespace {

constexpr std::string_view kMark = "=========";
constexpr std::size_t kMostFindings = 3;
constexpr std::size_t kMostDetails = 4;
constexpr std::size_t kMostWords = 600;

struct Row {
  std::string_view tool;
  std::string_view begins;
  FindingKind kind;
};
constexpr Row kRows[] = {
    {"memcheck", "Invalid __", FindingKind::kOutOfBounds},
    {"memcheck", "Out-of-range Shared or Local Address", FindingKind::kOutOfBounds},
    {"memcheck", "Misaligned Shared or Local Address", FindingKind::kMisaligned},
    {"initcheck", "Uninitialized __global__ memory read", FindingKind::kUninitialisedUse},
    {"racecheck", "Error: Race reported", FindingKind::kDataRace},
    {"racecheck", "Error: Potential", FindingKind::kDataRace},
    {"synccheck", "Barrier error detected. Divergent", FindingKind::kBarrierDivergence},
    {"synccheck", "Barrier error detected. Invalid", FindingKind::kBarrierMisuse},
};
constexpr std::string_view kSummaries[] = {"ERROR SUMMARY:", "RACECHECK SUMMARY:"};

struct Line {
  std::string_view text;  ///< Without mark and indentation.
  bool detail = false;    ///< Indented: belongs to the one above it.
};

std::optional<Line> Read(std::string_view line) {
  const std::size_t mark = line.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  line.remove_prefix(mark + kMark.size());
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find_last_not_of(" \t\r");
  return Line{.text = line.substr(begin, end + 1 - begin), .detail = begin > 1};
}

}  // namespace

ToolWords ReadToolWords(std::string_view tool, std::string_view text, const ToolContext& context) {
  ToolWords words;
  Finding* last = nullptr;
  std::size_t details = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::optional<Line> line = Read(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line) continue;
    if (std::ranges::any_of(kSummaries, [&](auto known) { return line->text.starts_with(known); }))
      words.complete = true;
    if (line->detail) {
      if (last == nullptr || details++ >= kMostDetails) continue;
      // What is wrong with an address stands below the access.
      if (line->text.find("is misaligned") != std::string_view::npos)
        last->kind = FindingKind::kMisaligned;
      last->message += "; " + OneLine(line->text, kMostWords);
      continue;
    }
    last = nullptr;
    const auto row = std::ranges::find_if(kRows, [&](const Row& each) {
      return each.tool == tool && line->text.starts_with(each.begins);
    });
    if (row == std::end(kRows) || words.findings.size() >= kMostFindings) continue;
    if (context.partial_copies && line->text.starts_with("Invalid __global__ read")) continue;
    last = &words.findings.emplace_back();
    details = 0;
    last->kind = row->kind;
    last->message =
        fmt::format("compute-sanitizer's {}: {}", tool, OneLine(line->text, kMostWords));
  }
  return words;
}

}  // namespace assay::gates

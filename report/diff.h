// What changed between two texts, line by line: the shortest edit (Myers, "An O(ND) difference algorithm and its variations",
// 1986), bounded.
//
//   for (const Change& change : Diff(before, after)) ...                    every line, with where it stands
//   for (const Hunk& hunk : Hunks(changes, 3)) ...                          what changed, with three lines around it
//
// Cost: lines times edits, both bounded; texts that differ in more than kMostEdits lines between their common head and tail are
// taken as replaced there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay::report {

enum class ChangeKind : std::uint8_t { kSame, kRemoved, kAdded };

struct Change {
  ChangeKind kind = ChangeKind::kSame;
  std::size_t before = 0;  ///< 1-based line in the text before; 0 where it was added.
  std::size_t after = 0;   ///< The same in the text after; 0 where it was removed.
  std::string_view text;   ///< Of the text that was passed in.
  bool operator==(const Change&) const = default;
};

inline constexpr std::size_t kMostEdits = 1500;

std::vector<Change> Diff(std::string_view before, std::string_view after);

struct Counts {
  std::size_t added = 0, removed = 0;
};
Counts CountsOf(std::span<const Change> changes);

/// Changed lines that belong together, with up to `context` unchanged ones on each side.
using Hunk = std::span<const Change>;
std::vector<Hunk> Hunks(std::span<const Change> changes, std::size_t context);

}  // namespace assay::report

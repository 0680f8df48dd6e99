#include "report/diff.h"

#include <algorithm>

#include "base/text.h"

namespace assay::report {
namespace {

using Lines = std::span<const std::string_view>;

// Is line i (of the lines before, or after) part of the shortest edit? Empty where there are more than kMostEdits.
struct Edited {
  std::vector<bool> removed, added;
};

// The furthest-reaching path of each diagonal for each number of edits, then the way back.
bool ShortestEdit(Lines before, Lines after, Edited& edited) {
  const auto n = static_cast<std::ptrdiff_t>(before.size());
  const auto m = static_cast<std::ptrdiff_t>(after.size());
  const std::ptrdiff_t most = std::min(n + m, static_cast<std::ptrdiff_t>(kMostEdits));
  const std::ptrdiff_t width = 2 * most + 3;
  std::vector<std::ptrdiff_t> reach(static_cast<std::size_t>(width), 0);
  const auto at = [&](std::vector<std::ptrdiff_t>& row,
                      std::ptrdiff_t diagonal) -> std::ptrdiff_t& {
    return row[static_cast<std::size_t>(diagonal + most + 1)];
  };
  const auto down = [&](std::vector<std::ptrdiff_t>& row, std::ptrdiff_t k, std::ptrdiff_t d) {
    return k == -d || (k != d && at(row, k - 1) < at(row, k + 1));
  };
  // Row d holds diagonals -d..d, as they were before d edits were made.
  std::vector<std::vector<std::ptrdiff_t>> rows;
  const auto back = [&](std::ptrdiff_t d) {
    std::ptrdiff_t x = n, y = m;
    for (; d > 0; --d) {
      std::vector<std::ptrdiff_t>& kept = rows[static_cast<std::size_t>(d)];
      const auto of = [&](std::ptrdiff_t k) { return kept[static_cast<std::size_t>(k + d + 1)]; };
      const std::ptrdiff_t k = x - y;
      const bool was_down = k == -d || (k != d && of(k - 1) < of(k + 1));
      const std::ptrdiff_t from = was_down ? k + 1 : k - 1;
      x = of(from);
      y = x - from;
      if (was_down) {
        edited.added[static_cast<std::size_t>(y)] = true;
      } else {
        edited.removed[static_cast<std::size_t>(x)] = true;
      }
    }
  };
  for (std::ptrdiff_t d = 0; d <= most; ++d) {
    rows.emplace_back(reach.begin() + (most - d), reach.begin() + (most + d + 3));
    for (std::ptrdiff_t k = -d; k <= d; k += 2) {
      std::ptrdiff_t x = d == 0 ? 0 : down(reach, k, d) ? at(reach, k + 1) : at(reach, k - 1) + 1;
      std::ptrdiff_t y = x - k;
      while (x < n && y < m &&
             before[static_cast<std::size_t>(x)] == after[static_cast<std::size_t>(y)])
        ++x, ++y;
      at(reach, k) = x;
      if (x >= n && y >= m) {
        back(d);
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<Change> Diff(std::string_view before_text, std::string_view after_text) {
  const std::vector<std::string_view> before = SplitLines(before_text);
  const std::vector<std::string_view> after = SplitLines(after_text);
  std::size_t head = 0, tail = 0;
  const std::size_t shorter = std::min(before.size(), after.size());
  while (head < shorter && before[head] == after[head]) ++head;
  while (tail < shorter - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
    ++tail;
  Edited edited{.removed = std::vector<bool>(before.size() - head - tail),
                .added = std::vector<bool>(after.size() - head - tail)};
  const Lines middle_before = Lines(before).subspan(head, edited.removed.size());
  const Lines middle_after = Lines(after).subspan(head, edited.added.size());
  if (!ShortestEdit(middle_before, middle_after, edited)) {
    edited.removed.assign(edited.removed.size(), true);
    edited.added.assign(edited.added.size(), true);
  }
  std::vector<Change> changes;
  std::size_t i = 0, j = 0;
  const auto in_middle = [&](const std::vector<bool>& edits, std::size_t line) {
    return line >= head && line - head < edits.size() && edits[line - head];
  };
  while (i < before.size() || j < after.size()) {
    if (i < before.size() && in_middle(edited.removed, i)) {
      changes.push_back({ChangeKind::kRemoved, i + 1, 0, before[i]});
      ++i;
    } else if (j < after.size() && in_middle(edited.added, j)) {
      changes.push_back({ChangeKind::kAdded, 0, j + 1, after[j]});
      ++j;
    } else {
      changes.push_back({ChangeKind::kSame, i + 1, j + 1, after[j]});
      ++i, ++j;
    }
  }
  return changes;
}

Counts CountsOf(std::span<const Change> changes) {
  Counts counts;
  for (const Change& change : changes) {
    counts.added += change.kind == ChangeKind::kAdded;
    counts.removed += change.kind == ChangeKind::kRemoved;
  }
  return counts;
}

std::vector<Hunk> Hunks(std::span<const Change> changes, std::size_t context) {
  std::vector<Hunk> hunks;
  std::size_t i = 0;
  while (i < changes.size()) {
    if (changes[i].kind == ChangeKind::kSame) {
      ++i;
      continue;
    }
    const std::size_t first = i - std::min(i, context);
    std::size_t last = i;  // the last changed line of the hunk
    for (std::size_t k = i + 1; k < changes.size() && k - last <= 2 * context + 1; ++k) {
      if (changes[k].kind != ChangeKind::kSame) last = k;
    }
    const std::size_t end = std::min(changes.size(), last + context + 1);
    hunks.push_back(changes.subspan(first, end - first));
    i = end;
  }
  return hunks;
}

}  // namespace assay::report

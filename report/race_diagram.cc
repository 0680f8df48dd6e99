// Two threads as two lines downwards in the order of the source, an access on each, the barriers that stand between them, and the
// edge that is missing.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "report/highlight.h"
#include "report/sections.h"
#include "report/svg.h"

namespace assay::report {
namespace {

constexpr double kWidth = 340, kLeft = 128, kRight = 212, kTop = 62, kStep = 42;
constexpr std::size_t kMostBarriers = 4;

struct Barrier {
  std::uint32_t line = 0;
  std::string name;
};

// Those of the source from line `low` to `high`, both left out.
std::vector<Barrier> BarriersBetween(std::string_view kernel, std::uint32_t low,
                                     std::uint32_t high) {
  std::vector<Barrier> barriers;
  const std::vector<TokenLine> lines = Highlight(kernel);
  for (std::uint32_t line = low + 1; line < high && line <= lines.size(); ++line) {
    const std::string_view name = BarrierOn(lines[line - 1]);
    if (!name.empty()) barriers.push_back({line, std::string(name) + "()"});
  }
  return barriers;
}

std::string Coordinates(const Dim3& at) { return fmt::format("({}, {}, {})", at[0], at[1], at[2]); }

std::string Label(const Access& access) {
  return fmt::format("{}, line {}", Head(access.what, 18), access.site.line);
}

// What is drawn from top to bottom.
struct Row {
  const Access* left = nullptr;
  const Access* right = nullptr;
  const Barrier* barrier = nullptr;
  bool again = false;  ///< "the next round"
  bool faint = false;  ///< An access that is drawn again further down.
};

class Diagram {
 public:
  Diagram(const Access& one, const Access& two, std::vector<Barrier> barriers, bool round)
      : one_(one), two_(two), barriers_(std::move(barriers)) {
    const bool one_first = one.site.line <= two.site.line;
    const Row first = RowOf(one_first), second = RowOf(!one_first);
    if (one.site.line == two.site.line) {
      rows_ = {{.left = &one_, .right = &two_}};
      return;
    }
    rows_.push_back(first);
    rows_.back().faint = round;
    for (std::size_t i = 0; i < barriers_.size() && i < kMostBarriers; ++i)
      rows_.push_back({.barrier = &barriers_[i]});
    rows_.push_back(second);
    if (!round) return;
    rows_.push_back({.again = true});
    rows_.push_back(first);
  }

  Html Draw(std::string_view description) const {
    const double bottom = kTop + kStep * static_cast<double>(rows_.size());
    Canvas canvas(kWidth, bottom + 4);
    Name(canvas, one_, kLeft);
    Name(canvas, two_, kRight);
    canvas.Line({kLeft, 40}, {kLeft, bottom}, "life");
    canvas.Line({kRight, 40}, {kRight, bottom}, "life");
    std::optional<At> from, to;
    double y = kTop;
    for (const Row& row : rows_) {
      if (row.barrier != nullptr) {
        canvas.Line({kLeft - 8, y}, {kRight + 8, y}, "barrier");
        canvas.Text({kRight + 14, y + 4},
                    fmt::format("{}, {}", row.barrier->name, row.barrier->line), "label");
      }
      if (row.again) {
        canvas.Line({8, y}, {kWidth - 8, y}, "grid");
        canvas.Text({kWidth / 2, y - 5}, "the next round", "middle");
      }
      for (const bool left : {true, false}) {
        const Access* const access = left ? row.left : row.right;
        if (access == nullptr) continue;
        const At at{left ? kLeft : kRight, y};
        if (!row.faint) (from ? to : from) = at;
        if (row.faint) {
          canvas.Circle(at, 4, "fill-soft");
        } else if (access == &one_) {
          canvas.Circle(at, 6, "fill-bad");
        } else {
          canvas.Circle(at, 6, "fill-warn");
        }
        const At place{left ? kLeft - 13 : kRight + 13, y + 4};
        if (left) {
          canvas.Text(place, Label(*access), row.faint ? Literal("end") : Literal("end strong"));
        } else {
          canvas.Text(place, Label(*access),
                      row.faint ? Literal("label") : Literal("label strong"));
        }
      }
      y += kStep;
    }
    if (from && to) MissingEdge(canvas, *from, *to);
    return canvas.Take("Race diagram", description);
  }

 private:
  Row RowOf(bool is_one) const { return is_one ? Row{.left = &one_} : Row{.right = &two_}; }

  static void Name(Canvas& canvas, const Access& access, double x) {
    const bool left = x < kWidth / 2;
    const At first{left ? x + 10 : x - 10, 14}, second{first.x, 30};
    const std::string thread = "thread " + Coordinates(access.thread.thread);
    const std::string block = "block " + Coordinates(access.thread.block);
    if (left) {
      canvas.Text(first, thread, "end strong");
      canvas.Text(second, block, "end");
    } else {
      canvas.Text(first, thread, "label strong");
      canvas.Text(second, block, "label");
    }
  }

  static void MissingEdge(Canvas& canvas, At from, At to) {
    const double dx = to.x - from.x, dy = to.y - from.y;
    canvas.Line({from.x + 0.12 * dx, from.y + 0.12 * dy}, {from.x + 0.88 * dx, from.y + 0.88 * dy},
                "missing-edge");
    const At middle{(from.x + to.x) / 2, (from.y + to.y) / 2};
    canvas.Circle(middle, 9, "fill-paper");
    canvas.Text({middle.x, middle.y + 4}, "✕", "middle bad-text");
  }

  const Access& one_;
  const Access& two_;
  std::vector<Barrier> barriers_;
  std::vector<Row> rows_;
};

}  // namespace

Html RaceDiagram(const Finding& finding, std::string_view kernel) {
  if (FamilyOf(finding.kind) != "race" || finding.accesses.size() != 2) return {};
  const Access& one = finding.accesses[0];
  const Access& two = finding.accesses[1];
  if (one.site.line == 0 || two.site.line == 0 || one.threads == 0 || two.threads == 0) return {};
  const bool same_block = one.thread.block == two.thread.block;
  std::vector<Barrier> barriers;
  // A barrier orders the threads of its block and no others.
  if (same_block) {
    barriers = BarriersBetween(kernel, std::min(one.site.line, two.site.line),
                               std::max(one.site.line, two.site.line));
  }
  // Separated by a barrier in one direction, they race in the other: from the end of a loop to its beginning.
  const bool data_race =
      finding.kind == FindingKind::kDataRace || finding.kind == FindingKind::kSameValueRace;
  const bool round = data_race && !barriers.empty();
  const std::string said =
      finding.missing.empty() ? std::string("nothing orders the two accesses") : finding.missing;
  const Diagram diagram(one, two, std::move(barriers), round);
  Html caption = E("b", {}, "Missing: ");
  caption += Head(said, 300);
  caption +=
      same_block ? "." : ". The threads are of two blocks, which no barrier of a block orders.";
  return E("figure", {}, diagram.Draw(said), E("figcaption", {}, caption));
}

}  // namespace assay::report

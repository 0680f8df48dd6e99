// Outgrown: numbers of the program that grow as the elements of a tensor do, and have no room at shapes too large to run.
//
// What a program's text says of its indices (Decisions, limits) ends where they come from memory: a token's number from a
// list that was sorted, a tile's from a queue. So runs note how large each number became of which an instruction keeps few
// digits (Report::numbers). One that came to the same share of a product of axes at all shapes, rows times columns, does
// so at all others; where that is past what it is kept whole to, its index wraps. Such shapes are tried (wave huge), and
// where none of them could be judged, nobody knows what becomes of it there: the judgement is inconclusive.
//
// Guidance, and a reason not to know; never a finding by itself. Deterministic. Cost: some milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/execution/execution.h"

namespace assay::campaign {

class Outgrowing {
 public:
  struct Outgrown {
    std::uint32_t ptx_line = 0;
    std::uint8_t which = 0;
    std::uint32_t line = 0;          ///< In the author's file, or 0.
    int digits = 0;                  ///< It is kept whole below that power of two.
    std::vector<std::string> along;  ///< It grows as the product of these.
    double share = 0;                ///< Of the product, at least.
    /// Whether it has, or comes so near to it that it may have: where the op's longest axes are not long enough to be sure.
    bool surely = true;
    ops::AxisValues
        axes;  ///< The smallest shape found at which it has outgrown that, by an eighth.
  };

  Outgrowing(const ops::Instance& instance, const ops::LaunchPlan& plan)
      : instance_(instance), plan_(plan) {}

  /// Of a run at these axes that was judged.
  void Add(const ops::AxisValues& axes, const std::vector<NarrowNumber>& numbers);

  /// One for each number, in the order of the text.
  std::vector<Outgrown> Find() const;
  /// Shapes that would show how numbers grow of which what has run does not: lengths of all axes far enough apart, on each
  /// way through the plan on which one was seen to grow.
  std::vector<ops::AxisValues> Wanting() const;
  /// Was it computed in a run that was judged where it has outgrown its format?
  bool IsSeen(const Outgrown& outgrown) const;
  /// "the number at line 14 grows as rows * columns: [rows=65536 columns=73728] ...". Empty where all were seen.
  std::string Unseen() const;

 private:
  struct Shape {
    ops::AxisValues axes;
    std::int64_t elements = 0;
  };
  struct Point {
    std::size_t shape = 0;  ///< Into shapes_.
    std::uint64_t most = 0;
  };
  struct Number {
    std::uint32_t line = 0;
    int digits = 0;
    std::vector<Point> points;
  };
  /// Axes by number: bit i is the i-th that varies.
  using Subset = std::uint32_t;
  struct Growth {
    Subset along = 0;
    double share = 0, spread = 0;
    double low = 0;  ///< The least share that it had.
  };

  std::vector<const ops::Axis*> Axes() const;
  /// `least`: how long each axis is at the shapes that count.
  bool GrowsAs(const Number& number, Subset along, const std::vector<const ops::Axis*>& axes,
               std::span<const std::int64_t> least, Growth& growth) const;
  /// As which product of axes it grows, or nothing.
  std::optional<Growth> GrowthOf(const Number& number,
                                 const std::vector<const ops::Axis*>& axes) const;
  bool IsLaunched(const ops::AxisValues& axes) const;
  /// The smallest shape of the same kernels as one of those that ran at which the product comes to that.
  ops::AxisValues SmallestWith(const Number& number, Subset along, double product,
                               const std::vector<const ops::Axis*>& axes) const;

  const ops::Instance& instance_;
  const ops::LaunchPlan& plan_;
  std::vector<Shape> shapes_;                     ///< Distinct,
  std::map<ops::AxisValues, std::size_t> known_;  ///< and where each is.
  std::map<std::pair<std::uint32_t, std::uint8_t>, Number>
      numbers_;  ///< By line of the PTX, and which.
};

}  // namespace assay::campaign

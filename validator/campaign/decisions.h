// Decisions: where a candidate's program and launch plan compare two values, as functions of a case.
//
// A program's comparison (facts::Decision) is computed here for a shape: parameters are what the plan
// passes, special registers those of the first or of the last thread, loops in their first or second
// turn, or where what they count passes a constant. Each such view of it is a decision of its own. A plan's comparisons, minima and maxima are
// decisions as well: `min(ceil_div(rows, 8), 2112)` compares two numbers at every shape. So are its quotients,
// which make one tile or several.
//
// Where a number may outgrow its format (facts::Decision::limit), the largest one is looked at: that
// of the last thread in the last turn of its loops. A loop may end by another number than the one
// that it counts up besides (a row's index and its first element): both have as many turns. Extents of the plan that are the same at all shapes
// (a grid of 132 blocks) are compared with every axis, as blocks and as threads.
//
// A few last digits that are cut off (`n & 7`) are compared with each number that they can be.
//
// The outcome says which side is larger. What two cases have in common in all outcomes, a program
// that only looks at shapes treats alike; so cases are wanted that differ (reach.h).
//
// For guidance alone: nothing follows from an outcome but which cases run. Cost: a microsecond for a
// decision and a shape. Borrows everything it is made of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/engine/compiler.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// How two values compare: the sign of left - right, and by how much.
struct Outcome {
  int sign = 0;
  double gap = 0;
};

class Decisions {
 public:
  Decisions(const ops::Instance& instance, const ops::LaunchPlan& plan,
            const engine::CompiledKernel& compiled);

  /// A shape with what the plan makes of it.
  struct Point {
    ops::AxisValues axes;  ///< Complete.
    struct Kernel {
      bool runs = false;
      std::vector<std::optional<std::int64_t>> parameters;
      std::array<std::int64_t, 3> grid{}, block{};
    };
    std::vector<Kernel> kernels;  ///< Of the plan.
  };
  /// Nothing for axes that the op does not admit.
  std::optional<Point> At(const ops::AxisValues& axes) const;

  std::size_t size() const { return views_.size(); }
  bool IsOfPlan(std::size_t number) const {
    return (views_[number].expression != nullptr && !views_[number].quotient) ||
           views_[number].axis != nullptr;
  }
  /// Does it come out as `>` where something is cut into several parts?
  bool IsQuotient(std::size_t number) const { return views_[number].quotient; }
  /// Does it come out as `>` where a number outgrows its format?
  bool IsLimit(std::size_t number) const {
    return views_[number].decision != nullptr && views_[number].decision->limit;
  }
  /// The kernel of the plan whose program it is of; none for the plan's own.
  std::optional<std::size_t> KernelOf(std::size_t number) const {
    return views_[number].decision == nullptr ? std::nullopt : std::optional(views_[number].kernel);
  }
  /// Line in the PTX of the branch that it decides, or 0.
  std::uint32_t BranchLine(std::size_t number) const;
  /// The input whose elements it looks at; empty for what hangs on the shape alone.
  const std::string& Input(std::size_t number) const { return views_[number].input; }
  /// Does it look at a number's last digits, so that its outcomes come back in turns?
  bool IsPeriodic(std::size_t number) const { return views_[number].periodic; }
  /// Nothing where it does not come up, or hangs on what is not known. `element` stands for all
  /// elements of the input.
  std::optional<Outcome> Of(std::size_t number, const Point& point, double element = 0) const;
  /// Does it look at nothing in which these points differ, so that it comes out alike?
  bool IsAlike(std::size_t number, const Point& a, const Point& b) const;

  /// Of the threads and turns of the loops of a launch, as far as they were looked at: how many make another integer of a
  /// float than they would have made of the exact number, of how many. None where nothing becomes an integer so.
  struct Misrounding {
    std::size_t wrong = 0, all = 0;
    double share() const {
      return all == 0 ? 0 : static_cast<double>(wrong) / static_cast<double>(all);
    }
  };
  /// Of the number where that is most. `seed`: which threads and turns are looked at, where there are more than `most`.
  Misrounding MisroundedAt(const Point& point, std::size_t most, std::uint64_t seed) const;
  /// Do any floats become integers at which it makes sense to ask for that?
  bool Rounds() const { return !rounded_.empty(); }

  /// A number of the program of which less is kept, at a shape, than it has come to.
  struct Outgrown {
    std::uint32_t line = 0;  ///< In the author's file, or 0.
    int digits = 0;          ///< It is kept whole below this power of two.
  };
  /// The first such number.
  std::optional<Outgrown> OutgrownAt(const ops::AxisValues& axes) const;

 private:
  struct View {
    const ops::Expression* expression = nullptr;
    std::size_t kink = 0;
    bool quotient =
        false;  ///< `kink` counts the expression's quotients instead: one tile, or several.
    const ops::Axis* axis = nullptr;  ///< Compared with `extent`.
    std::int64_t extent = 0;
    const facts::Decision* decision = nullptr;
    /// Of a limit: which of its nodes count, and what ends their loops.
    std::vector<std::pair<std::uint32_t, const facts::Decision*>> loops;
    std::int64_t varied = 0;  ///< Not 0: the one loop that `turn` is of; others are in their first.
    std::size_t kernel = 0;   ///< Of the plan.
    std::int64_t rest = 0;    ///< Of what is cut off a number: compared with this, not with 0.
    std::int64_t turn = 0;
    bool second_way = false;
    bool last_thread = false;
    bool just_past = false;  ///< Of a limit: by no more than it takes.
    bool exactly =
        false;  ///< And by nothing for threads too many: what wraps comes to the very first.
    /// Of a limit: not the number that the last thread comes to, but the last one before its loop's end,
    /// which some thread comes to where all of them together leave out none.
    bool any_thread = false;
    bool of_blocks =
        false;  ///< Of a limit, exactly: no thread and no turn is too many that it may be of.
    bool periodic = false;
    std::string input;
    std::vector<std::size_t> parameters = {};  ///< Of the kernel, that it looks at,
    bool extents = false;                      ///< and whether at its grid and blocks.
  };
  struct ViewContext;
  /// Fills in what a view of the program looks at.
  void NoteWhatIsLookedAt();
  void AddPlan(const ops::LaunchPlan& plan);
  void AddConstantExtents(const ops::LaunchPlan& plan);
  void AddLimits(const facts::Facts& program, const engine::CompiledKernel& compiled);
  void AddRounded(const facts::Facts& program, const engine::CompiledKernel& compiled);
  Misrounding MisroundedBy(const View& view, const Point& point, std::size_t most,
                           std::uint64_t seed) const;
  /// What ends the loop in which a limit's node counts, or null: a comparison of what is counted, or
  /// of what the same loop counts besides.
  static const facts::Decision* EndOf(const facts::Facts& program, const facts::Decision& limit,
                                      std::uint32_t counter);
  /// The last turn of a limit's loops, by node; 0 where it is not known. Of any thread: where it ends,
  /// parts of a turn included.
  std::vector<double> LastTurns(const View& view, const Point& point) const;
  /// What a loop that counts by `step` has added up in that last turn.
  static std::int64_t Counted(const View& view, double turns, std::int64_t step);
  void AddProgram(const facts::Facts& program, const engine::CompiledKernel& compiled);
  /// Turns of loops at which what they count passes a constant, ascending.
  std::vector<std::int64_t> TurnsOfLoops(const facts::Facts& program,
                                         const engine::CompiledKernel& compiled) const;
  std::optional<Outcome> Of(const View& view, const Point& point, double element) const;

  const ops::Instance& instance_;
  const ops::LaunchPlan& plan_;
  std::vector<View> views_;
  std::vector<View> rounded_;  ///< Of Decision::becomes.
};

}  // namespace assay::campaign

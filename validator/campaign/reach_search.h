// The search of reach.h: shapes within the budget and values are picked in reach.cc, what lies beyond it in reach_large.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "validator/campaign/decisions.h"
#include "validator/campaign/outcomes_had.h"
#include "validator/campaign/reach.h"
#include "validator/campaign/reach_values.h"
#include "validator/cases/case.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

class ShapeSearch {
 public:
  ShapeSearch(const ops::Instance& instance, const Decisions& decisions,
              const ReachRequest& request)
      : instance_(instance), decisions_(decisions), request_(request) {
    for (const ops::Axis& axis : instance.op.axes) {
      if (axis.kind == ops::Axis::Kind::kVariable) axes_.push_back(&axis);
    }
    for (std::size_t i = 0; i < decisions.size(); ++i)
      (decisions.Input(i).empty() ? shape_decisions_ : value_decisions_).push_back(i);
  }

  ReachedCases Run();

 private:
  struct Candidate {
    ops::AxisValues axes;
    double cost = 0;
    Outcomes outcomes;
  };

  std::optional<Decisions::Point> PointAt(const ops::AxisValues& axes) const {
    return decisions_.At(axes);
  }

  Outcomes OutcomesAt(const Decisions::Point& point, const std::vector<std::size_t>& of) const {
    Outcomes outcomes;
    outcomes.reserve(of.size());
    for (const std::size_t d : of) outcomes.push_back(CodeOf(decisions_.Of(d, point)));
    return outcomes;
  }

  /// Decisions that agree at all turns are one.
  void KeepDistinct();
  /// The outcomes at shapes that have been tried.
  void MarkTried();
  void AddToPool(const ops::AxisValues& axes);

  /// May all of it run?
  bool Fits(const ops::AxisValues& axes) const {
    return cases::TotalElements(instance_, axes) <= request_.max_elements &&
           request_.cost(axes) <= request_.steps / 4;
  }

  /// Shapes within the budget: the turns, lengths of them two at a time, and small steps past them.
  void FillPool();
  void PickShapes(ReachedCases& reached);
  /// Each outcome of a decision with several tiles along all axes that the plan divides: a numbering of tiles
  /// that goes wrong past the eighth row of them does so where there is more than one column.
  void PickSeveralTiles(ReachedCases& reached);

  cases::Case Make(const ops::AxisValues& axes, std::size_t number, std::string_view recipe) const {
    return cases::MakeCase(instance_, *cases::FindRecipe(recipe), axes, request_.seed + number,
                           "reached");
  }

  double PartCost(const ops::AxisValues& axes) const {
    return request_.part_cost ? request_.part_cost(axes)
                              : static_cast<double>(cases::TotalElements(instance_, axes));
  }

  /// Of the turns at which a decision, by its place in distinct_, comes out so, the least by `cost`, of turns by number; or
  /// null.
  template <class Cost>
  const ops::AxisValues* LeastWith(std::size_t decision, std::uint8_t code,
                                   const Cost& cost) const {
    std::optional<std::size_t> least;
    for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
      if (at_turns_[decision][turn] == code && (!least || cost(turn) < cost(*least))) least = turn;
    }
    return least ? &turns_[*least] : nullptr;
  }

  /// The cheapest turn at which a number has outgrown its format, or null.
  const ops::AxisValues* CheapestPast(std::size_t limit) const;

  /// The smallest turn at which a decision comes out so, or null.
  const ops::AxisValues* SmallestWith(std::size_t decision, std::uint8_t code) const {
    return LeastWith(decision, code, [&](std::size_t turn) { return elements_[turn]; });
  }

  /// The smallest first: what is past at a large one as well has a shape of its own, by no more than it takes.
  void PickPastLimits(ReachedCases& reached);
  /// Outcomes that only shapes beyond the budget have.
  void PickTooLarge(ReachedCases& reached);

  /// Of these lengths of an axis the least with each outcome that changes along it.
  std::vector<std::int64_t> Telling(const ops::Axis& axis, const std::set<std::int64_t>& lengths,
                                    const ops::AxisValues& base) const;

  /// These two axes at lengths that tell something, beyond the budget.
  std::vector<Candidate> LargeAlong(const ops::Axis& a, const ops::Axis& b,
                                    const ops::AxisValues& base) const;

  /// A second turn of blocks, and what only long rows do: neither has to be large, and both are. Only of outcomes that
  /// came before, each with others: what only large shapes have is picked above.
  void PickTogether(ReachedCases& reached);

  std::vector<Place> Places() const;
  void PickValues(ReachedCases& reached);

  const ops::Instance& instance_;
  const Decisions& decisions_;
  const ReachRequest& request_;
  std::vector<const ops::Axis*> axes_;
  std::vector<std::size_t> shape_decisions_;
  std::vector<std::size_t> value_decisions_;
  std::vector<ops::AxisValues> turns_;
  std::vector<std::int64_t> elements_;  ///< By turn.
  std::vector<std::size_t> distinct_;   ///< Decisions whose outcomes are told apart,
  std::vector<Outcomes> at_turns_;      ///< and these, by turn.
  OutcomesHad had_{{}};
  std::vector<Candidate> pool_;
  std::set<ops::AxisValues> pooled_;
  std::vector<std::size_t> picked_;  ///< Into pool_.
};

}  // namespace assay::campaign

#include <algorithm>
#include <set>

#include "validator/cases/shapes.h"

namespace assay::cases {
namespace {

// Nodes of the search tree; each costs about a microsecond.
constexpr int kMaxNodes = 20'000;
constexpr std::size_t kMaxCandidates = 160;

// Backtracking over the variable axes in the op's order, pinned ones first; a constraint is checked
// as soon as all that it depends on is bound.
class Solver {
 public:
  // `bound_last` of the axes that are not pinned is bound last: from both sides of an equality, the
  // side that is computed should be.
  Solver(const ops::OpSpec& op, const ops::AxisValues& pinned, const ops::AxisValues& preferred,
         std::size_t bound_last, int max_nodes)
      : op_(op), pinned_(pinned), preferred_(preferred), max_nodes_(max_nodes) {
    for (const ops::Axis& axis : op.axes) {
      if (axis.kind == ops::Axis::Kind::kVariable) order_.push_back(&axis);
      if (axis.kind == ops::Axis::Kind::kConstant) values_[axis.name] = axis.value;
    }
    const auto rest = std::ranges::stable_partition(
        order_, [&](const ops::Axis* axis) { return pinned.contains(axis->name); });
    if (bound_last < rest.size()) {
      std::rotate(rest.begin() + static_cast<std::ptrdiff_t>(bound_last),
                  rest.begin() + static_cast<std::ptrdiff_t>(bound_last) + 1, rest.end());
    }
    for (const ops::Expression& constraint : op.constraints) {
      std::set<std::string> names;
      CollectVariables(constraint, 0, names);
      std::size_t last = 0;
      for (std::size_t i = 0; i < order_.size(); ++i) {
        if (names.contains(order_[i]->name)) last = i;
      }
      constraints_.push_back({&constraint, last, 0});
      for (const std::int64_t literal : constraint.Literals()) literals_.push_back(literal);
    }
  }

  Result<ops::AxisValues> Solve() {
    if (Descend(0)) {
      ops::AxisValues variables;
      for (const ops::Axis* axis : order_) variables[axis->name] = values_.find(axis->name)->second;
      return variables;
    }
    const auto worst = std::ranges::max_element(constraints_, {}, &Checked::violations);
    const bool blamed = worst != constraints_.end() && worst->violations > 0;
    return Fail(ErrorKind::kMalformedInput,
                pinned_.empty()
                    ? "no shape satisfies the op's ranges and constraints"
                    : "no shape with these axes satisfies the op's ranges and constraints",
                blamed ? worst->expression->place() + " '" + worst->expression->text() + "'"
                       : "op.json: /axes",
                "relax the constraint or widen the axes' ranges");
  }

 private:
  struct Checked {
    const ops::Expression* expression;
    std::size_t last;  // bound once order_[last] is
    int violations;
  };

  void CollectVariables(const ops::Expression& expression, int depth,
                        std::set<std::string>& names) {
    if (depth > 16) return;  // the op loader refuses cycles; this only bounds the walk
    for (const std::string& name : expression.names()) {
      const ops::Axis* axis = op_.FindAxis(name);
      if (axis == nullptr) continue;
      if (axis->expression) {
        CollectVariables(*axis->expression, depth + 1, names);
      } else {
        names.insert(name);
      }
    }
  }

  void Add(std::vector<std::int64_t>& candidates, const ops::Axis& axis, std::int64_t value) const {
    if (value < axis.min || value > axis.max || candidates.size() >= kMaxCandidates) return;
    if (std::ranges::find(candidates, value) == candidates.end()) candidates.push_back(value);
  }

  std::vector<std::int64_t> Candidates(const ops::Axis& axis) const {
    std::vector<std::int64_t> candidates;
    if (const auto found = pinned_.find(axis.name); found != pinned_.end()) {
      Add(candidates, axis, found->second);
      return candidates;
    }
    if (const auto found = preferred_.find(axis.name); found != preferred_.end()) {
      for (std::int64_t distance = 0; distance <= 8; ++distance) {
        Add(candidates, axis, found->second - distance);
        Add(candidates, axis, found->second + distance);
      }
    }
    for (const std::int64_t value : {3, 2, 1, 4, 5, 6, 7, 8}) Add(candidates, axis, value);
    for (std::int64_t step = 0; step < 4; ++step) Add(candidates, axis, axis.min + step);
    // Equalities between axes (hidden == heads * dim) are met by combining what is bound. Sums first, from
    // the shortest on: of what has to be no shorter than another they are a little longer, and not a multiple of it.
    std::vector<std::int64_t> bound;
    for (const auto& [name, value] : values_) bound.push_back(value);
    for (const std::int64_t literal : literals_) bound.push_back(literal);
    const auto combine = [&](const auto& of_two) {
      for (std::size_t i = 0; i < bound.size(); ++i) {
        for (std::size_t j = 0; j < bound.size(); ++j) of_two(i, j);
      }
    };
    std::set<std::int64_t> sums;
    combine([&](std::size_t i, std::size_t j) {
      std::int64_t sum = 0;
      if (i < j && !__builtin_add_overflow(bound[i], bound[j], &sum)) sums.insert(sum);
    });
    for (const std::int64_t sum : sums) Add(candidates, axis, sum);
    for (const std::int64_t a : bound) Add(candidates, axis, a);
    combine([&](std::size_t i, std::size_t j) {
      const std::int64_t a = bound[i], b = bound[j];
      std::int64_t result = 0;
      if (!__builtin_mul_overflow(a, b, &result)) Add(candidates, axis, result);
      if (!__builtin_add_overflow(a, b, &result)) Add(candidates, axis, result);
      if (!__builtin_sub_overflow(a, b, &result)) Add(candidates, axis, result);
      if (b > 0) Add(candidates, axis, a / b);
    });
    for (std::int64_t value = 16; value <= 65536; value *= 2) Add(candidates, axis, value);
    Add(candidates, axis, axis.max);
    return candidates;
  }

  bool Consistent(std::size_t bound) {
    std::optional<ops::AxisValues> with_derived;
    for (Checked& checked : constraints_) {
      if (checked.last != bound) continue;
      if (!with_derived) with_derived = WithDerived();
      const Result<std::int64_t> value = checked.expression->Evaluate(*with_derived);
      if (!value || *value == 0) {
        ++checked.violations;
        return false;
      }
    }
    return true;
  }

  // Adds the derived axes whose inputs are bound; others stay out, and so do constraints on them.
  ops::AxisValues WithDerived() const {
    ops::AxisValues values = values_;
    for (std::size_t round = 0; round < op_.axes.size(); ++round) {
      bool changed = false;
      for (const ops::Axis& axis : op_.axes) {
        if (!axis.expression || values.contains(axis.name)) continue;
        if (const Result<std::int64_t> value = axis.expression->Evaluate(values)) {
          values[axis.name] = *value;
          changed = true;
        }
      }
      if (!changed) break;
    }
    return values;
  }

  bool Descend(std::size_t depth) {
    if (depth == order_.size()) {
      ops::AxisValues variables;
      for (const ops::Axis* axis : order_) variables[axis->name] = values_.find(axis->name)->second;
      return ops::ResolveAxes(op_, variables).has_value();
    }
    const ops::Axis& axis = *order_[depth];
    for (const std::int64_t value : Candidates(axis)) {
      if (++nodes_ > max_nodes_) return false;
      values_[axis.name] = value;
      if (Consistent(depth) && Descend(depth + 1)) return true;
      values_.erase(axis.name);
    }
    return false;
  }

  const ops::OpSpec& op_;
  const ops::AxisValues& pinned_;
  const ops::AxisValues& preferred_;
  std::vector<const ops::Axis*> order_;
  std::vector<Checked> constraints_;
  std::vector<std::int64_t> literals_;
  ops::AxisValues values_;
  int max_nodes_;
  int nodes_ = 0;
};

}  // namespace

Result<ops::AxisValues> SolveAxes(const ops::OpSpec& op, const ops::AxisValues& pinned,
                                  const ops::AxisValues& preferred) {
  const auto free =
      static_cast<std::size_t>(std::ranges::count_if(op.axes, [&](const ops::Axis& axis) {
        return axis.kind == ops::Axis::Kind::kVariable && !pinned.contains(axis.name);
      }));
  const std::size_t orders = std::max<std::size_t>(free, 1);
  Result<ops::AxisValues> solved = Fail(ErrorKind::kInternal, "no order was tried");
  for (std::size_t order = 0; order < orders; ++order) {
    // The op's own order first.
    solved = Solver(op, pinned, preferred, orders - 1 - order, kMaxNodes / static_cast<int>(orders))
                 .Solve();
    if (solved) return solved;
  }
  return solved;
}

Result<ops::AxisValues> SolveNear(const ops::OpSpec& op, const std::string& axis,
                                  std::int64_t value, const ops::AxisValues& preferred) {
  auto first = SolveAxes(op, {{axis, value}}, preferred);
  if (first) return first;
  for (std::int64_t distance = 1; distance <= 64; ++distance) {
    for (const std::int64_t near : {value - distance, value + distance}) {
      if (auto solved = SolveAxes(op, {{axis, near}}, preferred)) return solved;
    }
  }
  return first;
}

}  // namespace assay::cases

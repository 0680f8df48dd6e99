// Decisions made node by node, and an op and a plan to reach them with.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "validator/campaign/reach.h"
#include "validator/cases/test_instance.h"

namespace assay::campaign::testing {

using Op = facts::Node::Op;
using Type = facts::Node::Type;

/// y[rows, columns] from ids[rows] in [0, table): an op without constraints.
inline ops::Instance Instance() {
  ops::Instance instance = cases::GatherInstance();
  instance.op.constraints.clear();
  return instance;
}

/// One kernel k(ids, rows, columns, table) on a grid of `blocks`.
inline ops::LaunchPlan Plan(const std::string& blocks) {
  ops::LaunchPlan plan;
  ops::KernelPlan& kernel = plan.kernels.emplace_back();
  kernel.entry = "k";
  kernel.grid = {cases::Parse(blocks), cases::Parse("1"), cases::Parse("1")};
  kernel.block = {cases::Parse("128"), cases::Parse("1"), cases::Parse("1")};
  kernel.args = {"ids", "rows", "columns", "table"};
  return plan;
}

/// Makes decisions node by node.
class Builder {
 public:
  std::uint32_t Add(Op op, std::int64_t value, std::vector<std::uint32_t> of = {},
                    Type type = Type::kS64) {
    decision.nodes.push_back({op, type, value, std::move(of)});
    return static_cast<std::uint32_t>(decision.nodes.size() - 1);
  }
  facts::Decision Compare(std::uint32_t left, std::int64_t right) {
    decision.entry = "k";
    decision.left = left;
    decision.right = Add(Op::kConstant, right);
    return decision;
  }
  facts::Decision decision;
};

inline facts::Decision AxisPast(std::int64_t parameter, std::int64_t limit) {
  Builder builder;
  return builder.Compare(builder.Add(Op::kParameter, parameter), limit);
}

inline facts::Decision AxisModulo(std::int64_t parameter, std::int64_t by, std::int64_t rest) {
  Builder builder;
  const auto axis = builder.Add(Op::kParameter, parameter);
  const auto divisor = builder.Add(Op::kConstant, by);
  return builder.Compare(builder.Add(Op::kRemainder, 0, {axis, divisor}), rest);
}

struct Given {
  ops::Instance instance = Instance();
  ops::LaunchPlan plan;
  engine::CompiledKernel compiled;

  Given(const std::string& blocks, std::vector<facts::Decision> list) : plan(Plan(blocks)) {
    facts::Facts program;
    program.decisions = std::move(list);
    compiled.facts = std::make_shared<const facts::Facts>(std::move(program));
    compiled.lowered["k"] = "k";
  }
  ReachedCases Reach(ReachRequest request = {}) const {
    const Decisions decisions(instance, plan, compiled);
    request.cost = [this](const ops::AxisValues& axes) {
      return static_cast<double>(cases::TotalElements(instance, axes));
    };
    request.steps = 1e8;
    request.pair_steps = 1e8;
    request.shapes = 24;
    request.values = 8;
    return CasesThatReach(instance, decisions, request);
  }
};

template <class Holds>
bool Any(const ReachedCases& reached, Holds holds) {
  return std::ranges::any_of(reached.cases,
                             [&](const cases::Case& value) { return holds(value.axes); });
}

}  // namespace assay::campaign::testing

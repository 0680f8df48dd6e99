// Every op of the library, as it is shipped: it loads, its plans resolve for its smallest and its
// real shapes, it has what it needs.
#include <gtest/gtest.h>

#include "base/json.h"
#include "ops/launch_plan.h"
#include "ops/op.h"
#include "ops/prelude.h"
#include "ops/properties.h"

namespace assay::ops {
namespace {

const Library& Shipped() {
  static const Library library({Path(ASSAY_SOURCE_DIR) / "ops"});
  return library;
}

// The reference's plan may use the dtype Real, which runs bind to their number type.
Result<LaunchPlan> Plan(OpSpec op, const Path& file, bool reference) {
  if (reference) {
    op = ReferenceOf(op);
    op.dtypes["Real"] = {DType::kF64};
  }
  ASSAY_TRY(const Json document, ReadJsonFile(file.string()));
  return ParseLaunchPlan(document, file.string(), op);
}

TEST(ShippedOps, Load) {
  const auto entries = Shipped().List();
  EXPECT_GE(entries.size(), 10u);
  for (const auto& entry : entries) {
    EXPECT_FALSE(entry.error.has_value()) << ToString(*entry.error);
    const auto op = Shipped().Find(entry.name);
    ASSERT_TRUE(op.has_value());
    EXPECT_EQ(op->name, entry.name);
    EXPECT_FALSE(op->summary.empty()) << entry.name;
    EXPECT_FALSE(op->workloads.empty()) << entry.name;
    EXPECT_TRUE(op->naive.has_value()) << entry.name;
    EXPECT_TRUE(op->contract.why.empty() || op->contract.why.size() > 40)
        << entry.name << ": an exception says why";
  }
}

TEST(ShippedOps, QueriesAreInStepWithKeysAlone) {
  const OpSpec attention = Shipped().Find("attention").value();
  EXPECT_EQ(AxesInStepWith(attention, "keys"), std::vector<std::string>{"queries"});
  EXPECT_TRUE(AxesInStepWith(Shipped().Find("gemm").value(), "k").empty());
  // Of what each result is made alone, as far as it is one itself.
  EXPECT_EQ(AxesInStepWith(Shipped().Find("cumsum").value(), "columns"),
            std::vector<std::string>{"columns"});
}

TEST(ShippedOps, PlansResolveForSmallestAndRealShapes) {
  for (const auto& entry : Shipped().List()) {
    Instance instance = *MakeInstance(*Shipped().Find(entry.name), {}, "sm_90");
    std::vector<AxisValues> shapes;
    AxisValues smallest;
    for (const Axis& axis : instance.op.axes) {
      if (axis.kind == Axis::Kind::kVariable) smallest[axis.name] = axis.min;
    }
    shapes.push_back(smallest);
    for (const Workload& workload : instance.op.workloads) shapes.push_back(workload.axes);
    instance.binding["Real"] = DType::kF64;
    for (const bool reference : {true, false}) {
      const Path file =
          reference ? instance.op.reference.launch : *instance.op.naive / "launch.json";
      const auto plan = Plan(instance.op, file, reference);
      ASSERT_TRUE(plan.has_value()) << ToString(plan.error());
      for (const AxisValues& shape : shapes) {
        const auto axes = ResolveAxes(instance.op, shape);
        ASSERT_TRUE(axes.has_value()) << entry.name << ": " << ToString(axes.error());
        // A reference's workspace for a real shape may be more than anyone runs; the plan still has
        // to evaluate for the smallest.
        if (reference && &shape != &shapes.front()) continue;
        const auto resolved = Resolve(*plan, instance, *axes);
        EXPECT_TRUE(resolved.has_value()) << entry.name << ": " << ToString(resolved.error());
      }
    }
  }
}

TEST(ShippedOps, EveryBindingHasTypesForReferences) {
  for (const auto& entry : Shipped().List()) {
    const OpSpec op = *Shipped().Find(entry.name);
    for (const auto& [variable, types] : op.dtypes) {
      for (const DType type : types) {
        const Instance instance = *MakeInstance(op, {{variable, std::string(Name(type))}}, "sm_90");
        EXPECT_FALSE(ReferenceDefines(instance).empty()) << instance.Id();
      }
    }
  }
}

}  // namespace
}  // namespace assay::ops

// Files of ops, plans and verdicts.
#include "agent/loop/budget.h"
#include "fuzz/target.h"
#include "ops/launch_plan.h"
#include "ops/op.h"
#include "ops/sanitize_plan.h"
#include "validator/policy/policy.h"
#include "validator/verdict/counterexample.h"
#include "validator/verdict/verdict.h"

namespace assay::fuzz {
namespace {

const Path kOps = Path(ASSAY_SOURCE_DIR) / "ops";

const ops::Instance& RmsNorm() {
  static const ops::Instance instance = [] {
    auto op = ops::LoadOp(kOps / "rms_norm");
    ASSAY_CHECK(op.has_value());
    return *ops::MakeInstance(*std::move(op), {}, "sm_90");
  }();
  return instance;
}

}  // namespace

/// An op's folder is rms_norm's, but for op.json.
void OpJson(std::string_view input) {
  static const Path folder = [] {
    const Path path = ScratchFolder() / "op";
    std::filesystem::copy(kOps / "rms_norm", path, std::filesystem::copy_options::recursive);
    return path;
  }();
  Put(folder / "op.json", input);
  const auto op = ops::LoadOp(folder);
  if (!op) {
    ASSAY_CHECK(!op.error().message.empty());
    return;
  }
  ASSAY_CHECK(!op->outputs.empty() && !op->name.empty());
  for (const Path& file : {op->reference.source, op->reference.launch}) {
    // A file of an op lies in its folder, whatever its op.json says.
    const Path inside = file.lexically_normal().lexically_relative(folder.lexically_normal());
    ASSAY_CHECK(!inside.empty() && *inside.begin() != "..", file.string());
  }
  ops::AxisValues smallest;
  for (const ops::Axis& axis : op->axes) smallest[axis.name] = axis.min;
  (void)ops::ResolveAxes(*op, smallest);
  (void)ops::MakeInstance(*op, {}, "sm_90");
}

void LaunchJson(std::string_view input) {
  WithJson(input, "launch.json", [](const Json& json) {
    const auto plan = ops::ParseLaunchPlan(json, "launch.json", RmsNorm().op);
    if (!plan) return CheckError(plan.error(), "launch.json");
    for (const std::int64_t tokens : {1, 3, 1048576}) {
      const auto axes = ops::ResolveAxes(RmsNorm().op, {{"tokens", tokens}, {"hidden", 16384}});
      ASSAY_CHECK(axes.has_value());
      const auto resolved = ops::Resolve(*plan, RmsNorm(), *axes);
      if (!resolved) CheckError(resolved.error(), "launch.json");
    }
  });
}

void SanitizePlan(std::string_view input) {
  WithJson(input, "plan.json", [](const Json& json) {
    const auto plan = ops::ParseSanitizePlan(json, "plan.json", ScratchFolder());
    if (!plan) return CheckError(plan.error(), "plan.json");
    for (const ops::SanitizeScalar& scalar : plan->scalars)
      ASSAY_CHECK(scalar.Bytes().size() == SizeOf(scalar.dtype));
  });
}

void Counterexample(std::string_view input) {
  WithJson(input, "x.json", [](const Json& json) {
    const auto read = verdict::CounterexampleFromJson(json, "x.json");
    if (!read) return CheckError(read.error(), "x.json");
    CheckRoundTrip(*read, verdict::CounterexampleFromJson);
  });
}

void Verdict(std::string_view input) {
  WithJson(input, "v.json", [](const Json& json) {
    const auto read = verdict::VerdictFromJson(json, "v.json");
    if (!read) return CheckError(read.error(), "v.json");
    CheckRoundTrip(*read, verdict::VerdictFromJson);
  });
}

void Expression(std::string_view input) {
  const auto expression = ops::Expression::Parse(input, "place");
  if (!expression) return CheckError(expression.error(), "place");
  ops::AxisValues values;
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{-7}, INT64_MAX, INT64_MIN}) {
    for (const std::string& name : expression->names()) values[name] = value;
    const auto result = expression->Evaluate(values);
    if (!result) CheckError(result.error(), "place");
  }
  ASSAY_CHECK(expression->text() == input);
}

void Prices(std::string_view input) {
  const auto prices = loop::ParsePrices(input, "prices.json");
  if (!prices) CheckError(prices.error(), "prices.json");
}

}  // namespace assay::fuzz

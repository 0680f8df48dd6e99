// What judging numbers costs: processor seconds of each part, and its share of all that a case
// takes in the numeric and precision gates: the candidate's run and the reference's bounded run on
// the emulator, and every statistic of the comparison. Naive candidates of eight ops. Prints one
// JSON document; numbers are for reading, no test looks at them.
//
//   build/release/bin/oracle_bench > oracle.json
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "validator/oracle/causes.h"
#include "validator/oracle/element.h"
#include "validator/oracle/groups.h"
#include "validator/oracle/growth.h"
#include "validator/oracle/randomness.h"
#include "validator/oracle/testing/local_bench.h"

namespace assay::oracle {
namespace {

constexpr int kRepeats = 20;

double Seconds(const std::function<void()>& work, int repeats) {
  const std::clock_t start = std::clock();
  for (int i = 0; i < repeats; ++i) work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / repeats;
}

struct Row {
  const char* op;
  const char* output;
  ops::AxisValues axes;
};

Json Measure(LocalBench& bench, const Row& row, const std::string& type) {
  const ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / row.op);
  const ops::Instance instance = *ops::MakeInstance(op, {{"T", type}}, "sm_90");
  const std::string kernel = *ReadFile(*op.naive / "kernel.cu");
  const std::string launch = *ReadFile(*op.naive / "launch.json");
  cases::Case value;
  value.axes = row.axes;
  const cases::Materialised inputs = *cases::Materialise(instance, value);

  TensorMap outputs;
  const double candidate =
      Seconds([&] { outputs = *bench.Outputs(instance, kernel, launch, inputs); }, 1);
  std::shared_ptr<const Truth> truth;
  const double reference =
      Seconds([&] { truth = *bench.oracle().Evaluate(instance, value, inputs); }, 1);

  const OutputTruth& expected = truth->outputs.find(row.output)->second;
  const Tensor& got = outputs.find(row.output)->second;
  const std::size_t count = expected.value.size();
  double sink = 0;
  const auto timed = [&](const std::function<void()>& work) { return Seconds(work, kRepeats); };
  Json statistics = Json::object();
  statistics["randomness_of_inputs"] =
      timed([&] { sink += RandomnessOf(inputs.inputs).independent ? 1 : 0; });
  statistics["elements"] = timed([&] {
    for (std::size_t i = 0; i < count; ++i) {
      sink += CheckElement(expected, i, got.At(static_cast<std::int64_t>(i)), false, 0x1p-24).error;
    }
  });
  statistics["rows_columns_bias_ulps_growth"] =
      timed([&] { sink += GroupErrors(expected, got).bias.sum; });
  statistics["growth_alone"] = timed([&] {
    Growth growth;
    for (std::size_t i = 0; i < count; ++i) {
      growth.Add({.length = expected.contributions[i],
                  .error = got.At(static_cast<std::int64_t>(i)) - expected.value[i],
                  .ideal = 0,
                  .typical = expected.typical[i]});
    }
    sink += growth.Fit().has_value() ? 1 : 0;
  });
  statistics["rounded_truth_alone"] = timed([&] {
    for (std::size_t i = 0; i < count; ++i) sink += Rounded(expected.dtype, expected.value[i]);
  });
  statistics["shape_for_causes_when_refuted"] =
      timed([&] { sink += ShapeOf(instance.op.contract, expected, got).beyond; });
  const double comparison = timed([&] {
    sink +=
        static_cast<double>(Compare(instance, *truth, value, inputs, outputs).statistics.size());
  });
  const double all = candidate + reference + comparison;
  Json shares = Json::object();
  for (const auto& [name, seconds] : statistics.items()) shares[name] = seconds.get<double>() / all;
  return {
      {"op", row.op},
      {"dtype", type},
      {"elements", count},
      {"seconds", {{"candidate", candidate}, {"reference", reference}, {"comparison", comparison}}},
      {"share_of_case",
       {{"candidate", candidate / all},
        {"reference", reference / all},
        {"comparison", comparison / all}}},
      {"statistics_share_of_case", shares},
      {"checksum_is_finite", std::isfinite(sink)}};
}

int Main() {
  auto bench = LocalBench::Create();
  if (!bench) {
    std::fprintf(stderr, "%s\n", ToString(bench.error()).c_str());
    return 3;
  }
  const std::vector<Row> rows = {
      {"gemm", "c", {{"m", 64}, {"n", 64}, {"k", 256}}},
      {"row_sum", "y", {{"rows", 256}, {"columns", 512}}},
      {"layer_norm", "y", {{"tokens", 128}, {"hidden", 512}}},
      {"softmax", "y", {{"rows", 128}, {"columns", 512}}},
      {"cross_entropy", "loss", {{"tokens", 128}, {"vocab", 512}}},
      {"attention", "o", {{"heads", 4}, {"queries", 32}, {"keys", 64}, {"dim", 64}}},
      {"scatter_add", "out", {{"tokens", 1024}, {"hidden", 64}, {"rows", 100}}},
      {"cumsum", "y", {{"rows", 128}, {"columns", 512}}}};
  Json results = Json::array();
  for (const Row& row : rows) {
    for (const char* type : {"bf16", "f32"}) results.push_back(Measure(**bench, row, type));
  }
  std::puts(Json{{"benchmark", "oracle"}, {"results", results}}.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace assay::oracle

int main() { return assay::oracle::Main(); }

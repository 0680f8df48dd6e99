// corpus/hostile: functionally wrong candidates, each wrong only on some inputs, judged by
// everything that is real: jailed compiler, emulator, oracle. Each must be refuted at standard
// effort by one of the gates it names, and its smallest counterexample may be at most twice as
// large as the smallest known one. Their op's naive candidates are the twins that must be accepted.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/gates/testing/share.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

using verdict::Counterexample;
using verdict::Outcome;
struct Expectation {
  std::string op;
  std::map<std::string, std::string> dtypes;
  std::vector<std::string> gates;
  ops::AxisValues smallest;
};

Result<Expectation> ReadExpectation(const Path& path) {
  ASSAY_TRY(const Json json, ReadJsonFile(path.string()));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, path.string()));
  Expectation expectation;
  reader.Ignore("schema");
  reader.Ignore("what");
  ASSAY_TRY(expectation.op, reader.Required<std::string>("op"));
  ASSAY_TRY(const Json dtypes, reader.Required<Json>("dtypes"));
  for (const auto& [variable, dtype] : dtypes.items())
    expectation.dtypes[variable] = dtype.get<std::string>();
  ASSAY_TRY(expectation.gates, reader.Optional<std::vector<std::string>>("gates", {}));
  ASSAY_TRY(const Json smallest, reader.Optional<Json>("smallest", Json::object()));
  for (const auto& [axis, value] : smallest.items())
    expectation.smallest[axis] = value.get<std::int64_t>();
  ASSAY_TRY_VOID(reader.Finish());
  return expectation;
}

class HostileTest : public RealBenchTest<testing::TestWithParam<std::string>> {
 protected:
  /// Judges what is there, which must come out so (ExpectOutcome).
  static Judgement Judge(const ops::Instance& instance, const Path& folder, Outcome outcome,
                         std::uint64_t seed = 0) {
    Options options;
    options.seed = seed;
    options.holdout_seed = [seed] { return 20'260'101 + seed; };
    Gatekeeper gatekeeper(bench_->tools(), options);
    Judgement judgement = gatekeeper.Judge(instance, CandidateIn(folder));
    ExpectOutcome(gatekeeper, instance, judgement, std::string(Name(outcome)),
                  fmt::format("{}, seed {}", folder.string(), seed));
    return judgement;
  }
};

TEST_P(HostileTest, IsRefutedWithASmallCounterexample) {
  const Path folder = Path(ASSAY_SOURCE_DIR) / "corpus" / "hostile" / GetParam();
  const auto expectation = ReadExpectation(folder / "expect.json");
  ASSERT_TRUE(expectation) << ToString(expectation.error());
  const ops::Instance instance =
      ops::MakeInstance(bench_->library.Find(expectation->op).value(), expectation->dtypes, "sm_90")
          .value();
  const Judgement judgement = Judge(instance, folder, Outcome::kRefuted);
  const std::string text = RenderVerdict(judgement.verdict);
  const auto all = judgement.verdict.Counterexamples();
  std::int64_t smallest = INT64_MAX;
  bool by_expected_gate = false;
  for (const Counterexample* counterexample : all) {
    by_expected_gate =
        by_expected_gate ||
        std::ranges::find(expectation->gates, counterexample->gate) != expectation->gates.end();
    if (counterexample->probe) {
      smallest =
          std::min(smallest, cases::TotalElements(instance, counterexample->probe->case_.axes));
    }
  }
  EXPECT_TRUE(by_expected_gate) << text;
  // What the policy refuses has no case.
  if (!expectation->smallest.empty()) {
    EXPECT_LE(smallest, 2 * cases::TotalElements(instance, expectation->smallest)) << text;
  }
}

std::vector<std::string> Folders(const char* corpus) {
  return Share(FoldersBelow(Path(ASSAY_SOURCE_DIR) / "corpus" / corpus));
}

INSTANTIATE_TEST_SUITE_P(Corpus, HostileTest, testing::ValuesIn(Folders("hostile")),
                         [](const auto& param) { return param.param; });

// corpus/right: the same ops in other styles (vector loads, grid strides, two phases, cooperative
// launches, persistent blocks). Whatever refutes one of them is a false alarm.
using RightTest = HostileTest;

TEST_P(RightTest, IsAccepted) {
  const Path folder = Path(ASSAY_SOURCE_DIR) / "corpus" / "right" / GetParam();
  const auto expectation = ReadExpectation(folder / "expect.json");
  ASSERT_TRUE(expectation) << ToString(expectation.error());
  const ops::Instance instance =
      ops::MakeInstance(bench_->library.Find(expectation->op).value(), expectation->dtypes, "sm_90")
          .value();
  Judge(instance, folder, Outcome::kAccepted);
}

INSTANTIATE_TEST_SUITE_P(Corpus, RightTest, testing::ValuesIn(Folders("right")),
                         [](const auto& param) { return param.param; });

// Seeds: whatever they are, a right candidate is accepted and a wrong one is not. A few of them by default,
// ASSAY_SEEDS where that is set.
struct Seeded {
  const char* folder;
  bool right;
};
class SeedsTest : public HostileTest {};

std::uint64_t Seeds() {
  const char* text = std::getenv("ASSAY_SEEDS");
  return text == nullptr ? 2 : std::strtoull(text, nullptr, 10);
}

TEST_F(SeedsTest, DecideNothing) {
  constexpr Seeded kSeeded[] = {{"ops/row_sum/naive", true},
                                {"ops/rms_norm/naive", true},
                                {"ops/cumsum/naive", true},
                                {"corpus/right/row_sum_vectorised", true},
                                {"corpus/right/row_sum_two_phases", true},
                                {"corpus/hostile/row_sum_special_value", false},
                                {"corpus/hostile/softmax_drops_the_small", false},
                                {"corpus/hostile/layer_norm_negative_weight", false},
                                {"corpus/hostile/gemm_column_512", false},
                                {"corpus/hostile/cross_entropy_last_class", false}};
  for (const Seeded& seeded : Share(std::vector(std::begin(kSeeded), std::end(kSeeded)))) {
    const Path folder = Path(ASSAY_SOURCE_DIR) / seeded.folder;
    std::string op = folder.parent_path().filename();
    if (const auto expectation = ReadExpectation(folder / "expect.json")) op = expectation->op;
    const ops::Instance instance =
        ops::MakeInstance(bench_->library.Find(op).value(), {{"T", "bf16"}}, "sm_90").value();
    for (std::uint64_t seed = 1; seed <= Seeds(); ++seed) {
      Judge(instance, folder, seeded.right ? Outcome::kAccepted : Outcome::kRefuted, seed);
    }
  }
}

using NaiveTest = HostileTest;

TEST_P(NaiveTest, IsAccepted) {
  const ops::OpSpec op = bench_->library.Find(GetParam()).value();
  ASSERT_TRUE(op.naive);
  for (const DType dtype : op.dtypes.at("T")) {
    const ops::Instance instance =
        ops::MakeInstance(op, {{"T", std::string(Name(dtype))}}, "sm_90").value();
    Judge(instance, *op.naive, Outcome::kAccepted);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, NaiveTest,
                         testing::ValuesIn(Share<std::string>(
                             {"row_sum", "softmax", "scatter_add", "cumsum", "gemm", "layer_norm",
                              "rms_norm", "cross_entropy", "embedding_rmsnorm_backward",
                              "rms_norm_backward", "attention"})),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace assay::gates

// corpus/precision: variants of nine kinds of op, honest and dishonest. Honest ones pass every
// case, dishonest ones are refuted by one.
//
// ASSAY_CORPUS_CASES sets the random cases for honest variants: their number, or FIRST:END to share them among processes (3 by default, 200 for the
// full claim); ASSAY_CORPUS_TABLE names a file to which the rows of docs/precision.md's table are
// added, and prints them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "base/json.h"
#include "base/rng.h"
#include "validator/oracle/element.h"
#include "validator/oracle/testing/bench_test.h"

namespace assay::oracle {
namespace {

struct Variant {
  std::string op;
  std::string name;
  std::string kernel;
  std::string launch;
  std::vector<std::string> dtypes;
  bool approximate = true;  ///< False: judged under a contract that allows no approximations.
};

std::vector<Path> FoldersIn(const Path& folder) {
  std::vector<Path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

std::vector<Variant> Variants(const std::string& op, const std::string& kind) {
  std::vector<Variant> variants;
  for (const Path& folder : FoldersIn(Path(ASSAY_SOURCE_DIR) / "corpus/precision" / op / kind)) {
    Variant variant{op,
                    folder.filename().string(),
                    *ReadFile(folder / "kernel.cu"),
                    *ReadFile(folder / "launch.json"),
                    {"bf16", "f16", "f32"}};
    if (std::filesystem::exists(folder / "variant.json")) {
      const Json rules = *ReadJsonFile((folder / "variant.json").string());
      variant.dtypes = rules.value("dtypes", variant.dtypes);
      variant.approximate = !rules.contains("contract");
    }
    variants.push_back(std::move(variant));
  }
  return variants;
}

// Reductions of 3 to 400 terms, outputs of some tens of elements.
ops::AxisValues RandomAxes(const std::string& op, Rng& rng) {
  const auto between = [&](std::int64_t low, std::int64_t high) { return rng.Between(low, high); };
  if (op == "gemm") return {{"m", between(1, 9)}, {"n", between(1, 9)}, {"k", between(1, 300)}};
  if (op == "row_sum" || op == "softmax" || op == "cumsum")
    return {{"rows", between(1, 12)}, {"columns", between(1, 300)}};
  if (op == "layer_norm" || op == "rms_norm")
    return {{"tokens", between(1, 10)}, {"hidden", between(1, 200)}};
  if (op == "cross_entropy") return {{"tokens", between(1, 12)}, {"vocab", between(1, 300)}};
  if (op == "attention") {
    const std::int64_t queries = between(1, 4);
    return {{"heads", between(1, 2)},
            {"queries", queries},
            {"keys", queries + between(0, 60)},
            {"dim", between(1, 24)}};
  }
  return {{"tokens", between(1, 200)}, {"hidden", between(1, 12)}, {"rows", between(1, 6)}};
}

cases::Case RandomCase(const ops::Instance& instance, std::uint64_t seed) {
  Rng rng(seed);
  cases::Case value;
  value.axes = RandomAxes(instance.op.name, rng);
  value.seed = rng.Next();
  constexpr std::array kKinds = {"rippled",  "normal",     "uniform",  "biased",
                                 "sorted",   "cancelling", "outliers", "mixed_exponents",
                                 "constant", "integers"};
  for (const ops::TensorSpec& input : instance.op.inputs) {
    if (input.is_scalar || !IsFloat(instance.TypeOf(input))) continue;
    if (rng.Below(2) == 0) value.profiles[input.name].kind = kKinds[rng.Below(kKinds.size())];
  }
  return value;
}

ops::AxisValues Short(const std::string& op, std::int64_t length) {
  if (op == "gemm") return {{"m", 24}, {"n", 25}, {"k", length}};
  if (op == "layer_norm" || op == "rms_norm") return {{"tokens", 100}, {"hidden", length}};
  if (op == "cross_entropy") return {{"tokens", 100}, {"vocab", length}};
  if (op == "attention") return {{"heads", 9}, {"queries", 1}, {"keys", length}, {"dim", 24}};
  if (op == "scatter_add") return {{"tokens", 4 * length}, {"hidden", 50}, {"rows", 4}};
  return {{"rows", 400}, {"columns", length}};
}

// What a judge would try: long reductions, positive data, data far from zero, rows of almost equal
// values, large logits.
std::vector<cases::Case> JudgesCases(const ops::Instance& instance) {
  const std::string& op = instance.op.name;
  ops::AxisValues axes;
  if (op == "gemm") axes = {{"m", 13}, {"n", 11}, {"k", 500}};
  if (op == "row_sum") axes = {{"rows", 80}, {"columns", 500}};
  if (op == "softmax" || op == "cumsum") axes = {{"rows", 12}, {"columns", 400}};
  if (op == "layer_norm" || op == "rms_norm") axes = {{"tokens", 12}, {"hidden", 300}};
  if (op == "cross_entropy") axes = {{"tokens", 70}, {"vocab", 300}};
  if (op == "attention") axes = {{"heads", 4}, {"queries", 16}, {"keys", 40}, {"dim", 32}};
  if (op == "scatter_add") axes = {{"tokens", 512}, {"hidden", 16}, {"rows", 6}};
  struct Draw {
    double mean, scale;
  };
  std::vector<cases::Case> result;
  std::uint64_t seed = 100;
  for (const Draw& draw : {Draw{0, 1}, Draw{3, 1}, Draw{0, 1e-4}, Draw{100, 1}, Draw{4000, 20},
                           Draw{0, 20}, Draw{0, 8}}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      cases::Case value;
      value.axes = axes;
      value.seed = ++seed;
      for (const ops::TensorSpec& input : instance.op.inputs) {
        if (input.is_scalar || !IsFloat(instance.TypeOf(input)) || input.name == "weight" ||
            input.name == "bias" || input.name == "v")
          continue;
        value.profiles[input.name] = {.kind = "normal",
                                      .parameters = {{"mean", draw.mean}, {"scale", draw.scale}},
                                      .literal = {}};
      }
      result.push_back(std::move(value));
    }
  }
  // What every campaign tries besides: reductions of one to four terms, with small integers, and
  // wide apart.
  for (const char* kind : {"normal", "integers", "wide"}) {
    for (std::int64_t length = 1; length <= 4; ++length) {
      cases::Case value;
      value.axes = Short(op, length);
      value.seed = ++seed;
      for (const ops::TensorSpec& input : instance.op.inputs) {
        if (input.is_scalar || !IsFloat(instance.TypeOf(input))) continue;
        value.profiles[input.name].kind = kind;
        if (kind == std::string_view("wide"))
          value.profiles[input.name] = {
              .kind = "normal", .parameters = {{"scale", 20}}, .literal = {}};
      }
      result.push_back(std::move(value));
    }
  }
  // Equal scores: probabilities of a half and a quarter, which no cast rounds.
  for (const std::int64_t length : {2, 4}) {
    if (op != "attention") break;
    cases::Case value;
    value.axes = Short(op, length);
    value.seed = ++seed;
    value.profiles["q"].kind = "zero";
    result.push_back(std::move(value));
  }
  return result;
}

// ---- causes that are recognised, by variant

struct Expected {
  std::string_view variant;
  std::string_view words;
};
constexpr std::array kCauses = {
    Expected{"accumulator_bf16", "narrower than the contract"},
    Expected{"accumulator_f16", "narrower than the contract"},
    Expected{"double_rounding", "rounded twice"},
    Expected{"truncate", "truncat"},
    Expected{"tf32", "TF32"},
    Expected{"no_max", "maximum is not subtracted"},
    Expected{"one_pass", "E[x^2] - E[x]^2"},
    Expected{"no_eps", "eps is missing"},
    Expected{"fast_exp", "approximate function"},
    Expected{"scale", "same factor"},
};

// ---- how others decide, given the correctly rounded truth to compare with ----

struct Rule {
  const char* name;
  bool (*passes)(const OutputTruth& truth, const Tensor& got);
};
double ShareWithin(const OutputTruth& truth, const Tensor& got, double atol, double rtol) {
  double within = 0;
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    const double value = got.At(static_cast<std::int64_t>(i));
    const double expected = Rounded(truth.dtype, truth.value[i]);
    if (value == expected || std::fabs(value - expected) <= atol + rtol * std::fabs(expected))
      within += 1;
  }
  return truth.value.empty() ? 1 : within / static_cast<double>(truth.value.size());
}
constexpr std::array kRules = {
    Rule{"allclose 1e-2",
         [](const OutputTruth& t, const Tensor& g) { return ShareWithin(t, g, 1e-2, 1e-2) == 1; }},
    Rule{"allclose 1e-3",
         [](const OutputTruth& t, const Tensor& g) { return ShareWithin(t, g, 1e-3, 1e-3) == 1; }},
    Rule{"SOL-ExecBench", [](const OutputTruth& t,
                             const Tensor& g) { return ShareWithin(t, g, 1e-2, 1e-2) >= 0.99; }},
    Rule{"KernelBench",
         [](const OutputTruth& t, const Tensor& g) {
           const double tolerance = t.dtype == DType::kF32 ? 1e-4 : 1e-2;
           return ShareWithin(t, g, tolerance, tolerance) == 1;
         }},
};

struct Caught {
  std::map<std::string, std::string> by_dtype;          // dtype -> finding
  std::map<std::string, std::set<std::string>> passes;  // rule -> dtypes that it lets pass
  std::set<std::string> causes;
};

/// True where no cause is expected, too.
bool Recognised(const std::string& variant, const Caught& caught) {
  const auto expected = std::ranges::find(kCauses, variant, &Expected::variant);
  return expected == kCauses.end() ||
         std::ranges::any_of(caught.causes, [&](const std::string& cause) {
           return cause.find(expected->words) != std::string::npos;
         });
}

class PrecisionCorpus : public BenchTest<::testing::TestWithParam<const char*>> {
 protected:
  static ops::Instance InstanceOf(const std::string& type, bool approximate = true) {
    ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / GetParam());
    op.contract.approximate_functions = approximate;
    if (!approximate) op.digest += " without approximations";
    return *ops::MakeInstance(op, {{"T", type}}, "sm_90");
  }
  static bool Has(const Variant& variant, const std::string& type) {
    return std::ranges::find(variant.dtypes, type) != variant.dtypes.end();
  }
};

TEST_P(PrecisionCorpus, HonestVariantsAreNeverRefuted) {
  const char* wanted = std::getenv("ASSAY_CORPUS_CASES");
  const std::string cases = wanted != nullptr ? wanted : "3";
  const std::size_t colon = cases.find(':');
  const int first = colon == std::string::npos ? 0 : std::stoi(cases);
  const int end = std::stoi(colon == std::string::npos ? cases : cases.substr(colon + 1));
  ASSERT_LT(first, end);
  const auto variants = Variants(GetParam(), "honest");
  EXPECT_GE(variants.size(), 4u);
  for (const std::string type : {"bf16", "f16", "f32"}) {
    const ops::Instance usual = InstanceOf(type), strict = InstanceOf(type, false);
    for (int i = first; i < end; ++i) {
      const cases::Case value = RandomCase(usual, DeriveSeed(static_cast<std::uint64_t>(i), type));
      for (const Variant& variant : variants) {
        if (!Has(variant, type)) continue;
        const ops::Instance& instance = variant.approximate ? usual : strict;
        const auto result = bench_->Judge(instance, variant.kernel, variant.launch, value);
        ASSERT_TRUE(result.has_value())
            << variant.name << " " << type << ": " << ToString(result.error());
        const std::string where = fmt::format("{} {} case {}: {}\n", variant.name, type, i,
                                              CompactJson(cases::ToJson(value)));
        EXPECT_TRUE(result->numeric.empty()) << where << result->numeric[0].message;
        EXPECT_TRUE(result->precision.empty()) << where << result->precision[0].message;
      }
    }
  }
}

TEST_P(PrecisionCorpus, DishonestVariantsAreRefuted) {
  const auto variants = Variants(GetParam(), "dishonest");
  EXPECT_GE(variants.size(), 6u);
  std::map<std::string, Caught> table;
  const bool full = std::getenv("ASSAY_CORPUS_TABLE") != nullptr;
  for (const std::string type : {"bf16", "f16", "f32"}) {
    const ops::Instance usual = InstanceOf(type), strict = InstanceOf(type, false);
    const auto judged = JudgesCases(usual);
    for (const Variant& variant : variants) {
      if (!Has(variant, type)) continue;
      const ops::Instance& instance = variant.approximate ? usual : strict;
      Caught& caught = table[variant.name];
      std::set<std::string> fooled;
      for (const Rule& rule : kRules) fooled.insert(rule.name);
      for (const cases::Case& value : judged) {
        const cases::Materialised inputs = *cases::Materialise(instance, value);
        const auto truth = bench_->oracle().Evaluate(instance, value, inputs);
        ASSERT_TRUE(truth.has_value()) << ToString(truth.error());
        const auto outputs = bench_->Outputs(instance, variant.kernel, variant.launch, inputs);
        ASSERT_TRUE(outputs.has_value())
            << variant.name << " " << type << ": " << ToString(outputs.error());
        const Comparison result = Compare(instance, **truth, value, inputs, *outputs);
        for (const auto* findings : {&result.numeric, &result.precision}) {
          for (const Finding& finding : *findings) caught.causes.insert(finding.cause);
        }
        std::string& by = caught.by_dtype[type];
        if (by.empty() && !(result.numeric.empty() && result.precision.empty())) {
          const Finding& finding = result.numeric.empty() ? result.precision[0] : result.numeric[0];
          by = Name(finding.kind);
        }
        for (const Rule& rule : kRules) {
          for (const auto& [name, output] : (*truth)->outputs) {
            if (!rule.passes(output, outputs->find(name)->second)) fooled.erase(rule.name);
          }
        }
        // The others' rules are given all cases; ours needs one.
        if (!by.empty() && !full && Recognised(variant.name, caught)) break;
      }
      EXPECT_FALSE(caught.by_dtype[type].empty())
          << GetParam() << " " << variant.name << " " << type << " was not refuted";
      for (const std::string& rule : fooled) caught.passes[rule].insert(type);
    }
  }
  for (const auto& [name, caught] : table) {
    EXPECT_TRUE(Recognised(name, caught)) << GetParam() << " " << name << " is said to come of:\n  "
                                          << fmt::format("{}", fmt::join(caught.causes, "\n  "));
  }
  if (!full) return;
  std::string lines;
  for (const auto& [name, caught] : table) {
    lines += fmt::format("| {} | {} | ", GetParam(), name);
    std::map<std::string, std::string> kinds;
    for (const auto& [type, kind] : caught.by_dtype)
      kinds[kind] += (kinds[kind].empty() ? "" : " ") + type;
    std::string text;
    for (const auto& [kind, types] : kinds)
      text += (text.empty() ? "" : "; ") + kind + (kinds.size() > 1 ? " (" + types + ")" : "");
    lines += text + " |";
    for (const Rule& rule : kRules) {
      std::string passes;
      for (const std::string& type : caught.passes.contains(rule.name) ? caught.passes.at(rule.name)
                                                                       : std::set<std::string>{}) {
        passes += (passes.empty() ? "" : " ") + type;
      }
      lines += fmt::format(" {} |", passes.empty() ? "-" : passes);
    }
    lines += "\n";
  }
  std::ofstream(std::getenv("ASSAY_CORPUS_TABLE"), std::ios::app) << lines;
  std::cout << lines;
}

std::string OpOf(const ::testing::TestParamInfo<const char*>& each) { return each.param; }

INSTANTIATE_TEST_SUITE_P(All, PrecisionCorpus,
                         ::testing::Values("gemm", "row_sum", "layer_norm", "rms_norm", "softmax",
                                           "cross_entropy", "attention", "scatter_add", "cumsum"),
                         OpOf);

}  // namespace
}  // namespace assay::oracle

// Compare, on truths that the references give when they are compiled for the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "ops/op.h"
#include "ops/reference_on_host.h"
#include "validator/oracle/causes.h"
#include "validator/oracle/cells.h"
#include "validator/oracle/oracle.h"
#include "validator/oracle/randomness.h"

namespace bounded_bf16 {
using Real = assay::Bounded<assay::F32Contract>;
template <class T>
using Out = assay::BoundedCell<assay::F32Contract, T>;
#define ASSAY_T assay::bf16
namespace rms {
#include "ops/rms_norm/reference.cu"
}
namespace embedding {
#include "ops/embedding_rmsnorm_backward/reference.cu"
}
#undef ASSAY_T
}  // namespace bounded_bf16
namespace bounded_f32 {
using Real = assay::Bounded<assay::F32Contract>;
template <class T>
using Out = assay::BoundedCell<assay::F32Contract, T>;
#define ASSAY_T assay::f32
namespace rms {
#include "ops/rms_norm/reference.cu"
}
#undef ASSAY_T
}  // namespace bounded_f32

namespace assay::oracle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class T>
T* DataOf(Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.memory.bytes().data());
}

Tensor Filled(DType type, const Shape& shape, const std::function<double(std::int64_t)>& value) {
  Tensor tensor = *Tensor::Create(type, shape);
  for (std::int64_t i = 0; i < tensor.elements; ++i) tensor.Set(i, value(i));
  return tensor;
}

ops::Instance InstanceOf(const char* name, const char* type) {
  auto op = ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / name);
  EXPECT_TRUE(op.has_value()) << ToString(op.error());
  return *ops::MakeInstance(*std::move(op), {{"T", type}}, "sm_90");
}

// ---- rms_norm ----

struct RmsCase {
  ops::Instance instance;
  std::int64_t rows = 0, hidden = 0;
  float eps = 1e-5f;
  cases::Materialised data;
  Truth truth;

  double X(std::int64_t row, std::int64_t h) const {
    return data.inputs.find("x")->second.At(row * hidden + h);
  }
  double W(std::int64_t h) const { return data.inputs.find("weight")->second.At(h); }

  Comparison Run(const std::function<double(std::int64_t, std::int64_t)>& y) const {
    TensorMap outputs;
    outputs.emplace("y", Filled(truth.outputs.at("y").dtype, {rows, hidden},
                                [&](std::int64_t i) { return y(i / hidden, i % hidden); }));
    return Compare(instance, truth, {}, data, outputs);
  }
};

RmsCase MakeRms(
    const char* type, std::int64_t rows, std::int64_t hidden, std::uint64_t seed,
    const std::function<double(Rng&, std::int64_t)>& value = [](Rng& rng, std::int64_t) {
      return rng.Normal();
    }) {
  RmsCase test;
  test.instance = InstanceOf("rms_norm", type);
  test.rows = rows;
  test.hidden = hidden;
  const DType dtype = *ParseDType(type);
  Rng rng(seed);
  Tensor x = Filled(dtype, {rows, hidden}, [&](std::int64_t i) { return value(rng, i); });
  Tensor weight = Filled(dtype, {hidden}, [&](std::int64_t) { return 1 + 0.5 * rng.Normal(); });
  Tensor cells = *Tensor::Create(DType::kF64, {rows, hidden, 6});
  using Contract = assay::F32Contract;
  if (dtype == DType::kBF16) {
    RunOnHost(rows, [&] {
      bounded_bf16::rms::rms_norm(DataOf<bf16>(x), DataOf<bf16>(weight), test.eps,
                                  DataOf<BoundedCell<Contract, bf16>>(cells), rows, hidden);
    });
  } else {
    RunOnHost(rows, [&] {
      bounded_f32::rms::rms_norm(DataOf<f32>(x), DataOf<f32>(weight), test.eps,
                                 DataOf<BoundedCell<Contract, f32>>(cells), rows, hidden);
    });
  }
  test.data.inputs.emplace("x", std::move(x));
  test.data.inputs.emplace("weight", std::move(weight));
  test.truth.outputs["y"] = ReadCells(test.instance, *test.instance.op.FindOutput("y"), cells,
                                      RandomnessOf(test.data.inputs).exchangeable);
  return test;
}

float Squares(const RmsCase& test, std::int64_t row, std::int64_t lanes) {
  std::vector<float> partial(static_cast<std::size_t>(lanes));
  for (std::int64_t h = 0; h < test.hidden; ++h) {
    const auto x = static_cast<float>(test.X(row, h));
    partial[static_cast<std::size_t>(h % lanes)] += x * x;
  }
  float sum = 0;
  for (const float part : partial) sum += part;
  return sum;
}

double HonestY(const RmsCase& test, std::int64_t row, std::int64_t h, std::int64_t lanes) {
  const float scale =
      1.0f / std::sqrt(Squares(test, row, lanes) / static_cast<float>(test.hidden) + test.eps);
  return static_cast<float>(test.X(row, h)) * scale * static_cast<float>(test.W(h));
}

TEST(CompareRmsNorm, HonestVariantsPass) {
  for (const char* type : {"bf16", "f32"}) {
    for (const std::int64_t hidden : {1, 7, 64, 1000}) {
      for (const double mean : {0.0, 5.0}) {
        const RmsCase test = MakeRms(type, 24, hidden, 3,
                                     [&](Rng& rng, std::int64_t) { return mean + rng.Normal(); });
        for (const std::int64_t lanes : {1, 2, 32}) {
          const Comparison result = test.Run(
              [&](std::int64_t row, std::int64_t h) { return HonestY(test, row, h, lanes); });
          EXPECT_TRUE(result.numeric.empty()) << result.numeric[0].message;
          EXPECT_TRUE(result.precision.empty()) << result.precision[0].message;
          EXPECT_FALSE(result.statistics.empty());
        }
      }
    }
  }
}

TEST(CompareRmsNorm, MissingWeightIsWrong) {
  const RmsCase test = MakeRms("bf16", 16, 256, 4);
  const Comparison result = test.Run(
      [&](std::int64_t row, std::int64_t h) { return HonestY(test, row, h, 1) / test.W(h); });
  ASSERT_FALSE(result.numeric.empty());
  EXPECT_EQ(result.numeric[0].kind, FindingKind::kWrongValue);
  EXPECT_TRUE(result.precision.empty());
}

TEST(CompareRmsNorm, ScaleErrorOfATenthOfAPercentIsNamed) {
  for (const char* type : {"bf16", "f32"}) {
    const RmsCase test = MakeRms(type, 16, 256, 5);
    const Comparison result = test.Run(
        [&](std::int64_t row, std::int64_t h) { return HonestY(test, row, h, 1) * 1.001; });
    ASSERT_FALSE(result.precision.empty() && result.numeric.empty()) << type;
  }
  const RmsCase test = MakeRms("f32", 16, 256, 5);
  const Comparison result =
      test.Run([&](std::int64_t row, std::int64_t h) { return HonestY(test, row, h, 1) * 1.001; });
  const Finding& finding = result.precision.empty() ? result.numeric[0] : result.precision[0];
  EXPECT_THAT(finding.cause, HasSubstr("1.001"));
}

TEST(CompareRmsNorm, TruncationIsRecognised) {
  const RmsCase test = MakeRms("bf16", 16, 256, 6);
  const Comparison result = test.Run([&](std::int64_t row, std::int64_t h) {
    return Bf16Format::toward_zero(HonestY(test, row, h, 1));
  });
  ASSERT_FALSE(result.precision.empty());
  EXPECT_THAT(result.precision[0].cause, HasSubstr("truncated"));
  EXPECT_TRUE(std::ranges::any_of(
      result.precision, [](const Finding& f) { return f.kind == FindingKind::kPrecisionBias; }));
}

TEST(CompareRmsNorm, DoubleRoundingIsRecognised) {
  const RmsCase test = MakeRms("bf16", 16, 256, 7);
  const Comparison result = test.Run([&](std::int64_t row, std::int64_t h) {
    const double normalised = Bf16Format::nearest(HonestY(test, row, h, 1) / test.W(h));
    return normalised * test.W(h);
  });
  ASSERT_FALSE(result.precision.empty());
  EXPECT_EQ(result.precision[0].kind, FindingKind::kPrecisionElement);
  EXPECT_THAT(result.precision[0].cause, HasSubstr("rounded twice"));
}

TEST(CompareRmsNorm, NarrowAccumulatorIsRecognised) {
  const RmsCase test = MakeRms("f32", 16, 512, 8);
  const Comparison result = test.Run([&](std::int64_t row, std::int64_t h) {
    double squares = 0;
    for (std::int64_t k = 0; k < test.hidden; ++k)
      squares = Bf16Format::nearest(squares + test.X(row, k) * test.X(row, k));
    return test.X(row, h) / std::sqrt(squares / static_cast<double>(test.hidden) + test.eps) *
           test.W(h);
  });
  ASSERT_FALSE(result.precision.empty());
  EXPECT_THAT(result.precision[0].cause, HasSubstr("bf16"));
}

TEST(CompareRmsNorm, NanAndInfinityMustMatch) {
  const RmsCase test = MakeRms("bf16", 2, 8, 9);
  const auto with = [&](double odd) {
    return test.Run([&, odd](std::int64_t row, std::int64_t h) {
      return row == 1 && h == 3 ? odd : HonestY(test, row, h, 1);
    });
  };
  for (const double odd : {std::nan(""), double{INFINITY}, -double{INFINITY}}) {
    const Comparison result = with(odd);
    ASSERT_EQ(result.numeric.size(), 1u);
    EXPECT_EQ(result.numeric[0].element->index, (std::vector<std::int64_t>{1, 3}));
  }
}

TEST(CompareRmsNorm, OneElementOffIsFound) {
  const RmsCase test = MakeRms("bf16", 100, 100, 10);
  const Comparison result = test.Run([&](std::int64_t row, std::int64_t h) {
    const double y = HonestY(test, row, h, 1);
    return row == 77 && h == 5 ? y * 1.02 : y;
  });
  ASSERT_FALSE(result.precision.empty());
  EXPECT_EQ(result.precision[0].element->index, (std::vector<std::int64_t>{77, 5}));
}

TEST(CompareRmsNorm, ConstantRowsDoNotRefuteHonestKernels) {
  const RmsCase test = MakeRms("f32", 4, 4096, 11, [](Rng&, std::int64_t i) {
    return 0.1 * static_cast<double>(1 + i / 4096);
  });
  EXPECT_FALSE(RandomnessOf(test.data.inputs).exchangeable);
}

// ---- likely causes: what must not be said ----

// The first finding's cause.
std::string CauseIn(const Comparison& result) {
  if (!result.numeric.empty()) return result.numeric[0].cause;
  return result.precision.empty() ? "nothing was found" : result.precision[0].cause;
}

TEST(LikelyCause, IsSaidOfManyElementsNotOfOne) {
  const auto scaled = [](const RmsCase& test) {
    return CauseIn(
        test.Run([&](std::int64_t row, std::int64_t h) { return HonestY(test, row, h, 1) * 1.5; }));
  };
  EXPECT_THAT(scaled(MakeRms("f32", 16, 64, 5)),
              HasSubstr("every element is off by the same factor, 1.5"));
  EXPECT_EQ(scaled(MakeRms("f32", 1, 1, 5)), "");
  EXPECT_EQ(scaled(MakeRms("f32", 1, 3, 5)), "");
}

TEST(LikelyCause, OfOneRowIsWhatTheRowHasInCommon) {
  const RmsCase test = MakeRms("f32", 1, 64, 5);
  const std::string cause = CauseIn(
      test.Run([&](std::int64_t row, std::int64_t h) { return HonestY(test, row, h, 1) * 1.5; }));
  EXPECT_THAT(cause, HasSubstr("the elements of the row are off by the same factor, 1.5"));
  EXPECT_THAT(cause, Not(HasSubstr("is missing, applied twice")));
}

TEST(LikelyCause, AFactorNextToOneIsPrintedAsSuchAndMayBeFewerBits) {
  const RmsCase test = MakeRms("f32", 16, 64, 5);
  const std::string cause = CauseIn(test.Run(
      [&](std::int64_t row, std::int64_t h) { return HonestY(test, row, h, 1) * (1 - 4e-4); }));
  EXPECT_THAT(cause, HasSubstr("about the same factor, 1 - 0.0004"));
  EXPECT_THAT(cause, HasSubstr("TF32"));
  EXPECT_THAT(cause, Not(HasSubstr("is missing, applied twice")));
}

TEST(LikelyCause, MostlyZerosIsSaidOfOutputsNotOfOneRow) {
  const auto zero_rows = [](std::int64_t rows, std::int64_t zeros) {
    const RmsCase test = MakeRms("f32", rows, 32, 5);
    return CauseIn(test.Run([&](std::int64_t row, std::int64_t h) {
      return row < zeros ? 0 : HonestY(test, row, h, 1);
    }));
  };
  EXPECT_THAT(zero_rows(8, 7), HasSubstr("mostly zeros"));
  EXPECT_THAT(zero_rows(1, 1), HasSubstr("some elements are zero"));
  EXPECT_THAT(zero_rows(8, 1), HasSubstr("some elements are zero"));
}

TEST(LikelyCause, RowsThatAreTooSmallAreNotTruncated) {
  // A variance that came out too large shrinks a row by part of an ulp: magnitudes are too small,
  // and results are rounded to nearest all the same.
  const RmsCase test = MakeRms("bf16", 32, 256, 6);
  const Comparison result = test.Run([&](std::int64_t row, std::int64_t h) {
    return Bf16Format::nearest(HonestY(test, row, h, 1) * (1 - 2.5e-3));
  });
  ASSERT_FALSE(result.precision.empty() && result.numeric.empty());
  EXPECT_THAT(CauseIn(result), Not(HasSubstr("truncated")));
}

TEST(LikelyCause, FewBitsAreSaidOfResultsThatNeedMore) {
  // A neighbour's value in place of one's own: where all truths are powers of two, few bits are right.
  RmsCase test = MakeRms("f32", 8, 64, 5);
  OutputTruth& y = test.truth.outputs.at("y");
  for (std::size_t i = 0; i < y.value.size(); ++i) {
    y.value[i] = std::ldexp(1.0, static_cast<int>(i % 5));
    y.allowance[i] = y.typical[i] = y.independent[i] = 1e-9;
  }
  const Comparison result = test.Run([&](std::int64_t row, std::int64_t h) {
    const std::int64_t i = row * 64 + h;
    return std::ldexp(1.0, static_cast<int>((i % 7 == 0 ? i + 1 : i) % 5));
  });
  ASSERT_FALSE(result.numeric.empty());
  EXPECT_THAT(CauseIn(result), Not(HasSubstr("bits")));
}

TEST(LikelyCause, NanIsNoOverflowWithoutEvidence) {
  const RmsCase test = MakeRms("bf16", 8, 32, 9);
  for (const double odd : {std::nan(""), double{INFINITY}}) {
    // Lanes that had nothing to do made them, in every row or in some.
    for (const std::int64_t rows : {8, 3}) {
      const Comparison result = test.Run([&](std::int64_t row, std::int64_t h) {
        return row < rows && h > 20 ? odd : HonestY(test, row, h, 1);
      });
      ASSERT_EQ(result.numeric.size(), 1u);
      EXPECT_EQ(result.numeric[0].cause, "");
    }
  }
}

TEST(LikelyCause, OverflowIsSaidWhereItTellsRowsApart) {
  const RmsCase test = MakeRms("f32", 8, 32, 9, [](Rng& rng, std::int64_t i) {
    return rng.Normal() + (i / 32 < 3 ? 100 : 0);
  });
  const auto with = [&](std::int64_t rows) {
    return test
        .Run([&](std::int64_t row, std::int64_t h) {
          return row < rows ? double{INFINITY} : HonestY(test, row, h, 1);
        })
        .numeric.at(0)
        .cause;
  };
  EXPECT_THAT(with(3), HasSubstr("exp of them does"));
  EXPECT_EQ(with(8), "");  // Rows without large values as well: it is something else.
}

TEST(LikelyCause, IsSortedByWhatItBlames) {
  EXPECT_EQ(BlameOf("errors have the size that arithmetic in bf16 gives, not f32: ..."),
            Blame::kRounding);
  EXPECT_EQ(BlameOf("every element is off by the same factor, 2: ..."), Blame::kFormula);
  EXPECT_EQ(BlameOf(""), Blame::kEither);
  EXPECT_EQ(BlameOf(CauseOfShrinking()), Blame::kRounding);
}

// ---- embedding_rmsnorm_backward: hot rows ----

struct EmbeddingCase {
  ops::Instance instance;
  std::int64_t tokens = 0, hidden = 0, vocab = 0;
  cases::Materialised data;
  Truth truth;
};

EmbeddingCase MakeEmbedding(std::int64_t tokens, std::int64_t hidden, std::int64_t vocab, bool zipf,
                            std::uint64_t seed) {
  EmbeddingCase test{
      InstanceOf("embedding_rmsnorm_backward", "bf16"), tokens, hidden, vocab, {}, {}};
  Rng rng(seed);
  const auto normal = [&](std::int64_t) { return rng.Normal(); };
  Tensor grad = Filled(DType::kBF16, {tokens, hidden}, normal);
  Tensor table = Filled(DType::kBF16, {vocab, hidden}, normal);
  Tensor weight =
      Filled(DType::kBF16, {hidden}, [&](std::int64_t) { return 1 + 0.5 * rng.Normal(); });
  Tensor ids = Filled(DType::kI64, {tokens}, [&](std::int64_t) {
    const double u = rng.Unit();
    return zipf ? std::floor(std::pow(static_cast<double>(vocab), u)) - 1
                : std::floor(u * static_cast<double>(vocab));
  });
  using Cell32 = BoundedCell<F32Contract, bf16>;
  using Real = Bounded<F32Contract>;
  std::vector<Real> scale(static_cast<std::size_t>(tokens)), slope(scale.size()),
      sums(static_cast<std::size_t>(vocab * hidden));
  Tensor grad_table = *Tensor::Create(DType::kF64, {vocab, hidden, 6});
  Tensor grad_weight = *Tensor::Create(DType::kF64, {hidden, 6});
  namespace ref = bounded_bf16::embedding;
  RunOnHost(tokens, [&] {
    ref::row_statistics(DataOf<bf16>(grad), DataOf<int64>(ids), DataOf<bf16>(table),
                        DataOf<bf16>(weight), 1e-5f, scale.data(), slope.data(), tokens, hidden);
  });
  RunOnHost(hidden, [&] {
    ref::add_columns(DataOf<bf16>(grad), DataOf<int64>(ids), DataOf<bf16>(table),
                     DataOf<bf16>(weight), scale.data(), slope.data(), sums.data(),
                     DataOf<Cell32>(grad_weight), tokens, hidden, vocab);
  });
  RunOnHost(vocab * hidden,
            [&] { ref::store_table(sums.data(), DataOf<Cell32>(grad_table), vocab, hidden); });
  test.data.inputs.emplace("grad_out", std::move(grad));
  test.data.inputs.emplace("table", std::move(table));
  test.data.inputs.emplace("weight", std::move(weight));
  test.data.inputs.emplace("ids", std::move(ids));
  const bool exchangeable = RandomnessOf(test.data.inputs).exchangeable;
  for (const auto& [name, cells] :
       {std::pair<const char*, const Tensor*>{"grad_table", &grad_table},
        {"grad_weight", &grad_weight}}) {
    test.truth.outputs[name] =
        ReadCells(test.instance, *test.instance.op.FindOutput(name), *cells, exchangeable);
  }
  return test;
}

// A kernel's arithmetic with `add` as its way to add to the table.
Comparison RunEmbedding(const EmbeddingCase& test, bool reversed,
                        const std::function<double(double, double)>& add) {
  const auto at = [&](const char* name, std::int64_t i) {
    return static_cast<float>(test.data.inputs.find(name)->second.At(i));
  };
  std::vector<double> sums(static_cast<std::size_t>(test.vocab * test.hidden));
  std::vector<float> weight_sums(static_cast<std::size_t>(test.hidden));
  const auto h_count = static_cast<float>(test.hidden);
  for (std::int64_t i = 0; i < test.tokens; ++i) {
    const std::int64_t token = reversed ? test.tokens - 1 - i : i;
    const auto id = static_cast<std::int64_t>(at("ids", token));
    float squares = 0, dot = 0;
    for (std::int64_t h = 0; h < test.hidden; ++h) {
      const float x = at("table", id * test.hidden + h);
      squares += x * x;
      dot += at("grad_out", token * test.hidden + h) * at("weight", h) * x;
    }
    const float scale = 1.0f / std::sqrt(squares / h_count + 1e-5f);
    const float slope = scale * scale * (dot / h_count);
    for (std::int64_t h = 0; h < test.hidden; ++h) {
      const float x = at("table", id * test.hidden + h);
      const float g = at("grad_out", token * test.hidden + h);
      weight_sums[static_cast<std::size_t>(h)] += g * x * scale;
      double& sum = sums[static_cast<std::size_t>(id * test.hidden + h)];
      sum = add(sum, static_cast<double>(scale * (g * at("weight", h) - x * slope)));
    }
  }
  TensorMap outputs;
  outputs.emplace("grad_table",
                  Filled(DType::kBF16, {test.vocab, test.hidden},
                         [&](std::int64_t i) { return sums[static_cast<std::size_t>(i)]; }));
  outputs.emplace("grad_weight", Filled(DType::kBF16, {test.hidden}, [&](std::int64_t h) {
                    return weight_sums[static_cast<std::size_t>(h)];
                  }));
  return Compare(test.instance, test.truth, {}, test.data, outputs);
}

double AddF32(double a, double b) { return static_cast<float>(a) + static_cast<float>(b); }
double AddBf16(double a, double b) { return Bf16Format::nearest(a + Bf16Format::nearest(b)); }

TEST(CompareEmbedding, F32AtomicsInAnyOrderPass) {
  for (const bool zipf : {false, true}) {
    for (const std::int64_t tokens : {1, 64, 512}) {
      const EmbeddingCase test = MakeEmbedding(tokens, 48, 100, zipf, 21);
      for (const bool reversed : {false, true}) {
        const Comparison result = RunEmbedding(test, reversed, AddF32);
        EXPECT_TRUE(result.numeric.empty()) << result.numeric[0].message;
        EXPECT_TRUE(result.precision.empty()) << result.precision[0].message;
      }
    }
  }
}

TEST(CompareEmbedding, Bf16AtomicsAreRefutedWithTheHotRow) {
  for (const bool zipf : {false, true}) {
    const EmbeddingCase test = MakeEmbedding(512, 48, 100, zipf, 22);
    const Comparison result = RunEmbedding(test, false, AddBf16);
    EXPECT_TRUE(result.numeric.empty()) << result.numeric[0].message;
    ASSERT_FALSE(result.precision.empty());
    EXPECT_EQ(result.precision[0].kind, FindingKind::kPrecisionElement);
    EXPECT_THAT(result.precision[0].cause, HasSubstr("bf16"));
    if (!zipf) continue;
    const auto row =
        std::ranges::find(result.precision, FindingKind::kPrecisionRow, &Finding::kind);
    ASSERT_NE(row, result.precision.end());
    EXPECT_THAT(row->message, HasSubstr("grad_table row 0 received"));
    EXPECT_TRUE(std::ranges::any_of(row->statistics, [](const Statistic& s) {
      return s.name == "hot_row_relative_error" && s.value > s.limit &&
             s.note.find("adds") != std::string::npos;
    }));
  }
}

}  // namespace
}  // namespace assay::oracle

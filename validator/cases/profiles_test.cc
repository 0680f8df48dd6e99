#include "validator/cases/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/repeating_memory.h"
#include "validator/cases/test_instance.h"

namespace assay::cases {
namespace {

Tensor Filled(const ops::TensorSpec& spec, const std::string& kind, DType dtype, Shape shape,
              std::int64_t bound = 0, std::uint64_t stream = 11) {
  Tensor tensor = Tensor::Create(dtype, std::move(shape)).value();
  const Status status =
      Fill(spec, {.kind = kind, .parameters = {}, .literal = {}}, stream, bound, tensor);
  EXPECT_TRUE(status) << kind << ": " << ToString(status.error());
  return tensor;
}

TEST(ProfilesTest, EveryFloatProfileStaysFiniteUnlessTheDomainAllowsMore) {
  const ops::TensorSpec spec = FloatTensor("x", {"n"});
  for (const ProfileRow& row : AllProfiles()) {
    if (row.applies != InputClass::kFloat) continue;
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
      const Tensor tensor = Filled(spec, std::string(row.kind), dtype, {7, 33});
      for (std::int64_t i = 0; i < tensor.elements; ++i) {
        EXPECT_TRUE(std::isfinite(tensor.At(i))) << row.kind << " " << Name(dtype);
      }
    }
  }
}

TEST(ProfilesTest, EveryProfileRespectsARange) {
  ops::TensorSpec spec = FloatTensor("x", {"n"});
  spec.domain.kind = ops::Domain::Kind::kRange;
  spec.domain.low = 0.1;
  spec.domain.high = 0.7;
  for (const ProfileRow& row : AllProfiles()) {
    if (row.applies != InputClass::kFloat) continue;
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
      const Tensor tensor = Filled(spec, std::string(row.kind), dtype, {200});
      for (std::int64_t i = 0; i < tensor.elements; ++i) {
        EXPECT_GE(tensor.At(i), 0.1) << row.kind << " " << Name(dtype);
        EXPECT_LE(tensor.At(i), 0.7) << row.kind << " " << Name(dtype);
      }
    }
  }
}

TEST(ProfilesTest, IntegersStayInTheirRangeAndReachItsEnds) {
  ops::TensorSpec spec = FloatTensor("q", {"n"}, "u8");
  spec.domain.kind = ops::Domain::Kind::kRange;
  spec.domain.low = 2.5;
  spec.domain.high = 6.5;
  for (const ProfileRow& row : AllProfiles()) {
    if (row.applies != InputClass::kInteger) continue;
    for (const DType dtype : {DType::kU8, DType::kI8, DType::kI32, DType::kI64}) {
      const Tensor tensor = Filled(spec, std::string(row.kind), dtype, {300});
      std::set<double> seen;
      for (std::int64_t i = 0; i < tensor.elements; ++i) seen.insert(tensor.At(i));
      EXPECT_GE(*seen.begin(), 3) << row.kind << " " << Name(dtype);
      EXPECT_LE(*seen.rbegin(), 6) << row.kind << " " << Name(dtype);
      if (row.kind == "uniform") {
        EXPECT_EQ(seen, (std::set<double>{3, 4, 5, 6}));
      }
    }
  }
}

TEST(ProfilesTest, BytesAreTakenWhole) {
  for (const auto& [dtype, low, high] :
       {std::tuple{DType::kU8, 0, 255}, std::tuple{DType::kI8, -128, 127}}) {
    const Tensor tensor = Filled(FloatTensor("q", {"n"}), "uniform", dtype, {20000});
    std::set<double> seen;
    for (std::int64_t i = 0; i < tensor.elements; ++i) seen.insert(tensor.At(i));
    EXPECT_EQ(seen.size(), 256u);
    EXPECT_EQ(*seen.begin(), low);
    EXPECT_EQ(*seen.rbegin(), high);
  }
}

TEST(ProfilesTest, UniformCoversARangeAndNormalItsMiddle) {
  ops::TensorSpec spec = FloatTensor("x", {"n"});
  spec.domain.kind = ops::Domain::Kind::kRange;
  spec.domain.low = 2;
  spec.domain.high = 4;
  const Tensor uniform = Filled(spec, "uniform", DType::kF32, {4000});
  double low = 9;
  double high = 0;
  for (std::int64_t i = 0; i < uniform.elements; ++i) {
    low = std::min(low, uniform.At(i));
    high = std::max(high, uniform.At(i));
  }
  EXPECT_LT(low, 2.01);
  EXPECT_GT(high, 3.99);
}

TEST(ProfilesTest, GradedValuesHaveAllMagnitudesOfTheirRange) {
  ops::TensorSpec spec = FloatTensor("x", {"n"});
  spec.domain.kind = ops::Domain::Kind::kRange;
  spec.domain.low = 0;
  spec.domain.high = 1;
  const auto below = [&](double limit) {
    const Tensor graded = Filled(spec, "graded", DType::kF32, {4000});
    int count = 0;
    for (std::int64_t i = 0; i < graded.elements; ++i) count += graded.At(i) < limit ? 1 : 0;
    return count;
  };
  EXPECT_NEAR(below(0x1p-12), 2000, 200);
  EXPECT_NEAR(below(0x1p-6), 3000, 200);
  EXPECT_EQ(below(0x1p-24), 0);
  spec.domain.low = 0x1p-6;
  EXPECT_EQ(below(0x1p-6), 0);
  EXPECT_NEAR(below(0x1p-3), 2000, 200);
}

TEST(ProfilesTest, IndicesStayInBounds) {
  ops::TensorSpec spec = FloatTensor("ids", {"n"}, "i64");
  spec.domain.kind = ops::Domain::Kind::kIndex;
  for (const ProfileRow& row : AllProfiles()) {
    if (row.applies != InputClass::kIndex) continue;
    for (const std::int64_t bound : {1, 2, 3, 64, 1000}) {
      const Tensor tensor = Filled(spec, std::string(row.kind), DType::kI64, {257}, bound);
      for (std::int64_t i = 0; i < tensor.elements; ++i) {
        const std::int64_t index = LoadAsInt64(DType::kI64, tensor.Element(i));
        EXPECT_TRUE(index >= 0 && index < bound) << row.kind << " " << index << " of " << bound;
      }
    }
  }
}

std::map<std::int64_t, int> Histogram(const Tensor& tensor) {
  std::map<std::int64_t, int> counts;
  for (std::int64_t i = 0; i < tensor.elements; ++i)
    ++counts[LoadAsInt64(tensor.dtype, tensor.Element(i))];
  return counts;
}

TEST(ProfilesTest, IndexProfilesDoWhatTheySay) {
  ops::TensorSpec spec = FloatTensor("ids", {"n"}, "i64");
  spec.domain.kind = ops::Domain::Kind::kIndex;
  EXPECT_EQ(Histogram(Filled(spec, "permutation", DType::kI64, {97}, 97)).size(), 97u);
  EXPECT_EQ(Histogram(Filled(spec, "all_equal", DType::kI64, {97}, 97)).size(), 1u);
  const auto edges = Histogram(Filled(spec, "edges", DType::kI64, {97}, 97));
  EXPECT_EQ(edges.size(), 2u);
  EXPECT_TRUE(edges.contains(0) && edges.contains(96));
  // Zipf(1) over 1000: the hottest index gets about 1 / H(1000) = 13 % of the draws.
  const auto zipf = Histogram(Filled(spec, "zipf", DType::kI64, {20000}, 1000));
  EXPECT_NEAR(zipf.at(0), 2670, 300);
  EXPECT_GT(zipf.size(), 600u);
  const Tensor lanes = Filled(spec, "warp_duplicates", DType::kI64, {64}, 1000);
  std::set<std::int64_t> first_warp;
  for (std::int64_t i = 0; i < 32; ++i)
    first_warp.insert(LoadAsInt64(DType::kI64, lanes.Element(i)));
  EXPECT_EQ(first_warp.size(), 3u);
}

TEST(ProfilesTest, OneStepDownIsWhereItWasAskedFor) {
  ops::TensorSpec spec = FloatTensor("ids", {"n"}, "i64");
  spec.domain.kind = ops::Domain::Kind::kIndex;
  for (const std::int64_t place : {17, 32, 256}) {
    Tensor ids = Tensor::Create(DType::kI64, {390}).value();
    const Profile profile = {.kind = "sorted_but_one",
                             .parameters = {{"place", static_cast<double>(place)}},
                             .literal = {}};
    ASSERT_TRUE(Fill(spec, profile, 5, 37, ids));
    for (std::int64_t i = 1; i < ids.elements; ++i)
      EXPECT_EQ(ids.At(i) < ids.At(i - 1), i == place) << i;
    EXPECT_GE(ids.At(place - 1), ids.At(place));
  }
}

TEST(ProfilesTest, RippledRowsHaveTwoNeighbouringValues) {
  constexpr std::int64_t kRows = 8, kColumns = 2056;
  const Tensor rows =
      Filled(FloatTensor("x", {"m", "n"}), "rippled", DType::kBF16, {kRows, kColumns});
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::map<double, int> counts;
    for (std::int64_t i = 0; i < kColumns; ++i) ++counts[rows.At(row * kColumns + i)];
    ASSERT_EQ(counts.size(), 2u) << row;
    const auto [low, most] = *counts.begin();
    const auto [high, few] = *counts.rbegin();
    EXPECT_EQ(high - low, row % 2 == 0 ? 0.125 : 8) << row;
    EXPECT_GT(low, 100 * (high - low)) << row;
    EXPECT_LT(few, most / (row % 4 < 2 ? 48 : 144)) << row;
  }
}

TEST(ProfilesTest, ConstantIsNeverOneByDefault) {
  const ops::TensorSpec spec = FloatTensor("weight", {"n"});
  for (std::uint64_t stream = 0; stream < 50; ++stream) {
    const Tensor tensor = Filled(spec, "constant", DType::kF32, {4}, 0, stream);
    EXPECT_NE(tensor.At(0), 1.0);
    EXPECT_EQ(tensor.At(0), tensor.At(3));
  }
}

TEST(ProfilesTest, ExactProfilesAreSmallIntegers) {
  const Tensor tensor = Filled(FloatTensor("x", {"n"}), "integers", DType::kBF16, {500});
  for (std::int64_t i = 0; i < tensor.elements; ++i) {
    EXPECT_EQ(tensor.At(i), std::nearbyint(tensor.At(i)));
    EXPECT_LE(std::fabs(tensor.At(i)), 3);
  }
}

TEST(ProfilesTest, CancellingPairsNearlyCancel) {
  const Tensor tensor = Filled(FloatTensor("x", {"n"}), "cancelling", DType::kF32, {100});
  double sum = 0;
  double magnitudes = 0;
  for (std::int64_t i = 0; i < tensor.elements; ++i) {
    sum += tensor.At(i);
    magnitudes += std::fabs(tensor.At(i));
  }
  EXPECT_LT(std::fabs(sum), 1e-4 * magnitudes);
}

TEST(ProfilesTest, AbsorbingValuesCancelAlongRowsOrColumns) {
  constexpr std::int64_t kRows = 6, kColumns = 50;
  int along_rows = 0;
  for (std::uint64_t stream = 0; stream < 20; ++stream) {
    const Tensor tensor = Filled(FloatTensor("x", {"m", "n"}), "absorbing", DType::kF16,
                                 {kRows, kColumns}, 0, stream);
    std::vector<double> rows(kRows), columns(kColumns);
    int large = 0;
    for (std::int64_t i = 0; i < tensor.elements; ++i) {
      rows[static_cast<std::size_t>(i / kColumns)] += tensor.At(i);
      columns[static_cast<std::size_t>(i % kColumns)] += tensor.At(i);
      large += std::fabs(tensor.At(i)) >= 0x1p14 ? 1 : 0;
    }
    const bool by_row = large == 2 * kRows;
    EXPECT_TRUE(by_row || large == 2 * kColumns) << large;
    for (const double sum : by_row ? rows : columns) EXPECT_LT(std::fabs(sum), 200);
    along_rows += by_row ? 1 : 0;
  }
  EXPECT_GT(along_rows, 3);
  EXPECT_LT(along_rows, 17);
}

TEST(ProfilesTest, DenormalsAreDenormal) {
  const Tensor tensor = Filled(FloatTensor("x", {"n"}), "denormals", DType::kF16, {100});
  for (std::int64_t i = 0; i < tensor.elements; ++i) {
    EXPECT_LE(std::fabs(tensor.At(i)), MinNormal(DType::kF16));
  }
}

TEST(ProfilesTest, SpecialsAppearWhereAllowed) {
  ops::TensorSpec spec = FloatTensor("x", {"n"});
  spec.domain.allow_nan = true;
  int nans = 0;
  const Tensor tensor = Filled(spec, "specials", DType::kF32, {400});
  for (std::int64_t i = 0; i < tensor.elements; ++i) {
    nans += std::isnan(tensor.At(i)) ? 1 : 0;
    EXPECT_FALSE(std::isinf(tensor.At(i)));
  }
  EXPECT_GT(nans, 5);
}

TEST(ProfilesTest, MasksHidePartsOfRowsAndLeaveSomethingOfEach) {
  constexpr std::int64_t kRows = 64, kColumns = 40;
  ops::TensorSpec spec = FloatTensor("x", {"m", "n"});
  spec.domain.allow_infinity = true;
  const Tensor tensor = Filled(spec, "masked", DType::kF16, {kRows, kColumns});
  int hidden_in_front = 0, hidden_at_the_end = 0, shown_whole = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    int hidden = 0;
    for (std::int64_t column = 0; column < kColumns; ++column) {
      const double value = tensor.At(row * kColumns + column);
      ASSERT_TRUE(std::isfinite(value) || value == -std::numeric_limits<double>::infinity());
      hidden += std::isinf(value) ? 1 : 0;
    }
    EXPECT_LT(hidden, kColumns);
    hidden_in_front += std::isinf(tensor.At(row * kColumns)) ? 1 : 0;
    hidden_at_the_end += std::isinf(tensor.At((row + 1) * kColumns - 1)) ? 1 : 0;
    shown_whole += hidden == 0 ? 1 : 0;
  }
  EXPECT_GT(hidden_in_front, 8);
  EXPECT_GT(hidden_at_the_end, 8);
  EXPECT_LT(shown_whole, 8);
}

TEST(ProfilesTest, BandsGoThroughEachRowAndColumn) {
  for (const auto& [rows, columns] : {std::pair{40, 7}, std::pair{7, 40}, std::pair{1, 9}}) {
    const Tensor tensor =
        Filled(FloatTensor("x", {"h", "m", "n"}), "banded", DType::kF32, {2, rows, columns});
    std::vector<int> of_row(static_cast<std::size_t>(2 * rows)),
        of_column(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < tensor.elements; ++i) {
      if (tensor.At(i) == 0) continue;
      ++of_row[static_cast<std::size_t>(i / columns)];
      ++of_column[static_cast<std::size_t>(i % columns)];
    }
    const int wide = std::max(rows, columns), narrow = std::min(rows, columns);
    for (const int count : rows > columns ? of_column : of_row) {
      EXPECT_GE(count, wide / narrow);
      EXPECT_LE(count, 2 * (wide / narrow + 1));
    }
    for (const int count : rows > columns ? of_row : of_column)
      EXPECT_EQ(count, rows > columns ? 1 : 2);
  }
}

TEST(ProfilesTest, MisspelledKindsAreRefusedWithASuggestion) {
  const Status status =
      CheckProfile({.kind = "normla", .parameters = {}, .literal = {}}, InputClass::kFloat, "case");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().cure, testing::HasSubstr("normal"));
  EXPECT_FALSE(CheckProfile({.kind = "normal", .parameters = {{"men", 1}}, .literal = {}},
                            InputClass::kFloat, "case"));
  EXPECT_FALSE(
      CheckProfile({.kind = "zipf", .parameters = {}, .literal = {}}, InputClass::kFloat, "case"));
}

TEST(ProfilesTest, ElementsDoNotDependOnTheTensorsSize) {
  const ops::TensorSpec spec = FloatTensor("x", {"n"});
  const Tensor small = Filled(spec, "normal", DType::kF32, {10});
  const Tensor large = Filled(spec, "normal", DType::kF32, {1000});
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(small.At(i), large.At(i));
}

TEST(ProfilesTest, HugeZerosTouchNothing) {
  // 16 GiB: filling it would take the machine's memory.
  const Tensor tensor =
      Filled(FloatTensor("x", {"n"}), "zero", DType::kF32, {std::int64_t{1} << 32});
  EXPECT_EQ(tensor.At(tensor.elements - 1), 0);
}

TEST(ProfilesTest, HugeRangesAreSparseWhereTheyMayBeAndElseRefused) {
  ops::TensorSpec spec = FloatTensor("v", {"n"});
  spec.domain.kind = ops::Domain::Kind::kRange;
  spec.domain.high = 8;
  for (const char* kind : {"zero", "ends"}) {
    spec.domain.low = 0;
    const Tensor sparse = Filled(spec, kind, DType::kF32, {std::int64_t{1} << 33});
    EXPECT_EQ(sparse.At(std::int64_t{1} << 32), 0);
    spec.domain.low = 1;
    Tensor dense = Tensor::Create(DType::kF32, {std::int64_t{1} << 33}).value();
    const Status refused = Fill(spec, {.kind = kind, .parameters = {}, .literal = {}}, 1, 0, dense);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
    // A small one is filled.
    EXPECT_GE(Filled(spec, kind, DType::kF32, {50}).At(25), 1);
  }
}

TEST(ProfilesTest, ValuesThatAreFarApartMeetInOneLane) {
  for (const std::int64_t columns : {390, 1291}) {
    const Tensor matrix =
        Filled(FloatTensor("x", {"m", "n"}), "far_apart", DType::kBF16, {70, columns});
    // Five at least, a power of two apart: as far as can be.
    for (const std::int64_t row : {0, 1, 69}) {
      std::vector<std::int64_t> large;
      // One of two rows may be large as a whole.
      for (std::int64_t i = 0; i < columns; ++i) {
        if (matrix.At(row * columns + i) > 2 && matrix.At((row + 1) % 70 * columns + i) > 2)
          large.push_back(i);
      }
      ASSERT_GE(large.size(), 5u) << columns;
      for (const std::int64_t i : large) EXPECT_EQ((i - large[0]) % (columns == 390 ? 64 : 256), 0);
    }
    // And so are whole rows.
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < 70; ++row) {
      bool all = true;
      for (std::int64_t i = 0; i < columns; ++i) all = all && matrix.At(row * columns + i) > 2;
      if (all) rows.push_back(row);
    }
    ASSERT_GE(rows.size(), 5u);
    for (const std::int64_t row : rows) EXPECT_EQ((row - rows[0]) % 8, 0);
  }
  // Too few to be apart.
  const Tensor small = Filled(FloatTensor("x", {"n"}), "far_apart", DType::kF32, {9});
  for (std::int64_t i = 0; i < 9; ++i) EXPECT_LT(small.At(i), 1) << i;
}

TEST(ProfilesTest, OneValueOfEachRowStandsAlone) {
  constexpr std::int64_t kColumns = 1291;
  const auto lone = [](const Tensor& matrix, std::int64_t row, double least) {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < kColumns; ++i) {
      if (matrix.At(row * kColumns + i) > least) places.push_back(i);
    }
    return places;
  };
  const Tensor apart = Filled(FloatTensor("x", {"m", "n"}), "lone", DType::kF32, {6, kColumns});
  EXPECT_EQ(lone(apart, 0, 25), std::vector<std::int64_t>{0});
  EXPECT_EQ(lone(apart, 1, 25), std::vector<std::int64_t>{kColumns - 1});
  EXPECT_EQ(lone(apart, 2, 25).size(), 1u);
  // Beside which little of the others is kept, at different places.
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
    const Tensor spiked = Filled(FloatTensor("x", {"m", "n"}), "spiked", type, {6, kColumns});
    std::set<std::int64_t> places;
    for (std::int64_t row = 0; row < 6; ++row) {
      const auto place = lone(spiked, row, 1000);
      ASSERT_EQ(place.size(), 1u);
      places.insert(place[0]);
      const double spike = spiked.At(row * kColumns + place[0]);
      const std::int64_t other = (place[0] + 1) % kColumns;
      EXPECT_LT(std::fabs(spiked.At(row * kColumns + other)), spike * 0x1p-9);
    }
    EXPECT_GT(places.size(), 3u);
  }
}

TEST(ProfilesTest, LateRowsStandAtTheEndOfEachMatrixOrVector) {
  const Tensor matrices =
      Filled(FloatTensor("k", {"h", "n", "d"}), "late_row", DType::kF32, {3, 5, 4});
  for (std::int64_t i = 0; i < matrices.elements; ++i)
    EXPECT_EQ(matrices.At(i) > 50, i / 4 % 5 == 4) << i;
  const Tensor vector = Filled(FloatTensor("x", {"n"}), "late_row", DType::kF32, {9});
  for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(vector.At(i) > 50, i == 8) << i;
  // Those before are as small as they are asked to be.
  Tensor small = *Tensor::Create(DType::kF32, {9});
  const Profile profile{.kind = "late_row", .parameters = {{"rest", 0x1p-20}}, .literal = {}};
  ASSERT_TRUE(Fill(FloatTensor("x", {"n"}), profile, 3, 0, small));
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_LT(std::fabs(small.At(i)), 1e-4) << i;
  EXPECT_GT(small.At(8), 50);
}

TEST(ProfilesTest, TheFirstColumnOfEachMatrixRises) {
  constexpr std::int64_t kRows = 64;
  const Tensor matrices =
      Filled(FloatTensor("k", {"h", "n", "d"}), "rising", DType::kF32, {2, kRows, 3});
  for (std::int64_t i = 0; i < matrices.elements; ++i) {
    const double level = i % 3 == 0 ? 256.0 * static_cast<double>(i / 3 % kRows + 1) / kRows : 0;
    EXPECT_NEAR(matrices.At(i), level, 6) << i;
  }
  const Tensor vector = Filled(FloatTensor("x", {"n"}), "rising", DType::kF32, {kRows});
  for (std::int64_t i = 0; i < kRows; ++i)
    EXPECT_NEAR(vector.At(i), 4.0 * static_cast<double>(i + 1), 6) << i;
}

TEST(ProfilesTest, EndsFillsBothEndsAndTouchesNothingBetween) {
  const Tensor tensor =
      Filled(FloatTensor("x", {"n"}), "ends", DType::kF32, {std::int64_t{1} << 32});
  EXPECT_NE(tensor.At(0), 0);
  EXPECT_NE(tensor.At(tensor.elements - 1), 0);
  EXPECT_EQ(tensor.At(std::int64_t{1} << 31), 0);
  const Tensor small = Filled(FloatTensor("x", {"n"}), "ends", DType::kF32, {100});
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_NE(small.At(i), 0) << i;
  Tensor positive = *Tensor::Create(DType::kF32, {100});
  const Profile profile{.kind = "ends", .parameters = {{"signs", 0}}, .literal = {}};
  ASSERT_TRUE(Fill(FloatTensor("x", {"n"}), profile, 3, 0, positive));
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_GT(positive.At(i), 0) << i;
}

TEST(ProfilesTest, FrontFillsTheFrontAndNothingBehind) {
  const Tensor tensor =
      Filled(FloatTensor("x", {"n"}), "front", DType::kF32, {std::int64_t{1} << 32});
  for (const std::int64_t i : {std::int64_t{0}, kFrontElements - 1}) EXPECT_GT(tensor.At(i), 0);
  for (const std::int64_t i : {kFrontElements, tensor.elements - 1}) EXPECT_EQ(tensor.At(i), 0);
}

TEST(ProfilesTest, LargeTensorsRepeatWhatHasNoPlaceAndHoldEveryValue) {
  constexpr std::int64_t kElements = 5'000'000;
  const ops::TensorSpec spec = FloatTensor("x", {"n"});
  const std::int64_t period = static_cast<std::int64_t>(kPatternBytes) / 4;
  const Tensor cancelling = Filled(spec, "cancelling", DType::kF32, {kElements});
  const Tensor first = Filled(spec, "cancelling", DType::kF32, {period});
  for (std::int64_t i = 0; i < kElements; i += 997)
    ASSERT_EQ(cancelling.At(i), first.At(i % period)) << i;
  EXPECT_EQ(cancelling.At(kElements - 1), first.At((kElements - 1) % period));
  for (const char* kind : {"normal", "cancelling"}) {
    const Tensor large = Filled(spec, kind, DType::kF32, {kElements});
    for (std::int64_t i = 0; i + period < kElements; i += 997)
      ASSERT_EQ(large.At(i), large.At(i + period)) << kind << i;
    // Rows do not repeat at any power of two.
    for (std::int64_t step = 1; step < kElements / 2; step *= 2) {
      int same = 0;
      for (std::int64_t i = 0; i < 64; ++i) same += large.At(i) == large.At(i + step);
      EXPECT_LT(same, 8) << kind << step;
    }
  }
}

// A long row that is read a few pages from where it lies has another sum: so in a pattern that repeats, and past the
// places where an index of 32 bits wraps.
TEST(ProfilesTest, PagesOfPatchyTensorsTellThemselvesApart) {
  const std::int64_t elements = std::int64_t{1} << 26;
  const Tensor patchy = Filled(FloatTensor("x", {"n"}), "patchy", DType::kF32, {elements});
  constexpr std::int64_t kPage = static_cast<std::int64_t>(kPatternPage) / 4;
  constexpr std::int64_t kRow = 60 * kPage;
  const auto sum = [&](std::int64_t first) {
    double of_row = 0;
    for (std::int64_t i = 0; i < kRow; i += 16) of_row += patchy.At(first + i);
    return of_row * 16 / static_cast<double>(kRow);
  };
  for (const std::int64_t wrap : {std::int64_t{1} << 22, std::int64_t{1} << 24, elements / 2}) {
    int differ = 0;
    for (std::int64_t row = 1; row <= 16; ++row) {
      const std::int64_t first = elements - row * kRow;
      differ += std::abs(sum(first) - sum(first - wrap)) > 0.01 ? 1 : 0;
    }
    EXPECT_GE(differ, 12) << wrap;
  }
  // Levels stay within a page, whatever the type.
  const Tensor halves = Filled(FloatTensor("x", {"n"}), "patchy", DType::kF16, {4 * kPage});
  double first = 0, second = 0;
  for (std::int64_t i = 0; i < 2 * kPage; ++i) {
    first += halves.At(i);
    second += halves.At(2 * kPage + i);
  }
  EXPECT_GT(std::abs(first - second) / static_cast<double>(2 * kPage), 0.1);
}

TEST(ProfilesTest, LargeTensorsHoldWhatSmallOnesDrawInAnotherOrder) {
  constexpr std::int64_t kElements = 5'000'000;
  const std::int64_t period = static_cast<std::int64_t>(kPatternBytes) / 4;
  for (const char* kind : {"normal", "uniform", "integers", "mixed_exponents"}) {
    const Tensor large = Filled(FloatTensor("x", {"n"}), kind, DType::kF32, {kElements});
    const Tensor small = Filled(FloatTensor("x", {"n"}), kind, DType::kF32, {1 << 13});
    std::set<double> drawn, seen;
    for (std::int64_t i = 0; i < small.elements; ++i) drawn.insert(small.At(i));
    double sum = 0, of_small = 0, squares = 0, of_small_squares = 0;
    for (std::int64_t i = 0; i < period; ++i) {
      seen.insert(large.At(i));
      sum += large.At(i);
      squares += large.At(i) * large.At(i);
    }
    for (std::int64_t i = 0; i < small.elements; ++i) {
      of_small += small.At(i);
      of_small_squares += small.At(i) * small.At(i);
    }
    EXPECT_EQ(seen, drawn) << kind;
    const double times = static_cast<double>(period) / static_cast<double>(small.elements);
    EXPECT_NEAR(squares, times * of_small_squares, 0.02 * squares) << kind;
    EXPECT_NEAR(sum, times * of_small, 5 * std::sqrt(squares)) << kind;
    // Nor do two inputs have their equals at the same places.
    const Tensor other = Filled(FloatTensor("y", {"n"}), kind, DType::kF32, {kElements}, 0, 12);
    int alike = 0;
    if (std::string_view(kind) != "normal") continue;
    for (std::int64_t i = 1; i < 20'000; ++i)
      alike += large.At(i) == large.At(0) && other.At(i) == other.At(0);
    EXPECT_EQ(alike, 0) << kind;
  }
}

TEST(ProfilesTest, LargeTensorsAreScatteredFromFewNumbers) {
  const ops::TensorSpec spec = FloatTensor("x", {"n"});
  const auto distinct = [&](const char* kind, std::int64_t elements) {
    const Tensor tensor = Filled(spec, kind, DType::kF32, {elements});
    std::set<double> values;
    for (std::int64_t i = 0; i < tensor.elements; ++i) values.insert(tensor.At(i));
    return values.size();
  };
  constexpr std::int64_t kMostDrawn = (1 << 17) / 4;
  EXPECT_GT(distinct("normal", kMostDrawn), 32'000u) << "each is drawn";
  const std::size_t scattered = distinct("normal", 262'144);
  EXPECT_LE(scattered, 8'192u);
  EXPECT_GT(scattered, 8'100u) << "all of them";
  EXPECT_GT(distinct("sorted", 262'144), 200'000u) << "what hangs on its place is not scattered";
}

TEST(ProfilesTest, WhatHasAPlaceIsFilledElementByElement) {
  constexpr std::int64_t kElements = 3'000'000;
  const ops::TensorSpec spec = FloatTensor("x", {"n"});
  const Tensor sorted = Filled(spec, "sorted", DType::kF32, {kElements});
  for (std::int64_t i = 0; i + 100'000 < kElements; i += 100'000)
    ASSERT_LT(sorted.At(i), sorted.At(i + 100'000)) << i;
}

TEST(ProfilesTest, AliasesDifferInOneUpperBit) {
  ops::TensorSpec spec = FloatTensor("ids", {"n"}, "i64");
  spec.domain.kind = ops::Domain::Kind::kIndex;
  for (const std::int64_t bound : {1, 200, 100'000, 262'144}) {
    const Tensor ids = Filled(spec, "aliases", DType::kI64, {512}, bound);
    std::set<std::int64_t> apart;
    for (std::int64_t i = 0; i < ids.elements; i += 2) {
      const auto one = static_cast<std::int64_t>(ids.At(i));
      const auto other = static_cast<std::int64_t>(ids.At(i + 1));
      ASSERT_TRUE(0 <= one && one <= other && other < bound) << one << " " << other;
      apart.insert(other - one);
    }
    EXPECT_EQ(apart.contains(std::int64_t{1} << 16), bound > 1 << 16) << bound;
    EXPECT_EQ(apart.contains(std::int64_t{1} << 17), bound > 1 << 17) << bound;
  }
}

TEST(ProfilesTest, LandmarksNameTheMiddleOfTheRange) {
  ops::TensorSpec spec = FloatTensor("ids", {"n"}, "i64");
  spec.domain.kind = ops::Domain::Kind::kIndex;
  for (const std::int64_t bound : {1, 2, 1000, 128'256}) {
    const Tensor ids = Filled(spec, "landmarks", DType::kI64, {256}, bound);
    int middle = 0;
    for (std::int64_t i = 0; i < ids.elements; ++i) {
      ASSERT_GE(ids.At(i), 0);
      ASSERT_LT(ids.At(i), static_cast<double>(bound));
      middle += ids.At(i) == static_cast<double>(bound / 2);
    }
    EXPECT_GE(middle, 16) << bound;
  }
}

TEST(ProfilesTest, OpposedIntegersHaveSmallSumsThatAreExact) {
  constexpr std::int64_t kElements = 100 * 64 + 17;
  const Tensor tensor = Filled(FloatTensor("x", {"n"}), "opposed", DType::kBF16, {kElements});
  double sum = 0, of_stretch = 0, magnitudes = 0, largest = 0;
  for (std::int64_t i = 0; i < kElements; ++i) {
    const double value = tensor.At(i);
    EXPECT_EQ(value, std::floor(value));
    sum += value;
    of_stretch += value;
    magnitudes += std::fabs(value);
    if (i % 64 != 63) continue;
    largest = std::max(largest, std::fabs(of_stretch));
    of_stretch = 0;
  }
  EXPECT_LE(largest, 3);
  EXPECT_GT(largest, 0) << "what leaves out whole stretches is to show";
  EXPECT_LE(std::fabs(sum), 100 * 3 + 17 * 100);
  EXPECT_GT(magnitudes, 30.0 * kElements);
}

}  // namespace
}  // namespace assay::cases

#include "validator/cases/input_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "validator/cases/case.h"
#include "validator/cases/profiles.h"
#include "validator/cases/test_instance.h"

namespace assay::cases {
namespace {

Result<Tensor> Numbers(std::int64_t elements, double first) {
  auto tensor = Tensor::Create(DType::kF32, {elements});
  for (std::int64_t i = 0; tensor && i < elements; ++i)
    tensor->Set(i, first + static_cast<double>(i % 7));
  return tensor;
}

TEST(InputStore, DrawsOnceAndWritesReachNobodyElse) {
  InputStore store;
  int drawn = 0;
  const auto draw = [&] {
    ++drawn;
    return Numbers(100, 3);
  };
  auto one = *store.Get("a", draw);
  one.Set(5, -1);
  const auto other = *store.Get("a", draw);
  EXPECT_EQ(drawn, 1);
  EXPECT_EQ(one.At(5), -1);
  EXPECT_EQ(other.At(5), 8);
  EXPECT_EQ(other.shape, Shape{100});
  EXPECT_EQ(store.Get("b", [&] { return Numbers(3, 1); })->At(2), 3);
}

TEST(InputStore, WhatFailsIsNotKept) {
  InputStore store;
  EXPECT_FALSE(
      store.Get("a", []() -> Result<Tensor> { return Fail(ErrorKind::kLimit, "too large"); }));
  EXPECT_TRUE(store.Get("a", [] { return Numbers(3, 1); }));
}

// Where no more files may be open, inputs are drawn each time.
TEST(InputStore, WithoutFilesNothingIsLost) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto draw = [] { return Numbers(100, 3); };
  InputStore store;
  auto made = draw();
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  int drawn = 0;
  const auto again = store.Get("a", [&]() -> Result<Tensor> {
    ++drawn;
    return std::move(made);
  });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(again) << ToString(again.error());
  EXPECT_EQ(again->At(99), 4);
  EXPECT_EQ(drawn, 1);
  EXPECT_EQ(store.Get("a", draw)->At(1), 4);
}

// Every value of a case is the same as without a store: dense ones, sparse ones and those that repeat.
TEST(InputStore, ACaseIsTheSameFromIt) {
  const ops::Instance instance = GatherInstance();
  InputStore store;
  for (const char* kind : {"normal", "ends", "biased"}) {
    for (const std::int64_t table : {5, 3'000, 60'000}) {
      Case value{.axes = {{"rows", 5}, {"table", table}, {"columns", 64}},
                 .seed = 9,
                 .profiles = {},
                 .origin = {}};
      value.profiles["x"].kind = kind;
      const auto plain = MaterialisePlain(instance, value);
      ASSERT_TRUE(plain) << ToString(plain.error());
      for (int time = 0; time < 2; ++time) {
        const auto stored = MaterialisePlain(instance, value, &store);
        ASSERT_TRUE(stored) << ToString(stored.error());
        for (const auto& [name, tensor] : plain->inputs)
          EXPECT_FALSE(FirstDifference(tensor, stored->inputs.find(name)->second))
              << name << " " << kind << " " << table;
      }
      // Another seed, another case.
      value.seed = 10;
      const auto other = MaterialisePlain(instance, value, &store);
      ASSERT_TRUE(other);
      EXPECT_TRUE(
          FirstDifference(plain->inputs.find("x")->second, other->inputs.find("x")->second));
    }
  }
}

}  // namespace
}  // namespace assay::cases

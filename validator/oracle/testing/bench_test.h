// The base of test suites that judge with a LocalBench: one bench a suite, so that its compiler
// stays warm and its oracle's truths are shared.
//
//   class GeneratorTest : public BenchTest<> {};
//   TEST_F(GeneratorTest, ...) { bench_->oracle()... }
//   class ShippedOps : public BenchTest<::testing::TestWithParam<Shape>> {};
//
// A suite fails where there is no compiler: skipped, it would read as passed.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "validator/oracle/testing/local_bench.h"

namespace assay::oracle {

template <class Base = ::testing::Test>
class BenchTest : public Base {
 protected:
  static void SetUpTestSuite() {
    auto bench = LocalBench::Create();
    ASSERT_TRUE(bench.has_value()) << ToString(bench.error());
    bench_ = *std::move(bench);
  }
  static void TearDownTestSuite() { bench_.reset(); }

  static inline std::unique_ptr<LocalBench> bench_;
};

}  // namespace assay::oracle

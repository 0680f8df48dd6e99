#include "validator/verdict/regression_store.h"

#include <gtest/gtest.h>

#include "ops/test_folder.h"
#include "validator/gates/testing/fakes.h"

namespace assay::verdict {
namespace {

using campaign::DoubleInstance;
using campaign::FakeEngine;
using campaign::FakeRun;
using gates::FakeBench;
using gates::Judgement;

FakeEngine::Kernel WrongFrom(std::int64_t n) {
  return [n](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() == n) run.Floats("y")[0] = 7;
  };
}

TEST(RegressionStoreTest, WhatRefutedOnceRunsFirstForEver) {
  const ops::TestFolder folder("regressions");
  const RegressionStore store(folder.path());
  FakeBench first(WrongFrom(33));
  first.options.jobs = 1;  // Several begin more runs than are needed, now these and now those.
  const Judgement judgement = first.Judge();
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  ASSERT_TRUE(store.Add(first.instance, judgement.verdict));
  ASSERT_TRUE(store.Add(first.instance, judgement.verdict));
  EXPECT_EQ(store.Load(first.instance).size(), 1u);  // the same case is kept once

  FakeBench second(WrongFrom(33));
  second.options.jobs = 1;
  second.options.regressions = store.Load(second.instance);
  ASSERT_EQ(second.options.regressions.size(), 1u);
  const Judgement again = second.Judge();
  EXPECT_EQ(again.verdict.outcome, Outcome::kRefuted);
  EXPECT_LT(second.engine.runs, first.engine.runs);
}

TEST(RegressionStoreTest, HeldOutCasesAndTextAreNotKept) {
  const ops::TestFolder folder("regressions-holdout");
  const RegressionStore store(folder.path());
  FakeBench bench(WrongFrom(33));
  Verdict verdict = bench.Judge().verdict;
  for (GateResult& gate : verdict.gates) {
    for (Counterexample& counterexample : gate.counterexamples) counterexample.gate = "holdout";
  }
  ASSERT_TRUE(store.Add(bench.instance, verdict));
  EXPECT_TRUE(store.Load(bench.instance).empty());
}

TEST(RegressionStoreTest, BrokenFilesAreNamedAndSkipped) {
  const ops::TestFolder folder("regressions-broken");
  FakeBench bench(WrongFrom(33));
  const RegressionStore store(folder.path());
  ASSERT_TRUE(store.Add(bench.instance, bench.Judge().verdict));
  folder.Write(bench.instance.Id() + "/broken.json", "{");
  std::vector<Error> problems;
  EXPECT_EQ(store.Load(bench.instance, &problems).size(), 1u);
  EXPECT_EQ(problems.size(), 1u);
}

TEST(RegressionStoreTest, IsBounded) {
  const ops::TestFolder folder("regressions-bounded");
  const RegressionStore store(folder.path(), 2);
  for (const std::int64_t n : {2, 3, 32, 33, 128}) {
    FakeBench bench(WrongFrom(n));
    ASSERT_TRUE(store.Add(bench.instance, bench.Judge().verdict));
  }
  const auto known = store.Load(DoubleInstance());
  ASSERT_EQ(known.size(), 2u);
  EXPECT_LT(known[0].probe->case_.axes.at("n"), known[1].probe->case_.axes.at("n"));
}

}  // namespace
}  // namespace assay::verdict

// The kept kernel.hpp files as programs: what they say of shapes, plans, scalars and watching, without
// a driver. That they launch is tried on a GPU (python/tests/on_gpu.sh).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/dtype.h"
#include "base/rng.h"
#include "loaders/testdata/hostile.hpp"
#include "loaders/testdata/kernel.hpp"

namespace assay::loaders {
namespace {

namespace scatter = assay_kernels::scatter_add_T_bf16_sm_90;
namespace hostile = assay_kernels::plan_class_f32_sm_90;
using ::testing::HasSubstr;

template <class Act>
std::string Refusal(Act act) {
  try {
    act();
  } catch (const std::runtime_error& refused) {
    return refused.what();
  }
  return "taken";
}

scatter::Call CallOf(std::int64_t tokens, std::int64_t hidden, std::int64_t rows) {
  using scatter::DType;
  scatter::Call call;
  call.src = {nullptr, DType::bf16, {tokens, hidden}, {}};
  call.index = {nullptr, DType::i64, {tokens}, {}};
  call.out = {nullptr, DType::bf16, {rows, hidden}, {}};
  return call;
}

TEST(GoldenCpp, ThePlanIsTheOneOfTheShapes) {
  const scatter::Axes axes = scatter::solve(CallOf(5, 100, 7));
  EXPECT_EQ(axes.tokens, 5);
  EXPECT_EQ(axes.hidden, 100);
  EXPECT_EQ(axes.rows, 7);
  EXPECT_EQ(Refusal([&] { scatter::check_axes(axes); }), "taken");
  const scatter::Plan plan = scatter::plan_of(axes);
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.launches[0].grid, (std::array<std::int64_t, 3>{2, 1, 1}));
  EXPECT_EQ(plan.launches[1].grid, (std::array<std::int64_t, 3>{3, 1, 1}));
  EXPECT_EQ(plan.launches[0].block, (std::array<std::int64_t, 3>{256, 1, 1}));
  ASSERT_EQ(plan.workspace.size(), 1u);
  EXPECT_EQ(plan.workspace[0].shape, (std::vector<std::int64_t>{7, 100}));
  EXPECT_TRUE(plan.workspace[0].zero);
  EXPECT_EQ(Refusal([&] { scatter::check_plan(plan); }), "taken");
}

TEST(GoldenCpp, WhatTheCertificateDoesNotCoverIsRefusedWithTheCure) {
  const auto said = [](std::int64_t tokens, std::int64_t hidden, std::int64_t rows, bool strict) {
    return Refusal(
        [&] { scatter::check_axes(scatter::solve(CallOf(tokens, hidden, rows)), strict); });
  };
  EXPECT_EQ(said(1, 1, 1, true), "taken");
  EXPECT_EQ(said(1048576, 16384, 262144, false), "taken");
  EXPECT_THAT(
      said(0, 1, 1, false),
      HasSubstr(
          "tokens is 0, and scatter_add-T=bf16-sm_90 was vetted for 1 to 1048576\n  fix: split"));
  EXPECT_THAT(said(1, 16385, 1, false), HasSubstr("hidden is 16385"));
  // Seen whole, at its ends, in slices: each axis by itself.
  EXPECT_EQ(said(257, 4096, 1000, true), "taken");
  EXPECT_THAT(said(258, 1, 1, true), HasSubstr("tokens is 258, and the judge ran 257 at most"));
  EXPECT_THAT(said(1, 4097, 1, true), HasSubstr("the judge ran 4096 at most"));
  EXPECT_THAT(said(1, 1, 1001, true), HasSubstr("the judge ran 1000 at most"));
  EXPECT_THAT(Refusal([&] { scatter::check_axes(scatter::solve(CallOf(258, 1, 1))); }),
              HasSubstr("strict = false"))
      << "unless told otherwise";
  EXPECT_THAT(Refusal([] { scatter::solve({}); }), HasSubstr("too few dimensions"));
}

TEST(GoldenCpp, HostileNamesAreNamesAndScalarsHaveTheirDomain) {
  hostile::Call call;
  call.torch = {nullptr, hostile::DType::f32, {8, 8}, {}};
  call.shape = {nullptr, hostile::DType::i64, {4, 2}, {}};
  call.return_ = 1.5;
  call.Tensor_ = {nullptr, hostile::DType::f32, {20, 3}, {}};
  const hostile::Axes axes = hostile::solve(call);
  EXPECT_EQ(axes.lambda, 4);
  EXPECT_EQ(axes.int_, 5);
  EXPECT_EQ(axes.ceil_div, 4 * 2 - 5 % 3);
  EXPECT_EQ(axes.NULL_, 3);
  EXPECT_EQ(Refusal([&] { hostile::check_axes(axes); }), "taken");
  EXPECT_THAT(Refusal([&] { hostile::check_axes({3, 5, 4, 3, 2, 3}); }), HasSubstr("64 % lambda"));
  EXPECT_EQ(Refusal([&] { hostile::check_axes({0, 1, 0, 3, 2, 3}); }),
            "taken");  // decided on the left
  EXPECT_THAT(Refusal([&] { hostile::check_axes({0, 2, -2, 3, 2, 3}); }),
              HasSubstr("ceil_div >= 0"));
  const hostile::Plan plan = hostile::plan_of(axes);
  EXPECT_EQ(plan.launches[0].grid, (std::array<std::int64_t, 3>{4, 2, 1}));
  EXPECT_EQ(plan.tensor_maps[0].shape, (std::vector<std::int64_t>{5}));

  const auto operands = hostile::operands_of(call, axes);
  ASSERT_EQ(operands[2].name, "return");
  EXPECT_EQ(operands[0].shape, (std::vector<std::int64_t>{8, 8}));
  EXPECT_EQ(operands[2].domain.low, 0.5);
  EXPECT_EQ(operands[2].domain.high, 2);
}

// The runtime's small floats are those of base/dtype.
TEST(GoldenCpp, ScalarsHaveTheBytesThatTheJudgeGaveThem) {
  Rng rng(1);
  const std::pair<hostile::DType, DType> types[] = {{hostile::DType::bf16, DType::kBF16},
                                                    {hostile::DType::f16, DType::kF16},
                                                    {hostile::DType::f8e4m3, DType::kF8E4M3},
                                                    {hostile::DType::f8e5m2, DType::kF8E5M2}};
  for (int i = 0; i < 20000; ++i) {
    const double value = std::ldexp(rng.Normal(), static_cast<int>(rng.Between(-30, 18)));
    for (const auto& [theirs, ours] : types) {
      hostile::Operand operand;
      operand.dtype = theirs;
      operand.number = value;
      std::vector<unsigned char> wanted(SizeOf(ours));
      StoreFromDouble(ours, value, reinterpret_cast<std::byte*>(wanted.data()));
      const std::vector<unsigned char> packed = hostile::pack(operand);
      ASSERT_EQ(packed, wanted) << value << " as " << Name(ours);
      ASSERT_EQ(hostile::decode(theirs, packed.data()),
                LoadAsDouble(ours, reinterpret_cast<const std::byte*>(wanted.data())));
    }
  }
}

TEST(GoldenCpp, IntegersAreNarrowedWhereTheyFit) {
  hostile::Operand operand;
  operand.name = "n";
  const auto bytes = [&](std::int64_t value, std::size_t size) {
    operand.integer = value;
    return hostile::fit_scalar(operand, size);
  };
  EXPECT_EQ(bytes(258, 4), (std::vector<unsigned char>{2, 1, 0, 0}));
  EXPECT_EQ(bytes(-2, 2), (std::vector<unsigned char>{254, 255}));
  EXPECT_EQ(bytes(4294967295, 4).size(), 4u);
  EXPECT_THAT(Refusal([&] { bytes(4294967296, 4); }), HasSubstr("does not fit the 4 bytes"));
  EXPECT_THAT(Refusal([&] { bytes(-40000, 2); }), HasSubstr("does not fit"));
}

TEST(GoldenCpp, DigestsAreThoseOfTheCertificate) {
  for (const std::size_t size : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 1000u}) {
    const std::string text(size, 'a');
    EXPECT_EQ(hostile::sha256(text), Sha256Hex(text)) << size;
  }
}

TEST(GoldenCpp, AWatchChecksItsShareAndTellsWhenAllowancesAreExceeded) {
  using hostile::DType;
  hostile::Watch watch([](const hostile::Call&, void*) {}, 0.01, 7);
  int due = 0;
  for (int i = 0; i < 20000; ++i) due += watch.due() ? 1 : 0;
  EXPECT_GT(due, 140);
  EXPECT_LT(due, 260);
  EXPECT_EQ(watch.calls(), 20000u);

  std::vector<std::string> lines;
  watch.log = [&](const std::string& line) { lines.push_back(line); };
  const auto bytes = [](const std::vector<float>& values) {
    std::vector<unsigned char> all(values.size() * 4);
    std::memcpy(all.data(), values.data(), all.size());
    return all;
  };
  const float nan = std::nanf("");
  watch.compare("y", DType::f32, bytes({1, 2, nan}), bytes({1, 2.00001f, nan}));
  EXPECT_TRUE(lines.empty());
  EXPECT_EQ(watch.outputs().at("y").exceeded, 0u);
  EXPECT_LT(watch.outputs().at("y").bias, 0);
  watch.compare("y", DType::f32, bytes({1, 2.5f, 3}), bytes({1, 2, nan}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("plan-class=f32-sm_90: call 20000: y: 2 of 3 elements beyond"));
  EXPECT_EQ(watch.outputs().at("y").checked, 2u);
  EXPECT_THAT(
      watch.prometheus(),
      HasSubstr("assay_kernel_exceeded_total{instance=\"plan-class=f32-sm_90\",output=\"y\"} 1\n"));
  EXPECT_THAT(watch.prometheus(),
              HasSubstr("allowance_use{instance=\"plan-class=f32-sm_90\",output=\"y\"} +Inf\n"));
}

}  // namespace
}  // namespace assay::loaders

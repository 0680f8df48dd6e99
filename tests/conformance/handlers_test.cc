// What holds for every handler: inactive lanes keep their values, every processor level gives the
// same bits, perturbation is deterministic and stays within the documented bound, and what no row
// covers is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "tests/conformance/forms.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/inputs.h"
#include "validator/emu/handlers/levels.h"

namespace assay::conformance {
namespace {

using u64 = std::uint64_t;

std::vector<Form> AllForms() {
  const auto text = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/forms.txt");
  std::vector<Form> forms;
  for (Form& form : ParseForms(*text)) {
    if (!form.layout_probe && !form.wgmma) forms.push_back(std::move(form));
  }
  return forms;
}

Form OneForm(const std::string& line) { return ParseForms(line).at(0); }

TEST(Handlers, InactiveLanesKeepTheirValues) {
  constexpr std::uint32_t kExec = 0xa55a1234;
  for (const Form& form : AllForms()) {
    const auto inputs = InputsOf(form);
    const auto full = RunForm(form, inputs, {.background = 0xa5});
    const auto partial = RunForm(form, inputs, {.exec = kExec, .background = 0xa5});
    ASSERT_TRUE(full && partial) << form.name;
    if (!full->covered) continue;
    // mma reads all lanes whatever runs.
    int wrong = 0;
    std::size_t r = 0;
    for (const FormOperand& operand : form.destinations) {
      const int bits = RegisterBits(operand.kind);
      for (int i = 0; i < operand.registers(); ++i, ++r) {
        for (std::size_t thread = 0; thread < static_cast<std::size_t>(form.threads); ++thread) {
          const bool active = (kExec >> (thread % 32) & 1) != 0;
          const u64 pattern = 0xa5a5a5a5a5a5a5a5;
          const u64 kept = bits == 1    ? (0xa5a5a5a5u >> (thread % 32) & 1)
                           : bits == 64 ? pattern
                                        : pattern & ((u64{1} << bits) - 1);
          wrong += partial->values[r][thread] != (active ? full->values[r][thread] : kept) ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(wrong, 0) << form.name;
  }
}

TEST(Handlers, EveryLevelGivesTheSameBits) {
  const int levels = emu::SupportedLevels();
  for (const Form& form : AllForms()) {
    const auto inputs = InputsOf(form);
    const auto best = RunForm(form, inputs);
    ASSERT_TRUE(best) << form.name;
    if (!best->covered) continue;
    for (int level = 0; level + 1 < levels; ++level) {
      const auto other = RunForm(form, inputs, {.level = level});
      ASSERT_TRUE(other && other->covered) << form.name;
      EXPECT_EQ(other->values, best->values) << form.name << " at level " << level;
    }
  }
}

double F32(u64 bits) {
  return static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits)));
}

TEST(Handlers, PerturbationStaysWithinTheBound) {
  int forms = 0;
  for (const Form& form : AllForms()) {
    if (!form.bound.approximate() || form.destinations[0].kind != "f32") continue;
    const auto inputs = InputsOf(form);
    const auto plain = RunForm(form, inputs);
    const auto first = RunForm(form, inputs, {.seed = 1});
    const auto again = RunForm(form, inputs, {.seed = 1});
    const auto second = RunForm(form, inputs, {.seed = 2});
    ASSERT_TRUE(plain && first && again && second) << form.name;
    EXPECT_EQ(first->values, again->values) << form.name;
    EXPECT_NE(first->values, plain->values) << form.name;
    EXPECT_NE(first->values, second->values) << form.name;
    for (std::size_t thread = 0; thread < plain->values[0].size(); ++thread) {
      if (form.bound.within != 0 && !(std::fabs(F32(inputs[0][thread])) <= form.bound.within))
        continue;
      const double exact = F32(plain->values[0][thread]);
      const double moved = F32(first->values[0][thread]);
      if (!std::isfinite(exact)) {
        EXPECT_EQ(plain->values[0][thread], first->values[0][thread]) << form.name;
        continue;
      }
      const double ulp =
          std::ldexp(1.0, std::max(exact == 0 ? -126 : std::ilogb(exact), -126) - 23);
      // Both the chip's result and the perturbed one lie within the bound of the exact value.
      const double reach = 2 * std::max({form.bound.relative * std::fabs(exact),
                                         form.bound.absolute, form.bound.ulps * ulp}) +
                           ulp;
      EXPECT_LE(std::fabs(moved - exact), reach) << form.name << " thread " << thread;
    }
    ++forms;
  }
  EXPECT_GE(forms, 20);
}

/// What the chip returns exactly, as all recorded quotients by powers of two are, stays.
TEST(Handlers, PerturbationLeavesQuotientsByPowersOfTwo) {
  for (const char* const line : {"rcp.approx.f32 : f32 = f32", "div.approx.f32 : f32 = f32 f32",
                                 "div.full.f32 : f32 = f32 f32"}) {
    const Form form = OneForm(line);
    auto inputs = InputsOf(form);
    for (const bool powers : {true, false}) {
      for (std::size_t thread = 0; thread < inputs[0].size(); ++thread) {
        const float divisor = std::ldexp(powers ? 1.0f : 1.25f, static_cast<int>(thread % 60) - 30);
        inputs[0][thread] = __builtin_bit_cast(std::uint32_t, 3.0f + static_cast<float>(thread));
        inputs.back()[thread] = __builtin_bit_cast(std::uint32_t, divisor);
      }
      const auto plain = RunForm(form, inputs);
      const auto moved = RunForm(form, inputs, {.seed = 1});
      ASSERT_TRUE(plain && moved) << line;
      EXPECT_EQ(plain->values == moved->values, powers) << line;
    }
  }
}

TEST(Handlers, UnknownFormsAreRefused) {
  for (const char* const line : {
           "add.sat.u32 : u32 = u32 u32",  // No such modifier there.
           "add.rz.f16 : f16 = f16 f16",
           "fma.rn.bf16.f32 : f32 = bf16 bf16 f32",
           "lop3.xor.b32 $d0|$d1, $s0, $s1, $s2, 0x80, $s3; : u32 pred = u32 u32 u32 pred",
           "cvt.rs.f16x2.f32 : f16x2 = f32 f32",
           "setp.lt.b32 : pred = u32 u32",
           "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 : v4m.f32 = v4m.f16x2 v2m.f16x2 "
           "v4m.f32",
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 : v4m.f32 = v2m.f16x2 v2m.f16x2 "
           "v4m.f32",
           "mma.sync.aligned.m16n8k16.row.col.s32.f16.f16.s32 : v4s32 = v4m.f16x2 v2m.f16x2 v4s32",
       }) {
    const Form form = OneForm(line);
    const auto run = RunForm(form, InputsOf(form));
    // The parser may refuse it first.
    EXPECT_TRUE(!run || !run->covered) << line;
  }
}

struct Example {
  const char* form;
  std::vector<u64> inputs;
  std::vector<u64> outputs;
};

/// Forms that an H200 does not have: examples worked by hand.
TEST(Handlers, FormsOfLaterChips) {
  const Example examples[] = {
      // 1 + 2 and 0.5 + 0.25.
      {"add.rn.f32x2 : u64 = u64 u64",
       {0x3f0000003f800000, 0x3e80000040000000},
       {0x3f40000040400000}},
      {"mul.rn.ftz.f32x2 : u64 = u64 u64",
       {0x0000000140000000, 0x3f80000040400000},
       {0x0000000040c00000}},
      {"fma.rz.f32x2 : u64 = u64 u64 u64",
       {0x3f80000040000000, 0x4000000040400000, 0xbf8000003f800000},
       {0x3f80000040e00000}},
      // 1.5 (f16) + 2^-24: inexact, rounded up and to nearest.
      {"add.rp.f32.f16 : f32 = f16 f32", {0x3e00, 0x33800000}, {0x3fc00001}},
      {"add.rn.f32.f16 : f32 = f16 f32", {0x3e00, 0x33800000}, {0x3fc00000}},
      {"sub.sat.f32.bf16 : f32 = bf16 f32", {0x3f80, 0x40000000}, {0}},
      {"fma.rn.f32.bf16 : f32 = bf16 bf16 f32", {0x4000, 0x4040, 0x3f800000}, {0x40e00000}},
      {"max.f32 : f32 = f32 f32 f32", {0x3f800000, 0x7fc00000, 0x40000000}, {0x40000000}},
      {"min.NaN.f32 : f32 = f32 f32 f32", {0x3f800000, 0x7fc00000, 0x40000000}, {0x7fffffff}},
      {"min.f16 : f16 = f16 f16 f16", {0x3c00, 0x4000, 0xbc00}, {0xbc00}},
  };
  for (const Example& example : examples) {
    Form form = OneForm(example.form);
    form.threads = 32;
    std::vector<std::vector<u64>> inputs;
    for (const u64 value : example.inputs) inputs.emplace_back(32, value);
    const auto run = RunForm(form, inputs);
    ASSERT_TRUE(run) << example.form << ": " << ToString(run.error());
    ASSERT_TRUE(run->covered) << example.form;
    for (std::size_t r = 0; r < example.outputs.size(); ++r) {
      EXPECT_EQ(run->values[r][0], example.outputs[r])
          << example.form << std::hex << " got " << run->values[r][0];
    }
  }
}

}  // namespace
}  // namespace assay::conformance

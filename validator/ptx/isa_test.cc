#include "validator/ptx/isa.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "validator/ptx/isa_coverage.h"
#include "validator/ptx/isa_examples.h"
#include "validator/ptx/names.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier.h"

namespace assay::ptx {
namespace {

const Function& Kernel(const Module& module) {
  const Function* const kernel = module.FindFunction("kernel");
  EXPECT_NE(kernel, nullptr);
  return *kernel;
}

TEST(IsaTest, EveryCoveredOpcodeHasARow) {
  for (std::size_t i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const bool covered = FamilyOf(opcode) != Family::kUnsupported;
    EXPECT_EQ(!FormsOf(opcode).empty(), covered) << Mnemonic(opcode);
  }
}

TEST(IsaTest, EveryRowNamesItsSection) {
  for (const Form& form : Forms().subspan(1)) {
    EXPECT_TRUE(form.section.starts_with("9.7.")) << Text(form);
    EXPECT_GE(form.ptx_version, 10) << Text(form);
    EXPECT_GE(form.sm, 70) << Text(form);
  }
}

TEST(IsaTest, EveryRowGoesThroughParserVerifierAndPrinter) {
  const std::span<const Form> forms = Forms();
  std::size_t count = 0;
  for (std::size_t i = 1; i < forms.size(); ++i) {
    SCOPED_TRACE(Text(forms[i]));
    const std::vector<std::string> examples = Examples(forms[i]);
    ASSERT_FALSE(examples.empty());
    count += examples.size();
    const auto module = Parse(ExampleModule(forms[i], examples, forms[i].sm, 90), "example.ptx");
    ASSERT_TRUE(module) << ToString(module.error());
    const Status verified = Verify(*module, "example.ptx");
    ASSERT_TRUE(verified) << ToString(verified.error());
    // The examples are this row's, not an earlier one's: no row hides another. Calls before them
    // belong to the frame.
    const Function& kernel = Kernel(*module);
    std::size_t own = 0;
    for (const Instruction& in : kernel.body) own += in.form == i ? 1 : 0;
    EXPECT_GE(own, examples.size()) << examples.front();
    const auto again = Parse(Print(*module), "printed.ptx");
    ASSERT_TRUE(again) << ToString(again.error());
    EXPECT_TRUE(*again == *module);
  }
  EXPECT_GT(count, 4000u);
}

TEST(IsaTest, OperandsStandWithTheirRules) {
  const std::span<const Form> forms = Forms();
  for (std::size_t i = 1; i < forms.size(); ++i) {
    if (forms[i].opcode == Opcode::kCall) continue;
    const auto module =
        Parse(ExampleModule(forms[i], Examples(forms[i]), forms[i].sm, 90), "example.ptx");
    ASSERT_TRUE(module);
    for (const Instruction& in : Kernel(*module).body) {
      const OperandRules rules = RulesOf(in);
      if (in.opcode == Opcode::kCall) continue;
      ASSERT_EQ(rules.size(), in.operands.size()) << Text(forms[i]);
      for (std::size_t k = 0; k < rules.size(); ++k) {
        EXPECT_EQ(rules[k].paired, in.operands[k].paired) << Text(forms[i]);
        const bool address = in.operands[k].kind == Operand::Kind::kAddress;
        EXPECT_EQ(rules[k].body == OperandRule::Body::kAddress, address) << Text(forms[i]);
      }
    }
  }
}

/// What others read off a row holds for each of its examples: results stand in front, and every
/// operand has the width of the registers that fit there.
TEST(IsaTest, RowsSayHowWideOperandsAre) {
  constexpr int kWidths[] = {1, 16, 32, 64, 128};
  const std::span<const Form> forms = Forms();
  for (std::size_t i = 1; i < forms.size(); ++i) {
    SCOPED_TRACE(Text(forms[i]));
    const auto module =
        Parse(ExampleModule(forms[i], Examples(forms[i]), forms[i].sm, 90), "example.ptx");
    ASSERT_TRUE(module);
    const Function& kernel = Kernel(*module);
    for (const Instruction& in : kernel.body) {
      const OperandRules rules = RulesOf(in);
      for (std::size_t k = 0; k < rules.size(); ++k) {
        const OperandRule& rule = rules[k];
        EXPECT_EQ(rule.written, k < rules.written());
        EXPECT_TRUE(rule.written || rule.read);
        const int bits = BitsOf(rule, in, in.operands[k]);
        EXPECT_TRUE(std::ranges::find(kWidths, bits) != std::end(kWidths)) << bits;
        const auto holds = [&](const Operand& operand) {
          if (operand.kind != Operand::Kind::kRegister) return;
          const Type declared = kernel.registers[operand.reg].type;
          const int width = declared == Type::kPred ? 1 : std::max(16, BitsOf(declared));
          EXPECT_TRUE(rule.relaxed || rule.any_address || width == bits) << width << " " << bits;
        };
        holds(in.operands[k]);
        for (const Operand& element : in.operands[k].elements) {
          if (rule.body == OperandRule::Body::kValue) holds(element);
        }
      }
    }
  }
}

/// The columns of opcodes.def agree with each other and with what isa.def says of operands.
TEST(IsaTest, RowsSayWhatInstructionsDo) {
  for (const Form& form : Forms().subspan(1)) {
    SCOPED_TRACE(Text(form));
    bool loads = false;
    bool plain = true;
    for (const OperandRule& rule : form.operands) {
      loads = loads || rule.loads;
      plain = plain && !rule.mbarrier;
      const bool address =
          rule.body == OperandRule::Body::kAddress || rule.body == OperandRule::Body::kTensor;
      EXPECT_TRUE(address || (!rule.loads && !rule.stores && !rule.mbarrier));
    }
    const bool stores = WritesMemory(form);
    const bool result = !form.operands.empty() && form.operands[0].written;
    switch (form.rules.shadow) {
      case Shadow::kLoad:
        EXPECT_TRUE(loads && !stores && result);
        break;
      case Shadow::kStore:
        EXPECT_TRUE(stores && !loads && !result);
        break;
      case Shadow::kAtomic:
        EXPECT_TRUE(UpdatesMemory(form));
        break;
      case Shadow::kAsyncCopy:
        EXPECT_TRUE(loads && stores && !UpdatesMemory(form) && !result);
        break;
      case Shadow::kRows:
      case Shadow::kFragment:
        EXPECT_TRUE(loads != stores && loads == result);
        EXPECT_EQ(form.rules.effect, Effect::kWarp);
        break;
      case Shadow::kOpaque:
        EXPECT_TRUE(stores || result);
        break;
      default:
        // What touches memory otherwise has nothing to say of numbers.
        EXPECT_TRUE((!loads && !stores) || form.rules.shadow == Shadow::kPlain);
    }
    if (Leaves(form.rules.effect)) {
      EXPECT_FALSE(result || loads || stores);
    }
    if (form.rules.operation != Operation::kNone &&
        form.rules.operation != Operation::kUseAddress) {
      EXPECT_TRUE(result && !loads && !stores);
    }
    if (form.rules.definedness != Definedness::kWhole) {
      EXPECT_TRUE(result && !loads && !stores);
      EXPECT_NE(form.rules.definedness, Definedness::kPaired) << "is no answer of a row";
      EXPECT_NE(form.rules.definedness, Definedness::kDecided) << "is no answer of a row";
    }
    // Whatever is asked for as synchronisation of a block or between blocks is in these families.
    if (form.rules.effect == Effect::kBlock) {
      EXPECT_EQ(FamilyOf(form.opcode), Family::kBarrier);
    }
    EXPECT_EQ(form.rules.effect == Effect::kFence, FamilyOf(form.opcode) == Family::kFence);
    EXPECT_TRUE(plain || FamilyOf(form.opcode) == Family::kMbarrier ||
                FamilyOf(form.opcode) == Family::kAsyncCopy);
  }
}

TEST(IsaTest, MemoryRolesSayWhichSpaceAndHow) {
  struct Case {
    const char* text;
    const char* roles;  ///< Operand, space, r w m; blank between addresses.
  };
  constexpr Case kCases[] = {
      {"ld.shared.u32 %r0, [%r1];", "1 shared r"},
      {"st.global.u32 [%rd1], %r0;", "0 global w"},
      {"atom.global.add.u32 %r0, [%rd1], %r2;", "1 global rw"},
      {"red.add.u32 [%rd1], %r2;", "0 none rw"},
      {"cp.async.ca.shared.global [%r0], [%rd1], 8;", "0 shared w, 1 global r"},
      {"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %r1, [%r2];",
       "0 shared::cluster w, 2 shared rwm"},
      {"mbarrier.test_wait.shared.b64 %p0, [%r0], %rd1;", "1 shared rm"},
      {"prefetch.global.L2 [%rd1];", ""},
  };
  for (const Case& c : kCases) {
    const auto module = Parse(fmt::format(".version 9.0\n.target sm_90a\n.address_size 64\n"
                                          ".visible .entry kernel()\n{{\n.reg .pred %p<4>;\n"
                                          ".reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n{}\nret;\n}}\n",
                                          c.text),
                              "roles.ptx");
    ASSERT_TRUE(module) << ToString(module.error());
    std::string text;
    for (const MemoryRole& role : MemoryRoles(Kernel(*module).body[0])) {
      text += fmt::format("{}{} {} {}{}{}", text.empty() ? "" : ", ", role.operand,
                          role.space == Space::kGeneric ? "none" : Name(role.space),
                          role.reads ? "r" : "", role.writes ? "w" : "", role.mbarrier ? "m" : "");
    }
    EXPECT_EQ(text, c.roles) << c.text;
  }
}

/// An instruction of a form, with one register of another width in place of each register: no row
/// may take it.
TEST(IsaTest, WrongWidthsAreRefused) {
  struct Case {
    const char* text;
    bool good;
  };
  constexpr Case kCases[] = {
      {"add.s32 %r0, %r1, %r2;", true},
      {"add.s32 %r0, %rd1, %r2;", false},
      {"add.s32 %f0, %f1, %f2;", false},
      {"add.f32 %r0, %r1, %r2;", true},
      {"add.f32 %f0, %f1, 1;", false},
      {"add.f32 %f0, %f1, 0d3FF0000000000000;", true},
      {"add.s32 %r0, %r1, 0f3F800000;", false},
      {"add.f16 %rs0, %rs1, 0;", false},
      {"add.s32 %r0, %tid.x, 1;", false},
      {"mov.u32 %r0, %tid.x;", true},
      {"mov.u64 %rd0, %tid.x;", false},
      {"mov.u32 %r0, %clock64;", false},
      {"cvt.u64.u32 %rd0, %tid.x;", true},
      {"ld.global.u8 %rd0, [%rd1];", true},
      {"ld.global.u16 %rc0, [%rd1];", false},
      {"ld.global.f32 %fd0, [%rd1];", false},
      {"ld.global.u32 %r0, [%r1];", false},
      {"ld.shared.u32 %r0, [%r1];", true},
      {"ld.global.u32 %r0, [8];", false},
      {"ld.local.u32 %r0, [8];", true},
      {"ld.global.u32 %r0, [locals];", false},
      {"ld.u32 %r0, [locals];", true},
      {"ld.global.f32 {%f0}, [%rd1];", true},
      {"ld.global.v2.f32 {%f0}, [%rd1];", false},
      {"ld.global.v4.b64 {%rd0, %rd1, %rd2, %rd3}, [%rd4];", false},
      {"st.global.v2.f32 [%rd1], {%f0, _};", false},
      {"ld.global.v2.f32 {%f0, _}, [%rd1];", true},
      {"setp.lt.b32 %p0, %r0, %r1;", false},
      {"setp.lo.s32 %p0, %r0, %r1;", false},
      {"selp.b32 %r0, %r1, 2, !%p0;", true},
      {"selp.b32 %r0, %r1, 2, %r3;", false},
      {"shl.b64 %rd0, %rd1, %rd2;", false},
      {"mul.wide.u32 %rd0, %r1, %r2;", true},
      {"mul.wide.u32 %r0, %r1, %r2;", false},
      {"shfl.sync.idx.b32 %r0|%p0, %f1, 0, 31, -1;", true},
      {"shfl.sync.idx.b32 %r0, %p0, %r1, 0, 31, -1;", false},
      {"atom.global.add.s64 %rd0, [%rd1], %rd2;", false},
      {"atom.global.gpu.acq_rel.add.u32 %r0, [%rd1], %r2;", true},
      {"atom.add.acquire.gpu.u32.global %r0, [%rd1], %r2;", true},
      {"bar.sync 16;", false},
      {"bar.sync 0, 64;", true},
      {"lop3.b32 %r0, %r1, %r2, %r3, 256;", false},
      {"cp.async.cg.shared.global [%r0], [%rd1], 8;", false},
      {"cp.async.ca.shared.global [%r0], [%rd1], 12;", false},
      {"cp.async.ca.shared.global [%r0], [%rd1], 8;", true},
      {"mov.b64 {%r0, %r1}, %rd2;", true},
      {"mov.b64 {%r0, 5}, %rd2;", false},
      {"mov.b64 %rd2, {%r0, 5};", true},
      {"mov.b64 %rd2, {%rs0, %rs1};", false},
      {"mov.b64 {%r0, _}, %rd2;", true},
      {"add.s32 _, %r0, %r1;", false},
      {"ld.global.f16 %rs0, [%rd1];", false},
      {"not.pred %p0, !%p1;", true},
      {"and.b32 %p0, %p1, %p2;", false},
      {"and.pred %p0, !%p1, %p2;", true},
      {"cvt.f32.f16 %f0, %r1;", true},
      {"cvt.f32.bf16 %f0, %r1;", false},
      {"cvt.f16.f32 %rs0, %f1;", false},
      {"fma.f32 %f0, %f1, %f2, %f3;", false},
  };
  for (const Case& one : kCases) {
    const auto module = Parse(
        ExampleModule(Forms()[1], {one.text, "mov.b16 %rs0, {%rc0, %rc1};"}, 90, 90), "case.ptx");
    ASSERT_TRUE(module) << one.text << "\n" << ToString(module.error());
    const Status verified = Verify(*module, "case.ptx");
    EXPECT_EQ(verified.has_value(), one.good)
        << one.text << "\n"
        << (verified ? "accepted" : ToString(verified.error()));
  }
}

TEST(IsaTest, CoverageDocumentHasEveryForm) {
  const std::string document = CoverageDocument([](const Form& form) {
    return Taken{form.opcode == Opcode::kAdd ? 2u : form.opcode == Opcode::kSub ? 1u : 0u, 2};
  });
  std::size_t lines = 0;
  for (std::size_t at = document.find("\n| `"); at != std::string::npos;
       at = document.find("\n| `", at + 1)) {
    lines += document.compare(at, 5, "\n| `<") == 0 ? 0 : 1;
  }
  EXPECT_EQ(lines, Forms().size() - 1);
  EXPECT_NE(document.find("| `add{.sat}.s32 d, a, b` | 9.7.1.1 | 1.0 | any | yes |"),
            std::string::npos);
  EXPECT_NE(document.find("| `sub{.sat}.s32 d, a, b` | 9.7.1.2 | 1.0 | any | 1 of 2 spellings |"),
            std::string::npos);
  EXPECT_NE(document.find("| `mul.hi\\|lo.<int> d, a, b` | 9.7.1.3 | 1.0 | any | no |"),
            std::string::npos);
  EXPECT_EQ(CoverageDocument().find("executes"), std::string::npos);
}

}  // namespace
}  // namespace assay::ptx

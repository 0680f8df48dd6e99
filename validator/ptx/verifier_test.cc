#include "validator/ptx/verifier.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/rng.h"
#include "validator/ptx/isa.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/printer.h"

namespace assay::ptx {
namespace {

constexpr std::string_view kText = R"(.version 9.0
.target sm_90
.address_size 64
.file 1 "k.cu"
.global .align 8 .u64 table[2] = {0, table};
.func (.param .b32 r) f(.param .b32 a) { ret; }
.visible .entry k(.param .u64 x)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	.param .b32 q;
	.loc 1 2 3
	.loc 1 9 9, function_name $n, inlined_at 1 2 3
	ld.param.u64 %rd1, [x];
	@!%p1 bra $L;
	call (q), f, (q);
	mov.u64 %rd2, table;
	mov.u64 %rd3, f;
	proto: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (%r1), %rd3, (%r2), proto;
	ts: .branchtargets $L;
	brx.idx %r0, ts;
	ld.global.v2.u32 {%r2, %r3}, [table+8];
$L:
	ret;
}
)";

Module Good() {
  auto module = Parse(kText, "good.ptx");
  EXPECT_TRUE(module);
  return *std::move(module);
}

TEST(VerifierTest, AcceptsAGoodModule) { EXPECT_TRUE(Verify(Good())); }

/// Each damage by itself is found, named by place, and none makes the printer read out of bounds.
TEST(VerifierTest, FindsEachDamage) {
  using Damage = std::function<void(Module&)>;
  const auto body = [](Module& module) -> std::vector<Instruction>& {
    return module.functions[1].body;
  };
  const std::pair<const char*, Damage> damages[] = {
      {"version", [](Module& m) { m.version_major = 0; }},
      {"target", [](Module& m) { m.target.clear(); }},
      {"address size", [](Module& m) { m.address_bits = 48; }},
      {"form", [&](Module& m) { body(m)[0].form = 0; }},
      {"other form", [&](Module& m) { body(m)[0].form = 7; }},
      {"form out of range", [&](Module& m) { body(m)[0].form = 0xffff; }},
      {"register", [&](Module& m) { body(m)[0].operands[0].reg = 99; }},
      {"register width", [&](Module& m) { body(m)[3].operands[0].reg = 2; }},
      {"address register",
       [&](Module& m) {
         body(m)[0].operands[1].has_symbol = false;
         body(m)[0].operands[1].has_base_register = true;
         body(m)[0].operands[1].reg = 1u << 30;
       }},
      {"two bases", [&](Module& m) { body(m)[0].operands[1].has_base_register = true; }},
      {"symbol", [&](Module& m) { body(m)[0].operands[1].symbol.index = 77; }},
      {"module symbol", [&](Module& m) { body(m)[3].operands[1].symbol.index = 77; }},
      {"function", [&](Module& m) { body(m)[4].operands[1].function = 77; }},
      {"callee", [&](Module& m) { body(m)[2].operands[1].function = 77; }},
      {"called entry", [&](Module& m) { body(m)[2].operands[1].function = 1; }},
      {"call operands", [&](Module& m) { body(m)[2].operands.pop_back(); }},
      {"call list", [&](Module& m) { body(m)[2].operands[0].kind = Operand::Kind::kSink; }},
      {"call argument", [&](Module& m) { body(m)[2].operands[2].elements[0].symbol.index = 77; }},
      {"prototype", [&](Module& m) { body(m)[5].operands[3].target = 77; }},
      {"callee register", [&](Module& m) { body(m)[5].operands[1].reg = 2; }},
      {"call register", [&](Module& m) { body(m)[5].operands[0].elements[0].reg = 77; }},
      {"branch target", [&](Module& m) { body(m)[1].operands[0].target = 77; }},
      {"branch list", [&](Module& m) { body(m)[6].operands[1].targets[0] = 77; }},
      {"guard register", [&](Module& m) { body(m)[1].guard.predicate = 77; }},
      {"guard type", [&](Module& m) { body(m)[1].guard.predicate = 3; }},
      {"operand count", [&](Module& m) { body(m)[0].operands.pop_back(); }},
      {"too many operands", [&](Module& m) { body(m)[0].operands.resize(300); }},
      {"vector count", [&](Module& m) { body(m)[7].operands[0].elements.pop_back(); }},
      {"nested vector",
       [&](Module& m) { body(m)[7].operands[0].elements[0].kind = Operand::Kind::kVector; }},
      {"paired", [&](Module& m) { body(m)[0].operands[0].paired = true; }},
      {"types", [&](Module& m) { body(m)[0].types.clear(); }},
      {"space", [&](Module& m) { body(m)[0].space = Space::kReg; }},
      {"width", [&](Module& m) { body(m)[0].vector_width = 3; }},
      {"modifier", [&](Module& m) { body(m)[0].mods.push_back(Mod::kSat); }},
      {"constant",
       [&](Module& m) {
         body(m)[3].operands[1] = {.kind = Operand::Kind::kImmediate, .immediate_type = Type::kF16};
       }},
      {"location", [&](Module& m) { body(m)[0].location = 77; }},
      {"location cycle", [](Module& m) { m.locations[0].inlined_at = 1; }},
      {"label", [](Module& m) { m.functions[1].labels[0].second = 77; }},
      {"parameter copies", [](Module& m) { m.functions[1].variables.clear(); }},
      {"alignment", [](Module& m) { m.variables[0].align = 3; }},
      {"zero alignment", [](Module& m) { m.functions[1].variables[1].align = 0; }},
      {"size", [](Module& m) { m.variables[0].bytes = 15; }},
      {"initialiser", [](Module& m) { m.variables[0].initialiser.resize(64); }},
      {"relocation target", [](Module& m) { m.variables[0].relocations[0].index = 77; }},
      {"relocation place",
       [](Module& m) { m.variables[0].relocations[0].offset = ~std::uint64_t{0}; }},
      {"relocation bytes", [](Module& m) { m.variables[0].relocations[0].bytes = 0; }},
      {"alias", [](Module& m) { m.functions[0].alias_of = 77; }},
  };
  for (const auto& [name, damage] : damages) {
    Module module = Good();
    damage(module);
    const Status verified = Verify(module, "good.ptx");
    ASSERT_FALSE(verified) << name;
    EXPECT_TRUE(verified.error().place.starts_with("good.ptx:")) << name;
    for (const Instruction& in : module.functions[1].body) {
      EXPECT_FALSE(PrintInstruction(module, module.functions[1], in).empty()) << name;
    }
  }
}

TEST(VerifierTest, ErrorsShowTheInstructionAndTheForm) {
  Module module = Good();
  module.functions[1].body[3].operands[0].reg = 3;
  const Status verified = Verify(module, "k.ptx");
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().place, "k.ptx:18");
  EXPECT_EQ(verified.error().message,
            "'mov.u64 %r1, table': operand 1 has the wrong type or width (%r1 is .b32)");
  EXPECT_EQ(verified.error().cure,
            "the form is: mov.b32|u32|s32|b64|u64|s64 d, a (PTX ISA 9.7.9.3)");
}

/// Random indices in random places: whatever Verify says, nothing reads out of bounds.
TEST(VerifierTest, RandomDamageIsSurvived) {
  Rng random(7);
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Module module = Good();
    std::vector<Instruction>& body = module.functions[1].body;
    Instruction& in = body[random.Next() % body.size()];
    for (int i = 0; i < 2 && !in.operands.empty(); ++i) {
      Operand& operand = in.operands[random.Next() % in.operands.size()];
      const auto value = static_cast<std::uint32_t>(random.Next() % 12);
      switch (random.Next() % 10) {
        case 0:
          operand.kind = static_cast<Operand::Kind>(random.Next() % 13);
          break;
        case 1:
          operand.reg = value;
          break;
        case 2:
          operand.symbol = {static_cast<SymbolRef::Scope>(value & 1), value};
          break;
        case 3:
          operand.target = value;
          break;
        case 4:
          operand.function = value;
          break;
        case 5:
          operand.elements.resize(value % 5);
          break;
        case 6:
          operand.has_base_register = (value & 1) != 0;
          break;
        case 7:
          operand.has_symbol = (value & 1) != 0;
          break;
        case 8:
          in.opcode = static_cast<Opcode>(random.Next() % 100);
          break;
        case 9:
          in.form = static_cast<std::uint16_t>(random.Next() % 600);
          break;
      }
    }
    refused += Verify(module) ? 0 : 1;
    PrintInstruction(module, module.functions[1], in);
  }
  EXPECT_GT(refused, 5000u);
}

}  // namespace
}  // namespace assay::ptx

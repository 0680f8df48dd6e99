#include "validator/ptx/parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>

#include "validator/ptx/isa.h"
#include "validator/ptx/lexer.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier.h"

namespace assay::ptx {
namespace {

constexpr std::string_view kHead = ".version 9.0\n.target sm_90a\n.address_size 64\n";

Module MustParse(const std::string& body) {
  auto module = Parse(std::string(kHead) + body, "test.ptx");
  EXPECT_TRUE(module) << body << "\n" << ToString(module.error());
  return module ? *std::move(module) : Module{};
}

Error MustFail(const std::string& body) {
  const auto module = Parse(std::string(kHead) + body, "test.ptx");
  EXPECT_FALSE(module) << body;
  return module ? Error{} : module.error();
}

TEST(LexerTest, CutsDottedWordsAndNumbers) {
  Lexer lexer(".L1::evict_last %r1 0x1F 0b11 017 42U 0f3F800000 1.5e1 a:b \"s\\\"t\" <<");
  const auto next = [&] { return lexer.Next(); };
  EXPECT_TRUE(next().IsDotted("L1::evict_last"));
  EXPECT_EQ(next().text, "%r1");
  EXPECT_EQ(next().bits, 31u);
  EXPECT_EQ(next().bits, 3u);
  EXPECT_EQ(next().bits, 15u);
  EXPECT_EQ(next().bits, 42u);
  const Token single = next();
  EXPECT_EQ(single.kind, Token::Kind::kFloat32);
  EXPECT_EQ(single.bits, 0x3f800000u);
  EXPECT_EQ(std::bit_cast<double>(next().bits), 15.0);
  EXPECT_EQ(next().text, "a");
  EXPECT_TRUE(next().Is(':'));
  EXPECT_EQ(next().text, "b");
  EXPECT_EQ(next().text, "s\\\"t");
  EXPECT_TRUE(next().Is('l'));
  EXPECT_EQ(next().kind, Token::Kind::kEnd);
}

TEST(ParserTest, ParametersHaveTheirLayout) {
  const Module module = MustParse(
      ".entry k(.param .u8 a, .param .align 16 .b8 b[48], .param .u64 .ptr .global .align 8 c, "
      ".param .v4 .f32 d) { ret; }");
  const std::vector<Variable>& params = module.functions[0].params;
  ASSERT_EQ(params.size(), 4u);
  EXPECT_EQ(params[0].bytes, 1u);
  EXPECT_EQ(params[1].bytes, 48u);
  EXPECT_EQ(params[1].align, 16u);
  EXPECT_TRUE(params[2].is_pointer);
  EXPECT_EQ(params[2].pointee_space, Space::kGlobal);
  EXPECT_EQ(params[2].pointee_align, 8u);
  EXPECT_EQ(params[3].bytes, 16u);
  EXPECT_EQ(params[3].align, 16u);
  EXPECT_EQ(module.functions[0].variables, params);
}

TEST(ParserTest, InitialisersBecomeBytes) {
  const Module module = MustParse(
      ".global .u16 a[3] = {1, 0xFFFF, -2};\n.global .f32 b = 1.5;\n.global .f64 c = "
      "0f3FC00000;\n.global .f32 d = 3;\n"
      ".global .u32 e[2][2] = {{1}, {2, 3}};\n.global .u64 f[2] = {e+4, generic(a)};\n");
  const auto bytes = [&](std::size_t i) { return module.variables[i].initialiser; };
  std::uint16_t halves[3];
  ASSERT_EQ(bytes(0).size(), sizeof halves);
  std::memcpy(halves, bytes(0).data(), sizeof halves);
  EXPECT_EQ(halves[0], 1);
  EXPECT_EQ(halves[1], 0xffff);
  EXPECT_EQ(halves[2], 0xfffe);
  float single = 0;
  std::memcpy(&single, bytes(1).data(), 4);
  EXPECT_EQ(single, 1.5f);
  double wide = 0;
  std::memcpy(&wide, bytes(2).data(), 8);
  EXPECT_EQ(wide, 1.5);
  std::memcpy(&single, bytes(3).data(), 4);
  EXPECT_EQ(single, 3.0f);
  std::uint32_t words[4];
  ASSERT_EQ(bytes(4).size(), sizeof words);
  std::memcpy(words, bytes(4).data(), sizeof words);
  EXPECT_EQ(words[0], 1u);
  EXPECT_EQ(words[1], 0u);
  EXPECT_EQ(words[2], 2u);
  EXPECT_EQ(words[3], 3u);
  const std::vector<Relocation>& relocations = module.variables[5].relocations;
  ASSERT_EQ(relocations.size(), 2u);
  EXPECT_EQ(relocations[0],
            (Relocation{.offset = 0, .bytes = 8, .index = 4, .addend = 4, .generic = false}));
  EXPECT_EQ(relocations[1],
            (Relocation{.offset = 8, .bytes = 8, .index = 0, .addend = 0, .generic = true}));
}

TEST(ParserTest, MaskedBytesOfOneAddressAreOneRelocation) {
  const std::string list =
      "0xFF(x), 0xFF00(x), 0xFF0000(x), 0xFF000000(x), 0xFF00000000(x), 0xFF0000000000(x), "
      "0xFF000000000000(x), "
      "0xFF00000000000000(x)";
  const Module module = MustParse(".global .u32 x;\n.global .b8 y[9] = {7, " + list + "};");
  const std::vector<Relocation>& relocations = module.variables[1].relocations;
  ASSERT_EQ(relocations.size(), 1u);
  EXPECT_EQ(relocations[0].offset, 1u);
  EXPECT_EQ(relocations[0].bytes, 8);
}

TEST(ParserTest, ScopesHideAndReturn) {
  const Module module = MustParse(
      ".entry k() { .reg .u32 %r<3>; { .reg .u64 %r1; mov.u64 %r1, 0; mov.u32 %r2, 0; } mov.u32 "
      "%r1, 0; ret; }");
  const Function& function = module.functions[0];
  ASSERT_EQ(function.registers.size(), 4u);
  EXPECT_EQ(function.body[0].operands[0].reg, 3u);
  EXPECT_EQ(function.body[1].operands[0].reg, 2u);
  EXPECT_EQ(function.body[2].operands[0].reg, 1u);
  EXPECT_EQ(function.registers[3].name, "%r1$2");
  EXPECT_TRUE(Verify(module));
}

TEST(ParserTest, RangeNamesMayEndInDigits) {
  const Module module = MustParse(
      ".entry k() { .reg .u32 %p1<20>, %p<3>; mov.u32 %p12, %p2; mov.u32 %p119, %p10; ret; }");
  const Function& function = module.functions[0];
  EXPECT_EQ(function.body[0].operands[0].reg, 2u);
  EXPECT_EQ(function.body[0].operands[1].reg, 22u);
  EXPECT_EQ(function.body[1].operands[0].reg, 19u);
  EXPECT_EQ(function.body[1].operands[1].reg, 0u);
}

TEST(ParserTest, CallsHaveFourParts) {
  const Module module = MustParse(
      ".func f() { ret; } .entry k() { .reg .b64 %rd; p: .callprototype _ (); call f; call %rd, p; "
      "ret; }");
  const Function& kernel = module.functions[1];
  ASSERT_EQ(kernel.body[0].operands.size(), 3u);
  EXPECT_EQ(kernel.body[0].operands[0].kind, Operand::Kind::kParamList);
  EXPECT_EQ(kernel.body[0].operands[1].kind, Operand::Kind::kFunction);
  EXPECT_EQ(kernel.body[0].operands[2].kind, Operand::Kind::kParamList);
  ASSERT_EQ(kernel.body[1].operands.size(), 4u);
  EXPECT_EQ(kernel.body[1].operands[1].kind, Operand::Kind::kRegister);
  EXPECT_EQ(kernel.body[1].operands[3].kind, Operand::Kind::kPrototype);
  EXPECT_TRUE(Verify(module));
}

TEST(ParserTest, DeclarationsJoinTheirDefinitions) {
  const Module module = MustParse(
      ".weak .func f(.param .b32 a);\n.entry k() { ret; }\n.func f(.param .b32 b) { ret; }\n"
      ".extern .shared .align 16 .b8 s[];\n.extern .shared .align 16 .b8 s[];\n");
  ASSERT_EQ(module.functions.size(), 2u);
  EXPECT_TRUE(module.functions[0].has_body);
  EXPECT_TRUE(module.functions[0].is_weak);
  EXPECT_EQ(module.functions[0].params[0].name, "b");
  EXPECT_EQ(module.variables.size(), 1u);
}

TEST(ParserTest, CallSitesAreTheLatestLocationThere) {
  const Module module = MustParse(
      ".entry k() { .loc 1 5 1\n.loc 2 7 1, function_name $a, inlined_at 1 5 1\n.loc 3 9 1, "
      "function_name $b, inlined_at 2 7 1\n"
      "bar.sync 0;\n.loc 1 6 1\n.loc 2 7 1, function_name $a, inlined_at 1 6 1\n"
      ".loc 3 9 1, function_name $b, inlined_at 2 7 1\nret; }\n.section .debug_str { $a: .b8 "
      "97,0\n$b: .b8 98,0 }");
  const std::vector<Instruction>& body = module.functions[0].body;
  EXPECT_NE(body[0].location, body[1].location);
  EXPECT_EQ(UserFrame(module, body[0].location).line, 5u);
  EXPECT_EQ(UserFrame(module, body[1].location).line, 6u);
  EXPECT_EQ(module.locations[static_cast<std::size_t>(body[1].location)].function, "b");
  EXPECT_EQ(UserFrame(module, -1).line, 0u);
}

TEST(ParserTest, EachLimitFires) {
  EXPECT_EQ(MustFail(".entry k() { .reg .b32 %r<20000>; }").kind, ErrorKind::kLimit);
  EXPECT_EQ(MustFail(".global .b8 x[1099511627776][2];").kind, ErrorKind::kLimit);
  EXPECT_EQ(MustFail(".global .b8 x[4][65536] = {{1}, {1}, {1}, {1}};").kind, ErrorKind::kLimit);
  EXPECT_EQ(MustFail(".global .u32 x = " + std::string(70, '-') + "1;").kind, ErrorKind::kLimit);
  EXPECT_EQ(MustFail(".entry k() " + std::string(70, '{')).kind, ErrorKind::kLimit);
  EXPECT_EQ(MustFail(".file 70000 \"x\"").kind, ErrorKind::kLimit);
  std::string dimensions;
  for (int i = 0; i < 20; ++i) dimensions += "[1]";
  EXPECT_EQ(MustFail(".global .b8 x" + dimensions + ";").kind, ErrorKind::kLimit);
  std::string branches = ".entry k() { .reg .u32 %r; t: .branchtargets L";
  for (int i = 0; i < 400; ++i) branches += ", L";
  branches += "; L:\n";
  for (int i = 0; i < 400; ++i) branches += "brx.idx %r, t;\n";
  EXPECT_EQ(MustFail(branches + "}").kind, ErrorKind::kLimit);
  const auto huge = Parse(std::string(kLimits.text_bytes + 1, ' '), "huge.ptx");
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind, ErrorKind::kLimit);
  // What is just below stays.
  MustParse(".entry k() { .reg .b32 %r<16384>; ret; }");
  const std::string long_comment = "//" + std::string(kLimits.registers, 'x') + "\n";
  const Module large = MustParse(long_comment + ".entry k() { .reg .b32 %r<1048576>; ret; }");
  EXPECT_EQ(large.functions[0].registers.size(), 1048576u);
  EXPECT_EQ(MustFail(long_comment + ".entry k() { .reg .b32 %r<1048576>, %s; }").kind,
            ErrorKind::kLimit);
  MustParse(".global .u32 x = " + std::string(60, '-') + "1;");
}

TEST(ParserTest, ErrorsNameTheirPlace) {
  const Error error = MustFail(".entry k()\n{\n\t.reg .b32 %r<2>;\n\tadd.s32 %r0, %r1, %r2;\n}");
  EXPECT_EQ(error.place, "test.ptx:7:20");
  EXPECT_EQ(
      error.message,
      "unknown register '%r2'\n     add.s32 %r0, %r1, %r2;\n                       ^ near here");
}

/// Every prefix and every text with one byte changed gives a module or an error with a place: never
/// a crash.
TEST(ParserTest, TruncatedAndDamagedTextsGiveLocatedErrors) {
  const std::string text =
      std::string(kHead) +
      ".file 1 \"k.cu\"\n.global .u32 t[2] = {1, 0f3F800000};\n.global .u64 p = generic(t)+4;\n"
      ".func (.param .b32 r) f(.param .b32 a) { ret; }\n"
      ".visible .entry k(.param .u64 x)\n.maxntid 128, 1, 1\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 "
      "%r<4>;\n"
      "\t.reg .b64 %rd<4>;\n\t.loc 1 2 3\n\tld.param.u64 %rd1, [x];\n\tsetp.eq.s32 %p1|%p0, %r1, "
      "5;\n"
      "\t@!%p1 bra $L;\n{ .param .b32 q; call (q), f, (q); }\n\tts: .branchtargets $L;\n\tbrx.idx "
      "%r0, ts;\n"
      "\tld.global.v2.u32 {%r2, %r3}, [%rd1+-8];\n$L:\n\tret;\n}\n"
      ".section .debug_str { $n: .b8 97, 0 }\n";
  ASSERT_TRUE(Parse(text, "t.ptx"));
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto module = Parse(std::string_view(text).substr(0, length), "t.ptx");
    EXPECT_TRUE(module || module.error().place.starts_with("t.ptx:")) << length;
  }
  std::size_t refused = 0;
  for (const char wrong : {'\0', '{', '}', '(', '.', '%', '9', '"', '\n', ',', '[', '\xff'}) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string damaged = text;
      damaged[i] = wrong;
      const auto module = Parse(damaged, "t.ptx");
      if (!module) {
        ++refused;
        EXPECT_TRUE(module.error().place.starts_with("t.ptx:")) << damaged;
        continue;
      }
      const Status verified = Verify(*module, "t.ptx");
      if (!verified) {
        EXPECT_TRUE(verified.error().place.starts_with("t.ptx:")) << damaged;
        continue;
      }
      const auto again = Parse(Print(*module), "printed.ptx");
      ASSERT_TRUE(again) << damaged << "\n" << ToString(again.error());
      EXPECT_TRUE(*again == *module) << damaged;
    }
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace assay::ptx

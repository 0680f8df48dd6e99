// Random programs against digests of what an H200 returned for them (h200_programs.json). Where the
// recorder's whole output is at hand, ASSAY_H200_PROGRAMS names it, and a difference names its
// register.
#include "tests/conformance/programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/inputs.h"
#include "tests/conformance/recorded.h"
#include "tests/conformance/run_kernel.h"

namespace assay::conformance {
namespace {

/// What ptxas 13.0 makes of some instructions where it sees more than one of them. Each was found by
/// writing the program as ptxas has it, until it ended as on the H200 bit for bit; so none is an error
/// of the emulator's, and none shows in an instruction by itself.
enum class Rewrite : std::uint8_t {
  kSetOutsideOfGuard,  ///< A guarded set to a float: set to integers, and converts |result| unguarded,
                       ///< the old value as well where the guard keeps it.
  kSwapped,  ///< The first two sources of f64 change places: of two NaNs the other is passed on.
  kNegatedFirst,  ///< f64 a - b as -b + a, likewise.
  kSame,          ///< min(x, x) and max(x, x) are x, also where x is a NaN that they would quieten.
  kSkipsAnInteger,  ///< cvt.sat.s32.s64 of cvt.rzi.s64.f16: one conversion to s32, in which NaN is 0.
  kDropped,  ///< abs.f16x2 of a saturated f32, whose sign is known: copied, lower half and all.
};
struct Rewritten {
  int program;
  int destination;  ///< Of the instruction: $d4 is 4.
  Rewrite how;
};
constexpr Rewritten kRewritten[] = {
    {17, 10, Rewrite::kSkipsAnInteger},
    {28, 8, Rewrite::kSwapped},
    {29, 17, Rewrite::kSwapped},
    {37, 6, Rewrite::kSame},
    {39, 9, Rewrite::kDropped},
    {39, 14, Rewrite::kSetOutsideOfGuard},
    {52, 13, Rewrite::kSetOutsideOfGuard},
    {54, 17, Rewrite::kSetOutsideOfGuard},
    {81, 20, Rewrite::kSwapped},
    {85, 17, Rewrite::kSwapped},
    {95, 0, Rewrite::kSetOutsideOfGuard},
    {98, 16, Rewrite::kSetOutsideOfGuard},
    {105, 13, Rewrite::kSwapped},
    {106, 4, Rewrite::kSetOutsideOfGuard},
    {111, 23, Rewrite::kSetOutsideOfGuard},
    {112, 21, Rewrite::kSetOutsideOfGuard},
    {116, 11, Rewrite::kSwapped},
    {127, 8, Rewrite::kNegatedFirst},
    {133, 16, Rewrite::kSetOutsideOfGuard},
    {141, 13, Rewrite::kSetOutsideOfGuard},
    {142, 4, Rewrite::kSetOutsideOfGuard},
    {145, 17, Rewrite::kSwapped},
    {164, 13, Rewrite::kSetOutsideOfGuard},
    {184, 13, Rewrite::kSetOutsideOfGuard},
    {196, 13, Rewrite::kSetOutsideOfGuard},
    {198, 9, Rewrite::kSetOutsideOfGuard},
    {199, 13, Rewrite::kSwapped},
    {209, 9, Rewrite::kSetOutsideOfGuard},
    {228, 23, Rewrite::kSwapped},
    {233, 14, Rewrite::kSetOutsideOfGuard},
    {234, 3, Rewrite::kSetOutsideOfGuard},
    {243, 15, Rewrite::kSetOutsideOfGuard},
    {244, 15, Rewrite::kSetOutsideOfGuard},
    {247, 10, Rewrite::kSetOutsideOfGuard},
    {254, 10, Rewrite::kSetOutsideOfGuard},
    {261, 11, Rewrite::kSetOutsideOfGuard},
    {271, 18, Rewrite::kNegatedFirst},
    {278, 14, Rewrite::kSetOutsideOfGuard},
    {282, 10, Rewrite::kNegatedFirst},
    {283, 20, Rewrite::kSame},
    {285, 14, Rewrite::kSetOutsideOfGuard},
    {287, 11, Rewrite::kSwapped},
    {301, 23, Rewrite::kSetOutsideOfGuard},
    {304, 20, Rewrite::kSetOutsideOfGuard},
    {307, 0, Rewrite::kSame},
    {322, 5, Rewrite::kSame},
    {351, 15, Rewrite::kSetOutsideOfGuard},
    {390, 19, Rewrite::kSetOutsideOfGuard},
};

/// A statement in parts: "@$s1 ", "set.ne.f32.u32", {"$d3", "$s0", "$s2"}.
struct Statement {
  std::string guard, opcode;
  std::vector<std::string> operands;
};

Statement Cut(std::string_view text) {
  Statement cut;
  if (text.starts_with('@')) {
    cut.guard = text.substr(0, text.find(' ') + 1);
    text.remove_prefix(cut.guard.size());
  }
  cut.opcode = text.substr(0, text.find(' '));
  text.remove_prefix(cut.opcode.size() + 1);
  while (true) {
    const std::size_t comma = std::min(text.find(", "), text.size());
    cut.operands.emplace_back(text.substr(0, comma));
    if (comma == text.size()) return cut;
    text.remove_prefix(comma + 2);
  }
}

std::string RewrittenStatement(const Statement& in, Rewrite how) {
  const std::string& d = in.operands[0];
  std::string rest;
  for (std::size_t i = 1; i < in.operands.size(); ++i) rest += ", " + in.operands[i];
  switch (how) {
    case Rewrite::kSetOutsideOfGuard: {
      for (const auto& [type, bits] : {std::pair{"bf16", "16"}, {"f16", "16"}, {"f32", "32"}}) {
        const std::size_t at = in.opcode.find(std::string(".") + type + ".");
        if (at == std::string::npos) continue;
        std::string opcode = in.opcode;
        opcode.replace(at + 1, std::strlen(type), std::string("u") + bits);
        return in.guard + opcode + " " + d + rest + "; abs.s" + bits + " " + d + ", " + d +
               "; cvt.rn." + type + ".s" + bits + " " + d + ", " + d;
      }
      return "";
    }
    case Rewrite::kSwapped: {
      Statement swapped = in;
      std::swap(swapped.operands[1], swapped.operands[2]);
      rest.clear();
      for (std::size_t i = 1; i < in.operands.size(); ++i) rest += ", " + swapped.operands[i];
      return in.guard + in.opcode + " " + d + rest;
    }
    case Rewrite::kNegatedFirst:
      return in.guard + "neg.f64 " + d + ", " + in.operands[2] + "; " + in.guard + "add" +
             in.opcode.substr(3) + " " + d + ", " + d + ", " + in.operands[1];
    case Rewrite::kSame:
      return in.guard + "mov.b" + (in.opcode.ends_with("64") ? "64 " : "32 ") + d + ", " +
             in.operands[1];
    case Rewrite::kSkipsAnInteger:
      return "cvt.rzi.s32.f16 " + d + ", $s0";
    case Rewrite::kDropped:
      return in.guard + "mov.b32 " + d + rest;
  }
  return "";
}

/// `program` as ptxas has it; unchanged where it does nothing to it.
Form AsAssembled(Form program, int number) {
  for (const Rewritten& rewritten : kRewritten) {
    if (rewritten.program != number) continue;
    const std::string destination = " $d" + std::to_string(rewritten.destination) + ",";
    // The last that writes it, not one that reads it: the one before copies what a guard keeps.
    std::size_t at = program.instruction.rfind(destination);
    while (program.instruction[at - 1] == ',') at = program.instruction.rfind(destination, at - 1);
    const std::size_t before = program.instruction.rfind("; ", at);
    const std::size_t start = before == std::string::npos ? 0 : before + 2;
    const std::size_t end = program.instruction.find(';', at);
    const Statement statement =
        Cut(std::string_view(program.instruction).substr(start, end - start));
    program.instruction.replace(start, end - start, RewrittenStatement(statement, rewritten.how));
  }
  return program;
}

/// As the recorder packs them.
std::vector<std::uint8_t> Packed(const Form& form, const std::vector<std::byte>& out) {
  std::vector<std::uint8_t> packed;
  const std::vector<std::string> kinds = FlatKinds(form.destinations);
  for (std::size_t r = 0; r < kinds.size(); ++r) {
    for (std::size_t t = 0; t < static_cast<std::size_t>(form.threads); ++t) {
      const auto* const from =
          reinterpret_cast<const std::uint8_t*>(out.data() + r * kRegisterBytes + 8 * t);
      packed.insert(packed.end(), from, from + StoredBytes(kinds[r]));
    }
  }
  return packed;
}

/// The first destination that differs from the recorder's output at `recorded`.
std::string Difference(const Form& form, const std::vector<std::uint8_t>& packed,
                       std::string_view recorded) {
  std::size_t at = 0;
  const std::vector<std::string> kinds = FlatKinds(form.destinations);
  for (std::size_t r = 0; r < kinds.size(); ++r) {
    const auto bytes = static_cast<std::size_t>(StoredBytes(kinds[r]));
    for (std::size_t t = 0; t < static_cast<std::size_t>(form.threads); ++t, at += bytes) {
      if (at + bytes > recorded.size()) return "no such output";
      std::uint64_t emulated = 0;
      std::uint64_t hardware = 0;
      std::memcpy(&emulated, packed.data() + at, bytes);
      std::memcpy(&hardware, recorded.data() + at, bytes);
      if (emulated == hardware) continue;
      char text[96];
      std::snprintf(text, sizeof text, "$d%zu of thread %zu: emulator %llx, hardware %llx\n", r, t,
                    static_cast<unsigned long long>(emulated),
                    static_cast<unsigned long long>(hardware));
      return text;
    }
  }
  return {};
}

TEST(Programs, RandomOnesEndAsOnHardware) {
  const std::string folder = std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/";
  const auto text = ReadFile(folder + "forms.txt");
  const auto header_text = ReadFile(folder + "h200_programs.json");
  ASSERT_TRUE(text && header_text);
  const auto header = nlohmann::json::parse(*header_text, nullptr, false);
  ASSERT_TRUE(header.is_object());
  const std::vector<Form> programs = RandomPrograms(ParseForms(*text), kPrograms, kProgramSeed);
  ASSERT_EQ(header["forms"].size(), programs.size());
  const char* const whole = std::getenv("ASSAY_H200_PROGRAMS");
  const std::string outputs = whole != nullptr ? ReadFile(Path(whole)).value_or("") : "";
  std::size_t start = 0;
  int agree = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Form& program = programs[i];
    const auto inputs = InputsOf(program);
    const auto& row = header["forms"][i];
    ASSERT_EQ(row[0], program.name);
    ASSERT_EQ(row[1], DigestInputs(inputs)) << "record again: forms.txt has changed";
    const auto run = RunKernel(program, inputs);
    ASSERT_TRUE(run) << program.name << ": " << ToString(run.error());
    EXPECT_EQ(run->report.stop, Stop::kCompleted) << program.name << ": " << run->report.reason;
    EXPECT_TRUE(run->report.findings.empty())
        << program.name << ": " << run->report.findings[0].message;
    const std::vector<std::uint8_t> packed = Packed(program, run->out);
    const bool same = row[2] == DigestBytes(packed);
    const std::string_view recorded =
        start < outputs.size() ? std::string_view(outputs).substr(start) : std::string_view();
    start += packed.size();
    agree += same ? 1 : 0;
    if (std::ranges::find(kRewritten, static_cast<int>(i), &Rewritten::program) !=
        std::end(kRewritten)) {
      EXPECT_FALSE(same) << program.name << " agrees as it is: take it off the list";
      const Form assembled = AsAssembled(program, static_cast<int>(i));
      const auto again = RunKernel(assembled, inputs);
      ASSERT_TRUE(again) << program.name << ": " << ToString(again.error());
      EXPECT_EQ(row[2], DigestBytes(Packed(program, again->out)))
          << program.name << " as ptxas has it: " << assembled.instruction;
      continue;
    }
    EXPECT_TRUE(same) << program.name << ": "
                      << (recorded.empty() ? "" : Difference(program, packed, recorded))
                      << program.instruction;
  }
  std::printf(
      "random programs that end as on an H200: %d of %d, the others as ptxas rewrites them\n",
      agree, kPrograms);
}

TEST(Programs, AreAPureFunctionOfTheSeed) {
  const auto text = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/forms.txt");
  ASSERT_TRUE(text);
  const std::vector<Form> forms = ParseForms(*text);
  const auto first = RandomPrograms(forms, 3, 1);
  const auto again = RandomPrograms(forms, 2, 1);
  const auto other = RandomPrograms(forms, 2, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first[i].instruction, again[i].instruction);
    EXPECT_NE(first[i].instruction, other[i].instruction);
  }
}

}  // namespace
}  // namespace assay::conformance

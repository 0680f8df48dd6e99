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

/// Programs that end otherwise than on the H200. In those that were looked into, ptxas 13.0 is the
/// reason: it converts the destination of a guarded set to a float outside of the guard, takes
/// max(x, x) for x where x is a NaN, and puts operands of f64 instructions in an order of its own,
/// which decides whose NaN is passed on. Not all were: of 17 (cvt.sat.s32.s64) and 39 (abs.f16x2) the
/// reason is unknown.
constexpr int kKnownToDiffer[] = {17,  28,  29,  37,  39,  52,  54,  81,  85,  95,  98,  105,
                                  106, 111, 112, 116, 127, 133, 141, 142, 145, 164, 184, 196,
                                  198, 199, 209, 228, 233, 234, 243, 244, 247, 254, 261, 271,
                                  278, 282, 283, 285, 287, 301, 304, 307, 322, 351, 390};

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
    if (std::ranges::find(kKnownToDiffer, static_cast<int>(i)) != std::end(kKnownToDiffer)) {
      EXPECT_FALSE(same) << program.name << " agrees now: take it off the list";
      continue;
    }
    EXPECT_TRUE(same) << program.name << ": "
                      << (recorded.empty() ? "" : Difference(program, packed, recorded))
                      << program.instruction;
  }
  std::printf("random programs that end as on an H200: %d of %d\n", agree, kPrograms);
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

// Random programs against digests of what an H200 returned for them (h200_programs.json).
#include "tests/conformance/programs.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/inputs.h"
#include "tests/conformance/recorded.h"
#include "tests/conformance/run_kernel.h"

namespace assay::conformance {
namespace {

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

TEST(Programs, RandomOnesEndAsOnHardware) {
  const std::string folder = std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/";
  const auto text = ReadFile(folder + "forms.txt");
  const auto header_text = ReadFile(folder + "h200_programs.json");
  ASSERT_TRUE(text && header_text);
  const auto header = nlohmann::json::parse(*header_text, nullptr, false);
  ASSERT_TRUE(header.is_object());
  const std::vector<Form> programs = RandomPrograms(ParseForms(*text), kPrograms, kProgramSeed);
  ASSERT_EQ(header["forms"].size(), programs.size());
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
    const bool same = row[2] == DigestBytes(Packed(program, run->out));
    EXPECT_TRUE(same) << program.name << ": " << program.instruction;
    agree += same ? 1 : 0;
  }
  EXPECT_EQ(agree, kPrograms);
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

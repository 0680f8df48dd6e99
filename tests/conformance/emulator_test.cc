// The whole emulator against what an H200 returned: the very kernels that were recorded, parsed,
// decoded and run with all monitors, which must have nothing to say about them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "tests/conformance/recorded.h"
#include "tests/conformance/run_kernel.h"

namespace assay::conformance {
namespace {

std::string FamilyOf(const Form& form) {
  const std::string_view text = form.instruction;
  const std::size_t wgmma = text.find("wgmma.mma_async");
  const std::string_view name = wgmma == std::string_view::npos ? text : text.substr(wgmma);
  return std::string(name.substr(0, name.find_first_of(". ")));
}

TEST(EmulatorConformance, RecordedKernelsRunAsOnHardware) {
  const auto all = ReadRecorded(std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/");
  ASSERT_TRUE(all) << ToString(all.error());
  std::map<std::string, int> passed;
  int count = 0;
  for (const Recorded& recorded : *all) {
    const Form& form = recorded.form;
    const auto run = RunKernel(form, recorded.inputs);
    if (!run) {
      ADD_FAILURE() << form.name << ": " << ToString(run.error());
      continue;
    }
    EXPECT_EQ(run->report.stop, Stop::kCompleted) << form.name << ": " << run->report.reason;
    EXPECT_TRUE(run->report.findings.empty())
        << form.name << ": " << run->report.findings[0].message;
    const std::vector<std::string> kinds = FlatKinds(form.destinations);
    int wrong = 0;
    for (std::size_t r = 0; r < kinds.size(); ++r) {
      // A predicate is stored as a word.
      const auto bytes = RegisterBits(kinds[r]) == 1
                             ? std::size_t{4}
                             : static_cast<std::size_t>(StoredBytes(kinds[r]));
      for (std::size_t t = 0; t < static_cast<std::size_t>(form.threads); ++t) {
        std::uint64_t emulated = 0;
        std::memcpy(&emulated, run->out.data() + r * kRegisterBytes + 8 * t, bytes);
        const std::uint64_t hardware = recorded.outputs[r][t];
        const bool agrees = emulated == hardware ||
                            Within(form, kinds[r], emulated, hardware, recorded.inputs[0][t]);
        if (!agrees && wrong++ == 0) {
          ADD_FAILURE() << form.name << " thread " << t << " register " << r << ": emulator "
                        << std::hex << emulated << ", hardware " << hardware;
        }
      }
    }
    if (wrong == 0) ++passed[FamilyOf(form)], ++count;
  }
  EXPECT_EQ(count, static_cast<int>(all->size()));
  std::printf("whole kernels that run as on an H200: %d of %zu forms\n", count, all->size());
  for (const char* const name : {"match", "redux", "shfl", "vote", "wgmma", "wmma", "ldmatrix"})
    std::printf("  %s: %d\n", name, passed[name]);
}

}  // namespace
}  // namespace assay::conformance

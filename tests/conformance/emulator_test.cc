// The whole emulator against what an H200 returned: the very kernels that were recorded, parsed,
// decoded and run with all monitors, which must have nothing to say about them.
#include "validator/emu/emulator.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "tests/conformance/recorded.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kRegisterBytes = 8 * kMaxThreads;

Argument Pointer(std::uint32_t buffer) {
  Argument argument;
  argument.kind = Argument::Kind::kBuffer;
  argument.buffer = buffer;
  return argument;
}

struct KernelRun {
  Report report;
  std::vector<std::byte> out;
};

Result<KernelRun> RunKernel(const Recorded& recorded) {
  const Form& form = recorded.form;
  ASSAY_TRY(const auto program,
            emu::Program::Load(ModuleHeader() + WriteKernel(form, "form").text));
  std::vector<std::byte> in(kRegisterBytes * std::max<std::size_t>(1, recorded.inputs.size()));
  for (std::size_t r = 0; r < recorded.inputs.size(); ++r) {
    std::memcpy(in.data() + r * kRegisterBytes, recorded.inputs[r].data(),
                8 * recorded.inputs[r].size());
  }
  KernelRun run;
  run.out.resize(kRegisterBytes * recorded.outputs.size());
  const std::vector<std::uint8_t> probe = ProbeMemory();
  std::vector<std::byte> memory(probe.size());
  std::memcpy(memory.data(), probe.data(), probe.size());
  Execution execution;
  const auto add = [&](const char* name, const std::vector<std::byte>& bytes, BufferRole role) {
    BufferSpec spec;
    spec.name = name;
    spec.dtype = DType::kI64;
    spec.elements = static_cast<std::int64_t>(bytes.size() / 8);
    spec.role = role;
    execution.buffers.push_back(spec);
  };
  add("in", in, BufferRole::kInput);
  add("out", run.out, BufferRole::kOutput);
  add("memory", memory, BufferRole::kInput);
  Launch launch;
  launch.entry = "form";
  launch.block = {static_cast<std::uint32_t>(form.threads), 1, 1};
  launch.args = {Pointer(0), Pointer(1), Pointer(2)};
  execution.launches.push_back(launch);
  const std::span<std::byte> buffers[] = {in, run.out, memory};
  run.report = emu::Run(*program, execution, buffers);
  return run;
}

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
    const auto run = RunKernel(recorded);
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
                            (form.bound.approximate() &&
                             Within(form, kinds[r], emulated, hardware, recorded.inputs[0][t]));
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

#include "tests/conformance/run_kernel.h"

#include <algorithm>
#include <cstring>

#include "validator/emu/emulator.h"

namespace assay::conformance {
namespace {

Argument Pointer(std::uint32_t buffer) {
  Argument argument;
  argument.kind = Argument::Kind::kBuffer;
  argument.buffer = buffer;
  return argument;
}

}  // namespace

Result<KernelRun> RunKernel(const Form& form,
                            const std::vector<std::vector<std::uint64_t>>& inputs) {
  ASSAY_TRY(const auto program,
            emu::Program::Load(ModuleHeader() + WriteKernel(form, "form").text));
  std::vector<std::byte> in(kRegisterBytes * std::max<std::size_t>(1, inputs.size()));
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    std::memcpy(in.data() + r * kRegisterBytes, inputs[r].data(), 8 * inputs[r].size());
  }
  KernelRun run;
  std::size_t registers = 0;
  for (const FormOperand& operand : form.destinations)
    registers += static_cast<std::size_t>(operand.registers());
  run.out.resize(kRegisterBytes * registers);
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

}  // namespace assay::conformance

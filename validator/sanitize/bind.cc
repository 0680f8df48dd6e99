// From a launch file to an execution.
#include "validator/engine/bind.h"

#include <fmt/format.h>

#include "ops/host_headers.h"
#include "validator/sanitize/parts.h"

namespace assay::sanitize {
namespace {

BufferRole RoleOf(const ops::SanitizeBuffer& buffer) {
  switch (buffer.role) {
    case ops::SanitizeBuffer::Role::kInput:
      return BufferRole::kInput;
    case ops::SanitizeBuffer::Role::kOutput:
      return BufferRole::kOutput;
    case ops::SanitizeBuffer::Role::kPlain:
    case ops::SanitizeBuffer::Role::kWorkspace:
      break;
  }
  return BufferRole::kWorkspace;
}

Argument ArgumentOf(const ops::SanitizePlan& plan, const std::string& name) {
  Argument argument{.kind = Argument::Kind::kScalar, .name = name, .buffer = 0, .bytes = {}};
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].name != name) continue;
    argument.kind = Argument::Kind::kBuffer;
    argument.buffer = i;
  }
  for (const auto& map : plan.tensor_maps) {
    if (map.name != name) continue;
    argument.kind = Argument::Kind::kTensorMap;
    while (plan.buffers[argument.buffer].name != map.tensor) ++argument.buffer;
    argument.map = engine::MapOver(map, plan.buffers[argument.buffer].dtype);
  }
  for (const auto& scalar : plan.scalars) {
    if (scalar.name != name) continue;
    argument.bytes = scalar.Bytes();
    argument.dtype = scalar.dtype;
  }
  return argument;
}

}  // namespace

Result<Program> Load(const Job& job, engine::Compiler& compiler) {
  const Path path(job.file);
  if (path.extension() == ".ptx") return Program{.ptx = job.text, .lowered = {}};
  engine::CompileRequest request{.source = job.text,
                                 .file_name = path.filename().string(),
                                 .headers = ops::HostHeaders(),
                                 .pre_include = std::string(ops::kHostNames),
                                 .defines = {},
                                 .user_options = job.plan.options,
                                 .arch = job.arch,
                                 .entries = {},
                                 .want_cubin = false};
  for (const auto& kernel : job.plan.kernels) request.entries.push_back(kernel.entry);
  ASSAY_TRY(auto outcome, compiler.Compile(request));
  if (outcome.kind == engine::CompileOutcome::Kind::kCompiled) {
    return Program{.ptx = std::move(outcome.kernel.ptx),
                   .lowered = std::move(outcome.kernel.lowered)};
  }
  std::string log;
  for (const auto& diagnostic : outcome.diagnostics) {
    log += fmt::format("\n  {}:{}: {}", diagnostic.file, diagnostic.line, diagnostic.message);
  }
  const std::string status = outcome.detail.empty() ? "" : fmt::format(" ({})", outcome.detail);
  return Fail(ErrorKind::kMalformedInput, "the kernel does not compile" + status + log, job.file,
              "make it compile with NVRTC (device code only, no host headers)");
}

Execution Bind(const ops::SanitizePlan& plan, const Program& program) {
  Execution execution;
  execution.ptx = program.ptx;
  for (const auto& buffer : plan.buffers) {
    const bool undefined = buffer.init.kind == ops::BufferInit::Kind::kUninitialised;
    execution.buffers.push_back(
        {.name = buffer.name,
         .dtype = buffer.dtype,
         .elements = buffer.elements,
         .role = RoleOf(buffer),
         .fill = undefined ? BufferFill::kUninitialised : BufferFill::kProvided});
  }
  for (const auto& kernel : plan.kernels) {
    const auto lowered = program.lowered.find(kernel.entry);
    Launch launch{.entry = lowered == program.lowered.end() ? kernel.entry : lowered->second,
                  .grid = kernel.grid,
                  .block = kernel.block,
                  .cluster = kernel.cluster,
                  .shared_bytes = kernel.shared_bytes,
                  .cooperative = kernel.cooperative,
                  .args = {}};
    for (const std::string& name : kernel.args) launch.args.push_back(ArgumentOf(plan, name));
    execution.launches.push_back(std::move(launch));
  }
  return execution;
}

Result<std::vector<SharedMemory>> MakeBuffers(const ops::SanitizePlan& plan) {
  std::vector<SharedMemory> memories;
  for (const auto& buffer : plan.buffers) {
    const std::size_t bytes = static_cast<std::size_t>(buffer.elements) * SizeOf(buffer.dtype);
    ASSAY_TRY(SharedMemory memory, SharedMemory::Create(bytes, "assay-sanitize"));
    ASSAY_TRY_VOID(ops::FillBuffer(buffer, memory.bytes()));
    memories.push_back(std::move(memory));
  }
  return memories;
}

}  // namespace assay::sanitize

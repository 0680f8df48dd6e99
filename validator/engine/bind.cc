#include "validator/engine/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "validator/execution/numbered_blocks.h"

namespace assay::engine {
namespace {

using BufferIndex = std::map<std::string, std::uint32_t, std::less<>>;

// Adds the buffers and launches of one call. `freed`: the buffers that it takes over, by name.
class CallBinder {
 public:
  CallBinder(const ops::Instance& instance, const CompiledKernel& compiled, const Call& call,
             const BindOptions& options, std::string suffix, BufferIndex freed, Binding& binding)
      : instance_(instance),
        compiled_(compiled),
        call_(call),
        options_(options),
        suffix_(std::move(suffix)),
        freed_(std::move(freed)),
        first_launch_(static_cast<std::uint32_t>(binding.execution.launches.size())),
        binding_(binding),
        bound_(binding.calls.emplace_back()) {}

  Status Run() {
    ASSAY_TRY_VOID(AddInputs());
    ASSAY_TRY_VOID(AddOutputs());
    ASSAY_TRY_VOID(AddWorkspace());
    for (std::size_t time = 0; time < call_.times; ++time) {
      const std::size_t first = binding_.execution.launches.size();
      for (const ops::ResolvedKernel& kernel : call_.plan->kernels)
        ASSAY_TRY_VOID(AddLaunch(kernel));
      if (time > 0 && !call_.plan->kernels.empty())
        binding_.execution.launches[first].fresh = filled_;
    }
    return {};
  }

  /// By the plan's names.
  const BufferIndex& buffers() const { return index_; }

 private:
  void AddBuffer(const std::string& name, DType dtype, std::int64_t elements, BufferRole role,
                 BufferFill fill, SharedMemory& memory) {
    const auto size = static_cast<std::uint32_t>(SizeOf(dtype));
    // A tensor map can only be made of aligned memory.
    const ops::TensorSpec* output = instance_.op.FindOutput(name);
    const bool mapped = std::ranges::any_of(call_.plan->tensor_maps, [&](const auto& map) {
      return map.tensor == name || (output != nullptr && map.tensor == output->updates);
    });
    index_[name] = static_cast<std::uint32_t>(binding_.buffers.size());
    if (role != BufferRole::kInput) filled_.push_back(index_[name]);
    std::optional<BufferReuse> reuse;
    if (const auto freed = freed_.find(name); freed != freed_.end())
      reuse = BufferReuse{.buffer = freed->second, .launch = first_launch_};
    binding_.execution.buffers.push_back({.name = name + suffix_,
                                          .dtype = dtype,
                                          .elements = elements,
                                          .role = role,
                                          .fill = fill,
                                          .poison = options_.poison,
                                          .misalign = mapped ? 0 : options_.misalign / size * size,
                                          .reuse = reuse});
    binding_.buffers.push_back(&memory);
  }

  bool IsUpdated(const ops::TensorSpec& input) const {
    return std::ranges::any_of(instance_.op.outputs, [&](const ops::TensorSpec& output) {
      return output.updates == input.name;
    });
  }

  Status AddInputs() {
    for (const ops::TensorSpec& spec : instance_.op.inputs) {
      const auto found = call_.inputs->find(spec.name);
      if (found == call_.inputs->end()) {
        return Fail(ErrorKind::kInternal, "input '" + spec.name + "' was not materialised");
      }
      if (spec.is_scalar || IsUpdated(spec)) continue;
      // Engines take mutable memory for the sake of outputs; inputs are mapped copy-on-write.
      Tensor& tensor = const_cast<Tensor&>(found->second);
      AddBuffer(spec.name, tensor.dtype, tensor.elements, BufferRole::kInput, BufferFill::kProvided,
                tensor.memory);
    }
    return {};
  }

  Status AddOutputs() {
    for (const ops::TensorSpec& spec : instance_.op.outputs) {
      Shape shape;
      if (!spec.is_scalar) {
        ASSAY_TRY(shape, ops::ResolveShape(spec, *call_.axes));
      }
      const bool updates = !spec.updates.empty();
      const bool provided = updates && !options_.updates_nothing;
      ASSAY_TRY(Tensor tensor, provided ? call_.inputs->find(spec.updates)->second.Clone()
                                        : Tensor::Create(instance_.TypeOf(spec), std::move(shape)));
      Tensor& kept = bound_.outputs.emplace(spec.name, std::move(tensor)).first->second;
      bound_.buffer_of[spec.name] = binding_.buffers.size();
      AddBuffer(spec.name, kept.dtype, kept.elements, BufferRole::kOutput,
                provided ? BufferFill::kProvided : BufferFill::kUninitialised, kept.memory);
      // One piece of memory with two names.
      if (updates) index_[spec.updates] = index_[spec.name];
    }
    return {};
  }

  Status AddWorkspace() {
    // Pointers into this vector are handed out: it must not grow afterwards.
    bound_.workspace.reserve(call_.plan->workspace.size());
    for (const ops::ResolvedWorkspace& workspace : call_.plan->workspace) {
      std::size_t bytes = 0;
      if (workspace.elements < 0 ||
          __builtin_mul_overflow(static_cast<std::size_t>(workspace.elements),
                                 SizeOf(workspace.dtype), &bytes)) {
        return Fail(ErrorKind::kMalformedInput, "the workspace has more bytes than 64 bits count",
                    "launch.json: /workspace/" + workspace.name);
      }
      ASSAY_TRY(SharedMemory memory, SharedMemory::Create(bytes, "assay-workspace"));
      bound_.workspace.push_back(std::move(memory));
      AddBuffer(workspace.name, workspace.dtype, workspace.elements, BufferRole::kWorkspace,
                workspace.zero ? BufferFill::kZero : BufferFill::kUninitialised,
                bound_.workspace.back());
    }
    return {};
  }

  Status AddLaunch(const ops::ResolvedKernel& kernel) {
    const auto lowered = compiled_.lowered.find(kernel.entry);
    if (lowered == compiled_.lowered.end()) {
      return Fail(ErrorKind::kMalformedInput, "the kernel '" + kernel.entry + "' was not compiled",
                  "launch.json: /kernels", "name a __global__ function of kernel.cu");
    }
    // Each extent is one that a GPU takes (ops::Resolve); how many blocks they make together limits no GPU.
    const std::uint64_t blocks = std::uint64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
    if (blocks > kMostNumberedBlocks) {
      return Fail(ErrorKind::kLimit,
                  fmt::format("a grid of {} x {} x {} has more blocks than are numbered here ({})",
                              kernel.grid[0], kernel.grid[1], kernel.grid[2], kMostNumberedBlocks),
                  "launch.json: /kernels", "let a block take several turns");
    }
    Launch launch{.entry = lowered->second,
                  .grid = kernel.grid,
                  .block = kernel.block,
                  .cluster = kernel.cluster,
                  .shared_bytes = kernel.shared_bytes,
                  .cooperative = kernel.cooperative,
                  .args = {}};
    for (const std::string& name : kernel.args) {
      ASSAY_TRY(Argument argument, ArgumentFor(name, kernel.entry));
      launch.args.push_back(std::move(argument));
    }
    binding_.execution.launches.push_back(std::move(launch));
    return {};
  }

  Result<Argument> ArgumentFor(const std::string& name, const std::string& entry) const {
    Argument argument;
    argument.name = name;
    if (const auto buffer = index_.find(name); buffer != index_.end()) {
      argument.kind = Argument::Kind::kBuffer;
      argument.buffer = buffer->second;
      return argument;
    }
    if (const auto scalar = call_.inputs->find(name); scalar != call_.inputs->end()) {
      const Tensor& tensor = scalar->second;
      argument.dtype = tensor.dtype;
      argument.bytes.resize(SizeOf(tensor.dtype));
      std::memcpy(argument.bytes.data(), tensor.Element(0), argument.bytes.size());
      return argument;
    }
    if (const auto axis = call_.axes->find(name); axis != call_.axes->end()) {
      argument.dtype = DType::kI64;
      argument.bytes.resize(sizeof(std::int64_t));
      std::memcpy(argument.bytes.data(), &axis->second, argument.bytes.size());
      return argument;
    }
    for (const ops::ResolvedTensorMap& map : call_.plan->tensor_maps) {
      if (map.name != name) continue;
      argument.kind = Argument::Kind::kTensorMap;
      argument.buffer = index_.at(map.tensor);
      argument.map = MapOver(map, binding_.execution.buffers[argument.buffer].dtype);
      return argument;
    }
    return Fail(ErrorKind::kMalformedInput, "'" + name + "' is no tensor, scalar or axis of the op",
                "launch.json: args of " + entry);
  }

  const ops::Instance& instance_;
  const CompiledKernel& compiled_;
  const Call& call_;
  const BindOptions& options_;
  std::string suffix_;
  BufferIndex freed_;
  std::uint32_t first_launch_;
  Binding& binding_;
  BoundCall& bound_;
  BufferIndex index_;
  std::vector<std::uint32_t> filled_;  // Buffers that every call finds filled anew.
};

}  // namespace

TensorMapSpec MapOver(const ops::ResolvedTensorMap& map, DType dtype) {
  TensorMapSpec spec{.dtype = dtype,
                     .shape = map.shape,
                     .strides = map.strides,
                     .box = map.box,
                     .swizzle = map.swizzle,
                     .fill_nan = map.fill_nan};
  if (!spec.strides.empty()) return spec;
  std::uint64_t bytes = SizeOf(dtype);
  for (std::size_t d = 0; d + 1 < spec.shape.size(); ++d) {
    bytes *= spec.shape[d];
    spec.strides.push_back(bytes);
  }
  return spec;
}

Result<Binding> Bind(const ops::Instance& instance, const CompiledKernel& compiled,
                     std::span<const Call> calls, const BindOptions& options) {
  Binding binding;
  binding.execution.ptx = compiled.ptx;
  binding.execution.cubin = compiled.cubin;
  binding.execution.target_sm = instance.arch;
  binding.calls.reserve(calls.size());
  BufferIndex freed;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    // The judged call is the last one and keeps the plain names; earlier ones are numbered.
    // A call without kernels uses nothing, frees nothing and lies nowhere.
    if (calls[i].plan->kernels.empty()) freed.clear();
    const std::string suffix = i + 1 == calls.size() ? "" : "@call" + std::to_string(i + 1);
    CallBinder binder(instance, compiled, calls[i], options, suffix, std::move(freed), binding);
    ASSAY_TRY_VOID(binder.Run());
    const bool used = options.reuse_addresses && !calls[i].plan->kernels.empty();
    freed = used ? binder.buffers() : BufferIndex();
  }
  return binding;
}

}  // namespace assay::engine

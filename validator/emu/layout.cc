// Where variables lie: shared memory, frames, kernel parameters.
#include <algorithm>
#include <optional>

#include "validator/emu/address_space.h"
#include "validator/emu/program.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Space;

std::uint64_t AlignUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

bool IsShared(Space space) {
  return space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster;
}

/// Gives every shared variable an address range and storage of its own; unsized extern arrays all
/// name the dynamic part.
class SharedLayout {
 public:
  SharedLayout(Program::Impl& impl, bool compact) : impl_(impl), compact_(compact) {}

  PlacedVariable Place(const ptx::Variable& variable) {
    if (variable.bytes == 0) {
      dynamic_align_ = std::max<std::uint64_t>(dynamic_align_, variable.align);
      dynamic_element_ =
          std::max<std::uint32_t>(1, static_cast<std::uint32_t>(ptx::BitsOf(variable.type)) / 8);
      if (impl_.dynamic_shared == 0xffffffffu) {
        impl_.dynamic_shared = static_cast<std::uint32_t>(impl_.shared.size());
        impl_.shared.push_back({.name = SourceName(variable.name),
                                .element_bytes = dynamic_element_,
                                .dynamic = true});
      }
      std::uint64_t& align = impl_.shared[impl_.dynamic_shared].align;
      align = std::max<std::uint64_t>(align, variable.align);
      return {.where = PlacedVariable::Where::kShared, .shared = impl_.dynamic_shared};
    }
    const std::uint64_t align = std::max<std::uint64_t>(16, variable.align);
    storage_ = AlignUp(storage_, align);
    const auto index = static_cast<std::uint32_t>(impl_.shared.size());
    impl_.shared.push_back({.name = SourceName(variable.name),
                            .storage = storage_,
                            .bytes = variable.bytes,
                            .element_bytes = std::max<std::uint32_t>(
                                1, static_cast<std::uint32_t>(ptx::BitsOf(variable.type)) / 8),
                            .align = align});
    storage_ += variable.bytes;
    return {.where = PlacedVariable::Where::kShared, .bytes = variable.bytes, .shared = index};
  }

  void PlaceReserved() {
    reserved_ = impl_.shared.size();
    impl_.shared.push_back({.name = "reserved shared memory",
                            .storage = storage_,
                            .bytes = kReservedSharedBytes,
                            .element_bytes = 4,
                            .system = true});
    storage_ += kReservedSharedCapacity;
  }

  /// Addresses, once all variables are known.
  void Assign() {
    impl_.shared_static_bytes = AlignUp(storage_, dynamic_align_);
    for (std::size_t i = 0; i < impl_.shared.size(); ++i) {
      SharedVariable& variable = impl_.shared[i];
      if (variable.dynamic) variable.storage = impl_.shared_static_bytes;
      variable.address =
          compact_ ? kCompactSharedBase + variable.storage : (i + 1) << kSharedVariableBits;
    }
    if (reserved_) impl_.reserved_shared = impl_.shared[*reserved_].address;
  }

 private:
  Program::Impl& impl_;
  bool compact_;
  std::optional<std::size_t> reserved_;  ///< Index of what PlaceReserved placed.
  std::uint64_t storage_ = 0;
  std::uint32_t dynamic_element_ = 1;
  std::uint64_t dynamic_align_ = 128;  ///< What extern arrays ask for holds for their address.
};

/// Descriptors of wgmma hold 18 address bits, so that every variable must lie below 256 KiB.
bool NeedsCompactShared(const ptx::Module& module, std::size_t variables) {
  if (variables > kMaxSharedVariables) return true;
  for (const ptx::Function& function : module.functions) {
    for (const Instruction& in : function.body) {
      if (in.opcode == ptx::Opcode::kWgmmaMmaAsync) return true;
    }
  }
  return false;
}

bool NeedsReservedShared(const ptx::Module& module) {
  const auto asks = [](const ptx::Operand& operand) {
    if (operand.kind != ptx::Operand::Kind::kSpecial) return false;
    switch (operand.special) {
      case ptx::SpecialRegister::kReservedSmemOffsetBegin:
      case ptx::SpecialRegister::kReservedSmemOffsetEnd:
      case ptx::SpecialRegister::kReservedSmemOffset0:
      case ptx::SpecialRegister::kReservedSmemOffset1:
        return true;
      default:
        return false;
    }
  };
  return std::ranges::any_of(module.functions, [&](const ptx::Function& function) {
    return std::ranges::any_of(function.body, [&](const Instruction& in) {
      return std::ranges::any_of(in.operands, asks);
    });
  });
}

void PlaceFrame(const ptx::Function& function, FunctionCode& code, std::size_t first_free) {
  // Kernel parameters lie in memory of the launch; everything else that a function declares is in
  // its frame.
  std::uint64_t param = 0;
  std::uint64_t frame = 0;
  for (std::size_t i = 0; i < function.variables.size(); ++i) {
    const ptx::Variable& variable = function.variables[i];
    PlacedVariable& place = code.variables[i];
    if (place.where == PlacedVariable::Where::kShared) continue;
    const std::uint64_t align = std::max<std::uint64_t>(1, variable.align);
    place.bytes = variable.bytes;
    if (i < first_free && function.is_entry) {
      param = AlignUp(param, align);
      place.where = PlacedVariable::Where::kKernelParam;
      place.offset = param;
      param += variable.bytes;
      continue;
    }
    // A gap between variables makes an overrun visible.
    frame = AlignUp(frame, std::max<std::uint64_t>(16, align));
    place.where = PlacedVariable::Where::kFrame;
    place.offset = frame;
    code.in_frame.push_back(static_cast<std::uint32_t>(i));
    frame += variable.bytes + kFrameGap;
  }
  code.param_bytes = param;
  code.frame_bytes = AlignUp(frame, 128);
}

constexpr std::string_view kBuiltins[] = {"vprintf", "malloc", "free", "__assertfail"};

}  // namespace

void LayOut(Program::Impl& impl) {
  const ptx::Module& module = impl.module;
  std::size_t shared_count = 0;
  const auto count_shared = [&](const std::vector<ptx::Variable>& variables) {
    shared_count += static_cast<std::size_t>(
        std::ranges::count_if(variables, [](const ptx::Variable& v) { return IsShared(v.space); }));
  };
  count_shared(module.variables);
  for (const ptx::Function& function : module.functions) count_shared(function.variables);
  SharedLayout layout(impl, NeedsCompactShared(module, shared_count));
  if (NeedsReservedShared(module)) layout.PlaceReserved();

  impl.module_variables.resize(module.variables.size());
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    if (IsShared(module.variables[i].space))
      impl.module_variables[i] = layout.Place(module.variables[i]);
    impl.module_variables[i].name = SourceName(module.variables[i].name);
  }
  impl.functions.resize(module.functions.size());
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    FunctionCode& code = impl.functions[f];
    code.function = &function;
    code.variables.resize(function.variables.size());
    code.is_builtin =
        !function.has_body && std::ranges::find(kBuiltins, function.name) != std::end(kBuiltins);
    for (std::size_t i = 0; i < function.variables.size(); ++i) {
      if (IsShared(function.variables[i].space))
        code.variables[i] = layout.Place(function.variables[i]);
    }
  }
  layout.Assign();
  const auto set_shared_address = [&](PlacedVariable& place) {
    if (place.where == PlacedVariable::Where::kShared)
      place.offset = impl.shared[place.shared].address;
  };
  for (PlacedVariable& place : impl.module_variables) set_shared_address(place);
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    for (PlacedVariable& place : impl.functions[f].variables) set_shared_address(place);
    PlaceFrame(module.functions[f], impl.functions[f],
               module.functions[f].returns.size() + module.functions[f].params.size());
  }
}

const PlacedVariable* FunctionCode::FrameVariableAt(std::uint64_t offset) const {
  const auto after = std::ranges::upper_bound(
      in_frame, offset, {}, [this](std::uint32_t i) { return variables[i].offset; });
  if (after == in_frame.begin()) return nullptr;
  const PlacedVariable& place = variables[*(after - 1)];
  return offset - place.offset < place.bytes ? &place : nullptr;
}

}  // namespace assay::emu

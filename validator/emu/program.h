// A decoded program: what emu::Program holds. Internal to validator/emu.
//
// All functions lie in one flat array of Decoded; a program counter indexes it. Every function ends
// in a sentinel `ret`, so that running off its end and labels at its end need no test. Registers of
// a function are numbered slots (exec.h); immediates, special registers and addresses are constant
// slots that a frame fills when it is created.
//
// Immutable after Load, and shared by threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "validator/emu/emulator.h"
#include "validator/emu/exec.h"
#include "validator/ptx/module.h"

namespace assay::emu {

/// Decoded::flags.
enum DecodedFlag : std::uint16_t {
  kFlagControl =
      1,  ///< May change control flow, block or end lanes: runs even when no lane passes the guard.
  kFlagMemory = 2,           ///< May fault. May give the others a turn.
  kFlagVolatileSpecial = 4,  ///< Reads a clock: its constant slot is refreshed first.
  kFlagResultUsed = 8,       ///< Some instruction reads a destination register.
  kFlagOrderMatters = 16,    ///< Atomics and strong loads whose result may depend on the schedule.
  kFlagWarpWide = 32,        ///< .sync.aligned: waits for all lanes of the warp. With kFlagControl.
  kFlagLoadsAddress = 64,    ///< A load whose result is used as an address (machine_flow.h).
  kFlagFence = 128,          ///< May give the others a turn.
};

/// Decoded::propagate: who says what undefined sources make of the destinations.
enum Propagate : std::uint8_t {
  kPropagateByRule,  ///< The core, by Decoded::rules (undefined.h).
  kPropagateSelf,    ///< The handler (loads, shuffles).
};

/// A slot that a frame fills before its first instruction.
struct ConstantSlot {
  enum class Kind : std::uint8_t {
    kBits,          ///< `value`
    kSpecial,       ///< `special`, `component`
    kModuleSymbol,  ///< Address of Module::variables[index] + value
    kLocalSymbol,   ///< Address of a frame variable (local or call parameter): frame base + value
    kParamSymbol,   ///< Address of a kernel parameter: launch parameters + value
    kFunction,      ///< Address of a function
  };
  Kind kind = Kind::kBits;
  Slot slot = kNoSlot;
  std::uint8_t bits = 32;
  std::uint8_t component = 0;
  ptx::SpecialRegister special{};
  std::uint32_t index = 0;
  std::uint64_t value = 0;
};

/// A variable of a function's frame or of the module, placed.
struct PlacedVariable {
  enum class Where : std::uint8_t {
    kNowhere,
    kFrame,
    kKernelParam,
    kShared,
    kRegister
  } where = Where::kNowhere;
  std::uint64_t offset = 0;  ///< In the frame, the parameters, or the shared address space.
  std::uint64_t bytes = 0;
  std::uint32_t shared = 0;  ///< Index into Impl::shared for kShared.
  std::string name = {};     ///< Of the module's: as the source has it.
};

/// A variable in shared memory. Every one has an address range of its own, so that an overrun is
/// seen.
struct SharedVariable {
  std::string name;
  std::uint64_t address = 0;  ///< In the shared address space.
  std::uint64_t storage = 0;  ///< Offset in the block's storage.
  std::uint64_t bytes = 0;    ///< 0 for dynamic shared memory: its size is the launch's.
  std::uint32_t element_bytes = 1;
  std::uint64_t align = 16;  ///< As declared; at least 16.
  bool dynamic = false;
  bool system =
      false;  ///< kReservedSharedBytes of the system software's, zero when a block starts.
};

struct FunctionCode {
  const ptx::Function* function = nullptr;
  std::uint32_t first_pc = 0;
  std::uint32_t end_pc = 0;  ///< One past the sentinel.
  std::uint32_t slot_count = 0;
  std::uint32_t constant_slots = 0;  ///< The first so many slots are constant.
  std::uint32_t predicate_count = 0;
  /// Slots of registers that a thread may read before it has written them.
  std::vector<Slot> unset;
  std::vector<ConstantSlot> constants;
  std::vector<PlacedVariable> variables;  ///< By VariableIndex of the function.
  std::vector<std::uint32_t> in_frame;    ///< Those of `variables` in the frame, by offset.
  std::uint64_t frame_bytes = 0;          ///< Of local memory a thread.
  std::uint64_t param_bytes = 0;          ///< Of a kernel's parameters.
  bool is_builtin = false;                ///< vprintf, malloc, ...: no body, handled by the core.
  /// A parameter or return value that is a register: it travels through the frame's memory, where
  /// `variable` has its place.
  struct RegisterParameter {
    std::uint32_t variable = 0;  ///< Index into `variables`.
    DecodedOperand place;
  };
  std::vector<RegisterParameter> register_parameters;

  /// The variable of the frame that holds the byte at `offset`, or null.
  const PlacedVariable* FrameVariableAt(std::uint64_t offset) const;
};

/// What a call instruction needs, indexed by Decoded::aux.
struct CallSite {
  std::uint32_t callee = 0;  ///< Function index, when direct.
  bool indirect = false;
  Slot target = kNoSlot;                      ///< The register with the address, when indirect.
  const ptx::Prototype* prototype = nullptr;  ///< Of an indirect call.
  struct Copy {
    std::uint64_t frame_offset = 0;  ///< In the caller's frame.
    std::uint64_t bytes = 0;
    Slot slot = kNoSlot;  ///< Register or constant argument, when not a variable of the frame.
    std::uint8_t bits = 0;
  };
  std::vector<Copy> returns;
  std::vector<Copy> arguments;
};

/// What registers that may hold an address hold addresses of, one bit each: how the value is read.
enum AddressKind : std::uint8_t {
  kAddressGeneric = 1,  ///< Generic, global, const and parameter addresses; those of functions.
  kAddressShared = 2,
  kAddressLocal = 4,
};

/// An instruction that uses what the machine chose in a way that may show it (machine.h).
struct Boundary {
  Handler run = nullptr;       ///< What Decoded::monitored was,
  std::uint8_t propagate = 0;  ///< and Decoded::propagate.
  struct Source {
    DecodedOperand operand;
    std::uint8_t kinds = 0;     ///< AddressKind; 0: a special register.
    std::uint8_t position = 0;  ///< Among the sources.
  };
  std::vector<Source> sources;
};

struct Program::Impl {
  std::string text;
  std::vector<std::uint32_t> line_starts;
  ptx::Module module;
  std::vector<Decoded> code;
  std::vector<DecodedOperand> operands;
  std::vector<FunctionCode> functions;     ///< By FunctionIndex.
  std::vector<std::uint32_t> function_of;  ///< By pc.
  std::vector<CallSite> calls;
  std::vector<Handler>
      behind_notes;  ///< By pc: what an instruction did that notes its numbers (narrow_numbers.h).
  std::vector<Boundary> boundaries;
  std::vector<std::uint32_t> boundary_of;  ///< By pc: one more than the index, or 0.
  /// By function and parameter: all that an entry does with it is to load it as an address.
  std::vector<std::vector<bool>> pointer_params;
  std::vector<std::vector<std::uint32_t>> branch_tables;  ///< brx.idx targets, by Decoded::aux.
  std::vector<SharedVariable> shared;
  std::vector<PlacedVariable>
      module_variables;        ///< By VariableIndex of the module; shared ones are placed.
  bool narrow_scopes = false;  ///< Some strong access may be narrow, shared memory aside.
  std::uint64_t shared_static_bytes = 0;  ///< Storage of all static shared variables.
  std::uint32_t dynamic_shared =
      0xffffffffu;                    ///< Index into `shared` of the dynamic variable, if any.
  std::uint64_t reserved_shared = 0;  ///< Address of what is reserved, when a kernel asks for it.

  std::string_view Line(std::uint32_t ptx_line) const;
  const ptx::Instruction& InstructionAt(std::uint32_t pc) const { return *code[pc].source; }
};

/// The name that the source uses for a variable: "part" for "_ZZ4normPfE4part".
std::string SourceName(const std::string& mangled);

/// Places the variables of `impl.module` and its functions (layout.cc).
void LayOut(Program::Impl& impl);
/// Decodes every function of `impl.module`.
Status Decode(Program::Impl& impl);

}  // namespace assay::emu

// Control flow: branches, calls, returns, exits, traps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "validator/emu/handlers/builtins.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/shadow/tracker.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/choice.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Opcode;

void Branch(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const LaneMask taken = warp.exec;
  const LaneMask fallen = warp.active & ~taken;
  if (!warp.device->branch_sides.empty() && op.guard != kNoSlot) {
    std::uint8_t& sides = warp.device->branch_sides[warp.pc];
    if (taken != 0) sides |= 1;
    if (fallen != 0) sides |= 2;
  }
  if (taken == 0) return;
  if (fallen == 0) {
    warp.pc = op.target;
    warp.outcome = Outcome::kJump;
    return;
  }
  AddSplit(warp, warp.pc + 1, fallen, warp.frame, Wait::kReady, 0, 0);
  warp.active = taken;
  warp.pc = op.target;
  warp.outcome = Outcome::kReschedule;
}

void BranchTable(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::vector<std::uint32_t>& targets = warp.device->program.branch_tables[op.aux];
  const auto* const index = warp.Lanes<std::uint32_t>(op.a);
  LaneMask rest = warp.exec;
  const LaneMask fallen = warp.active & ~warp.exec;
  if (rest == 0) return;
  if (warp.device->track_defined) {
    const DecodedOperand& operand = op.operands[0];
    const std::uint32_t origin = warp.frame->origin[operand.shadow];
    if (const LaneMask unset = UnsetLanes(*warp.frame, operand.shadow) & rest; unset != 0)
      ReportUndefined(warp, warp.pc, unset, "a branch was decided by undefined bytes", "branch",
                      origin);
    if (const LaneMask chosen = ChosenLanes(*warp.frame, operand.shadow) & rest; chosen != 0)
      BranchByChoice(warp, op, chosen, origin);
  }
  std::uint32_t own_pc = kNoPc;
  LaneMask own = 0;
  while (rest != 0) {
    const std::uint32_t chosen = index[FirstLane(rest)];
    LaneMask group = 0;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((rest >> lane & 1) != 0 && index[lane] == chosen) group |= LaneMask{1} << lane;
    }
    rest &= ~group;
    if (chosen >= targets.size()) {
      Report1(warp, FindingKind::kTrap, warp.pc, group,
              fmt::format("brx.idx with index {}, but the table has {} targets", chosen,
                          targets.size()),
              "branch");
      warp.device->End(Stop::kFault, "branch beyond its table");
      warp.outcome = Outcome::kStop;
      return;
    }
    if (own_pc == kNoPc) {
      own_pc = targets[chosen];
      own = group;
    } else {
      AddSplit(warp, targets[chosen], group, warp.frame, Wait::kReady, 0, 0);
    }
  }
  AddSplit(warp, warp.pc + 1, fallen, warp.frame, Wait::kReady, 0, 0);
  warp.active = own;
  warp.pc = own_pc;
  warp.outcome = warp.split_count > 1 ? Outcome::kReschedule : Outcome::kJump;
}

/// Ends the lanes that execute; the others go on behind the instruction.
void Exit(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  const LaneMask leaving = warp.exec;
  ++warp.pc;
  ExitLanes(warp, leaving);
  warp.outcome = Outcome::kReschedule;
}

/// Copies between a caller's argument (frame memory or a register) and a callee's frame memory, for
/// one lane.
void CopyArgument(CoreWarp& warp, Frame& caller, const CallSite::Copy& copy,
                  std::uint64_t callee_offset, std::uint64_t callee_bytes, int lane,
                  bool into_callee) {
  const std::uint64_t lane_start = static_cast<std::uint64_t>(lane) * warp.local_stride;
  const std::uint64_t bytes = std::min(copy.bytes, callee_bytes);
  std::byte* const callee_data = warp.local.data() + lane_start + callee_offset;
  std::uint8_t* const callee_flags = warp.local_defined.data() + lane_start + callee_offset;
  if (copy.slot == kNoSlot) {
    const std::uint64_t at =
        lane_start + caller.base[static_cast<std::size_t>(lane)] + copy.frame_offset;
    std::byte* const caller_data = warp.local.data() + at;
    if (warp.device->shadow != nullptr) {
      const std::uint64_t in_caller = at - lane_start;
      warp.device->shadow->CopyLocal(warp, lane, into_callee ? callee_offset : in_caller,
                                     into_callee ? in_caller : callee_offset, bytes);
    }
    std::uint8_t* const caller_flags = warp.local_defined.data() + at;
    if (into_callee) {
      std::memmove(callee_data, caller_data, bytes);
      std::memmove(callee_flags, caller_flags, bytes);
    } else {
      std::memmove(caller_data, callee_data, bytes);
      std::memmove(caller_flags, callee_flags, bytes);
    }
    return;
  }
  const std::size_t width = copy.bits / 8u;
  std::byte* const slot =
      caller.slots + std::size_t{copy.slot} * kSlotBytes + static_cast<std::size_t>(lane) * width;
  const std::size_t count = std::min<std::size_t>(bytes, width);
  DecodedOperand registered;
  registered.bits = copy.bits;
  registered.shadow = copy.slot;
  const std::uint32_t origin = caller.origin[copy.slot];
  const LaneMask bit = LaneMask{1} << lane;
  if (into_callee) {
    std::memcpy(callee_data, slot, count);
    const std::uint64_t open = UndefinedBits(caller, registered, lane);
    const bool chosen = (ChosenLanes(caller, copy.slot) >> lane & 1) != 0;
    const std::uint8_t flag =
        chosen ? StoredChoiceNumber(*warp.device, {.origin = origin}) : std::uint8_t{0};
    for (std::size_t byte = 0; byte < count; ++byte)
      callee_flags[byte] = (open >> 8 * (byte % 8) & 0xff) == 0 ? std::uint8_t{1} : flag;
  } else {
    std::memcpy(slot, callee_data, count);
    LaneBitsets open{};
    bool unset = false;
    std::uint8_t flag = 1;
    for (std::size_t byte = 0; byte < count; ++byte) {
      if (callee_flags[byte] == 1) continue;
      open[static_cast<std::size_t>(lane)] |= std::uint64_t{0xff} << 8 * (byte % 8);
      unset = unset || callee_flags[byte] == 0;
      flag = callee_flags[byte];
    }
    const bool chosen = !unset && flag != 1;
    SetUndefinedBits(caller, registered, bit, open,
                     chosen ? StoredChoiceAt(*warp.device, flag).origin : origin);
    if (chosen) caller.machine[copy.slot] |= bit;
  }
}

/// Between the registers of a frame that are its function's parameters (or return values) and their
/// places in the frame's memory, through which calls hand them over.
void CopyRegisterParameters(CoreWarp& warp, Frame& frame, LaneMask lanes, bool returns) {
  const FunctionCode& code = warp.device->program.functions[frame.function];
  for (const FunctionCode::RegisterParameter& parameter : code.register_parameters) {
    if ((parameter.variable < code.function->returns.size()) != returns) continue;
    const PlacedVariable& place = code.variables[parameter.variable];
    const std::size_t width = parameter.place.bits / 8u;
    const std::size_t count = std::min<std::size_t>(place.bytes, width);
    LaneBitsets open{};
    for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      const std::uint64_t at = lane * warp.local_stride + frame.base[lane] + place.offset;
      std::byte* const data = warp.local.data() + at;
      std::uint8_t* const flags = warp.local_defined.data() + at;
      std::byte* const slot =
          frame.slots + std::size_t{parameter.place.slot} * kSlotBytes + lane * width;
      if (returns) {
        std::memcpy(data, slot, count);
        const std::uint64_t undefined =
            UndefinedBits(frame, parameter.place, static_cast<int>(lane));
        for (std::size_t byte = 0; byte < count; ++byte)
          flags[byte] = static_cast<std::uint8_t>((undefined >> 8 * (byte % 8) & 0xff) == 0);
      } else {
        std::memset(slot, 0, width);
        std::memcpy(slot, data, count);
        for (std::size_t byte = 0; byte < count; ++byte) {
          if (flags[byte] == 0) open[lane] |= std::uint64_t{0xff} << 8 * (byte % 8);
        }
      }
    }
    if (!returns) SetUndefinedBits(frame, parameter.place, lanes, open, kNoPc);
  }
}

/// Enters `callee` with `lanes`. The running split becomes them.
bool EnterFunction(CoreWarp& warp, const CallSite& site, std::uint32_t callee, LaneMask lanes) {
  const FunctionCode& code = warp.device->program.functions[callee];
  Frame& caller = *warp.frame;
  const FunctionCode& caller_code = warp.device->program.functions[caller.function];
  Frame& frame = FrameOf(warp, callee, caller.depth + 1);
  std::uint64_t needed = 0;
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    constexpr std::uint64_t kFrameAlignment = 256;
    const std::uint64_t taken =
        (caller.allocated[lane] + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
    frame.base[lane] =
        static_cast<std::uint32_t>(caller.base[lane] + caller_code.frame_bytes + taken);
    frame.allocated[lane] = 0;
    frame.return_pc[lane] = warp.pc + 1;
    needed = std::max<std::uint64_t>(needed, frame.base[lane] + code.frame_bytes);
  }
  constexpr std::uint32_t kMaxDepth = 512;
  if (!ReserveLocal(warp, needed) || frame.depth > kMaxDepth) {
    Report1(warp, FindingKind::kTrap, warp.pc, lanes, "the call stack overflows", "call");
    warp.device->End(Stop::kFault, "stack overflow");
    warp.outcome = Outcome::kStop;
    return false;
  }
  std::erase_if(frame.blocks,
                [&](const StackBlock& block) { return (lanes >> block.lane & 1) != 0; });
  PlaceFrameLocals(warp, frame, lanes);
  // A function starts with undefined registers, whatever an earlier call has left.
  const std::size_t shadows = std::size_t{code.slot_count} + code.predicate_count;
  for (std::size_t i = code.constant_slots; i < shadows; ++i) {
    if (i != code.slot_count && i != code.slot_count + 1u)
      SetUndefined(frame, static_cast<std::uint32_t>(i), lanes, lanes, kNoPc);
  }
  const std::size_t first = code.function->returns.size();
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t base = frame.base[static_cast<std::size_t>(lane)];
    std::uint8_t* const flags =
        warp.local_defined.data() + static_cast<std::uint64_t>(lane) * warp.local_stride + base;
    std::fill_n(flags, code.frame_bytes, std::uint8_t{0});
    for (std::size_t i = 0; i < site.arguments.size() && first + i < code.variables.size(); ++i) {
      const PlacedVariable& place = code.variables[first + i];
      CopyArgument(warp, caller, site.arguments[i], base + place.offset, place.bytes, lane, true);
    }
  }
  CopyRegisterParameters(warp, frame, lanes, false);
  warp.active = lanes;
  warp.frame = &frame;
  warp.slots = frame.slots;
  warp.predicates = frame.predicates;
  warp.pc = code.first_pc;
  return true;
}

/// The function behind a register's value, or the count of functions when there is none.
std::uint32_t FunctionAt(const Program::Impl& program, std::uint64_t address) {
  const std::uint64_t index = (address - kCodeWindow) / 16 - 1;
  const bool valid = address >= kCodeWindow + 16 && (address - kCodeWindow) % 16 == 0 &&
                     index < program.functions.size();
  return valid ? static_cast<std::uint32_t>(index)
               : static_cast<std::uint32_t>(program.functions.size());
}

/// What an indirect call passes against what its callee declares: a mismatch, or nothing. Both sides
/// leave values where their own declaration says (PTX ISA 9.7.12.5).
std::string PrototypeMismatch(const ptx::Prototype& prototype, const ptx::Function& callee) {
  const auto compare = [](std::string_view what, const std::vector<ptx::Variable>& passed,
                          const std::vector<ptx::Variable>& declared) -> std::string {
    if (passed.size() != declared.size()) {
      return fmt::format("it passes {} {}s where {} are declared", passed.size(), what,
                         declared.size());
    }
    for (std::size_t i = 0; i < passed.size(); ++i) {
      const bool same_kind =
          (passed[i].space == ptx::Space::kReg) == (declared[i].space == ptx::Space::kReg);
      if (passed[i].bytes != declared[i].bytes || !same_kind) {
        return fmt::format("its {} {} has {} bytes where {} are declared", what, i + 1,
                           passed[i].bytes, declared[i].bytes);
      }
    }
    return {};
  };
  const std::string problem = compare("argument", prototype.params, callee.params);
  return problem.empty() ? compare("return value", prototype.returns, callee.returns) : problem;
}

void CallLanes(CoreWarp& warp, const CallSite& site, std::uint32_t callee, LaneMask lanes) {
  const Program::Impl& program = warp.device->program;
  if (program.functions[callee].is_builtin) {
    // Builtins return at once, in the caller's frame.
    CallBuiltin(warp, site, program.functions[callee].function->name, lanes);
    return;
  }
  const LaneMask others = warp.active & ~lanes;
  if (others != 0) AddSplit(warp, warp.pc + 1, others, warp.frame, Wait::kReady, 0, 0);
  if (!EnterFunction(warp, site, callee, lanes)) return;
  warp.outcome = Outcome::kReschedule;
}

void Call(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  const Program::Impl& program = warp.device->program;
  const CallSite& site = program.calls[op.aux];
  if (!site.indirect) {
    CallLanes(warp, site, site.callee, warp.exec);
    return;
  }
  const auto* const target = warp.Lanes<std::uint64_t>(site.target);
  const std::uint64_t address = target[FirstLane(warp.exec)];
  LaneMask group = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) != 0 && target[lane] == address) group |= LaneMask{1} << lane;
  }
  const std::uint32_t callee = FunctionAt(program, address);
  const bool callable =
      callee < program.functions.size() &&
      (program.functions[callee].function->has_body || program.functions[callee].is_builtin);
  if (!callable) {
    Report1(warp, FindingKind::kTrap, warp.pc, group,
            fmt::format("a call through {:#x}, which is no function", address), "call");
    warp.device->End(Stop::kFault, "call of what is no function");
    warp.outcome = Outcome::kStop;
    return;
  }
  if (site.prototype != nullptr) {
    const ptx::Function& function = *program.functions[callee].function;
    const std::string mismatch = PrototypeMismatch(*site.prototype, function);
    if (!mismatch.empty()) {
      Report1(warp, FindingKind::kTrap, warp.pc, group,
              fmt::format("an indirect call of '{}' with another prototype: {}", function.name,
                          mismatch),
              "call", std::nullopt, "a pointer to a function of the type that is called");
      warp.device->End(Stop::kFault, "call with another prototype");
      warp.outcome = Outcome::kStop;
      return;
    }
  }
  // Lanes that call another function come back to this instruction; those that the guard excludes
  // go past it.
  const LaneMask later = warp.exec & ~group;
  if (later != 0) {
    const LaneMask fallen = warp.active & ~warp.exec;
    AddSplit(warp, warp.pc, later, warp.frame, Wait::kReady, 0, 0);
    AddSplit(warp, warp.pc + 1, fallen, warp.frame, Wait::kReady, 0, 0);
    warp.active = group;
    const bool builtin = program.functions[callee].is_builtin;
    CallLanes(warp, site, callee, group);
    if (builtin && warp.outcome == Outcome::kNext) {
      ++warp.pc;
      warp.outcome = Outcome::kReschedule;
    }
    return;
  }
  CallLanes(warp, site, callee, group);
}

void Return(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  if (warp.frame->depth == 0) {
    Exit(base, op);
    return;
  }
  Frame& frame = *warp.frame;
  const Program::Impl& program = warp.device->program;
  const FunctionCode& code = program.functions[frame.function];
  const LaneMask leaving = warp.exec;
  const LaneMask staying = warp.active & ~leaving;
  AddSplit(warp, warp.pc + 1, staying, &frame, Wait::kReady, 0, 0);
  CopyRegisterParameters(warp, frame, leaving, true);
  LaneMask rest = leaving;
  bool first_group = true;
  Frame* own_frame = nullptr;
  std::uint32_t own_pc = 0;
  LaneMask own = 0;
  while (rest != 0) {
    const std::uint32_t back = frame.return_pc[static_cast<std::size_t>(FirstLane(rest))];
    LaneMask group = 0;
    for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
      if ((rest >> lane & 1) != 0 && frame.return_pc[lane] == back) group |= LaneMask{1} << lane;
    }
    rest &= ~group;
    Frame& caller = FrameOf(warp, program.function_of[back - 1], frame.depth - 1);
    const CallSite& site = program.calls[program.code[back - 1].aux];
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((group >> lane & 1) == 0) continue;
      for (std::size_t i = 0; i < site.returns.size() && i < code.function->returns.size(); ++i) {
        const PlacedVariable& place = code.variables[i];
        CopyArgument(warp, caller, site.returns[i],
                     frame.base[static_cast<std::size_t>(lane)] + place.offset, place.bytes, lane,
                     false);
      }
    }
    if (first_group) {
      own = group;
      own_pc = back;
      own_frame = &caller;
      first_group = false;
    } else {
      AddSplit(warp, back, group, &caller, Wait::kReady, 0, 0);
    }
  }
  Enter(warp, Split{.pc = own_pc, .mask = own, .depth = own_frame->depth, .frame = own_frame});
  warp.outcome = Outcome::kReschedule;
}

void Trap(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  Report1(warp, FindingKind::kTrap, warp.pc, warp.exec, "the kernel executed a trap", "trap");
  warp.device->End(Stop::kFault, "trap");
  warp.outcome = Outcome::kStop;
}

void Nothing(Warp&, const Decoded&) {}

void Yield(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  if (warp.exec != 0) warp.outcome = Outcome::kYield;
}

template <Handler kHandler>
Handler Control(const Instruction&, Decoded& decoded) {
  decoded.flags |= kFlagControl;
  decoded.propagate = kPropagateSelf;
  return kHandler;
}

Handler NoEffect(const Instruction&, Decoded& decoded) {
  decoded.propagate = kPropagateSelf;
  return &Nothing;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kBra, &Control<&Branch>}, {Opcode::kBrx, &Control<&BranchTable>},
    {Opcode::kCall, &Control<&Call>},  {Opcode::kRet, &Control<&Return>},
    {Opcode::kExit, &Control<&Exit>},  {Opcode::kTrap, &Control<&Trap>},
    {Opcode::kBrkpt, &Control<&Trap>}, {Opcode::kNanosleep, &Control<&Yield>},
    {Opcode::kPmevent, &NoEffect},     {Opcode::kSetmaxnreg, &NoEffect},
};

}  // namespace

std::span<const ResolverRow> ControlRows() { return kRows; }

}  // namespace assay::emu

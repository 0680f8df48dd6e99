#include "validator/emu/watch/machine.h"

#include <fmt/format.h>

#include <bit>

#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/machine_flow.h"
#include "validator/emu/watch/pointee.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

using ptx::Operation;

std::string Describe(const Pointee& pointee) {
  if (pointee.region != nullptr && !pointee.region->name.empty())
    return fmt::format("the address of '{}'", pointee.region->name);
  return pointee.narrow ? "the address of a local variable" : "an address";
}
/// Of a special register, the bits that differ from machine to machine: no chip has 1,024
/// multiprocessors, and none more than 64 warps in one.
std::uint64_t OpenBitsOf(ptx::SpecialRegister special) {
  using ptx::SpecialRegister;
  switch (special) {
    case SpecialRegister::kSmid:
    case SpecialRegister::kNsmid:
      return (1u << 10) - 1;
    case SpecialRegister::kWarpid:
      return (1u << 6) - 1;
    case SpecialRegister::kNwarpid:
      return (1u << 7) - 1;
    default:
      return ~std::uint64_t{0};
  }
}

/// The marks that a boundary puts on its sources while it runs.
class Marks {
 public:
  Marks(CoreWarp& warp, const Decoded& op, const Boundary& boundary)
      : warp_(warp), op_(op), boundary_(boundary), frame_(*warp.frame) {
    if (NoAddresses()) return;
    for (const Boundary::Source& source : boundary.sources) {
      if (source.kinds == 0) {
        LaneBitsets all;
        all.fill(OpenBitsOf(NameRegister()));
        Mark(source.operand, kAllLanes, all);
        continue;
      }
      if ((source.kinds & 0xf) == kApproximateBits || (source.kinds & 0xf) == kApproximateValue) {
        MarkApproximation(source);
        continue;
      }
      MarkAddresses(source);
    }
  }

  bool any() const { return count_ != 0; }

  /// Of results that are the address that went in, with low bits changed: no marks.
  void KeepAddresses() {
    const Operation operation = op_.rules.operation;
    if (operation != Operation::kAnd && operation != Operation::kOr &&
        operation != Operation::kXor && operation != Operation::kLogic)
      return;
    const DecodedOperand& target = op_.operands[0];
    if (target.kind != DecodedOperand::Kind::kSlot || target.bits < 32) return;
    LaneMask kept = 0;
    for (LaneMask rest = ChosenLanes(frame_, target.shadow) & warp_.exec & single_; rest != 0;
         rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const auto at = static_cast<std::size_t>(lane);
      const std::uint64_t ones = target.bits == 64 ? ~std::uint64_t{0} : 0xffffffffu;
      const std::uint64_t chosen = OnesAbove(promised_[at]) & ones;
      if (UndefinedBits(frame_, target, lane) == chosen &&
          ((ReadLane(warp_, target, lane) ^ value_[at]) & chosen) == 0)
        kept |= LaneMask{1} << lane;
    }
    frame_.undefined[target.shadow] &= ~kept;
  }

  void Restore() {
    for (std::size_t i = count_; i-- > 0;) {
      const Saved& saved = saved_[i];
      LaneMask written = 0;
      for (std::size_t d = 0; d < op_.destinations; ++d) {
        if (op_.operands[d].kind != DecodedOperand::Kind::kSink &&
            op_.operands[d].shadow == saved.shadow)
          written = warp_.exec;
      }
      const auto back = [&](LaneMask& mask, LaneMask before) {
        mask = (mask & written) | (before & ~written);
      };
      back(frame_.undefined[saved.shadow], saved.undefined);
      back(frame_.partial[saved.shadow], saved.partial);
      back(frame_.machine[saved.shadow], saved.machine);
      if ((frame_.undefined[saved.shadow] & written) == 0)
        frame_.origin[saved.shadow] = saved.origin;
      if (saved.partial == 0) continue;
      LaneBitsets& bits = *frame_.bits[saved.shadow];
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
        if ((written >> lane & 1) == 0) bits[lane] = saved.bits[lane];
      }
    }
    warp_.whole_addresses.clear();
  }

 private:
  static constexpr std::size_t kMost = 16;
  struct Saved {
    std::uint32_t shadow;
    LaneMask undefined, partial, machine;
    std::uint32_t origin;
    LaneBitsets bits;
  };

  /// Most registers that might hold an address in a boundary hold a number.
  bool NoAddresses() const {
    for (const Boundary::Source& source : boundary_.sources) {
      const DecodedOperand& operand = source.operand;
      if (source.kinds != kAddressGeneric || operand.bits != 64 ||
          ChosenLanes(frame_, operand.shadow) != 0)
        return false;
      const auto* const values = warp_.Lanes<std::uint64_t>(operand.slot);
      std::uint64_t high = 0;
      for (int lane = 0; lane < kWarpSize; ++lane) high |= values[lane] >> kAllocationBits;
      if (high != 0) return false;
    }
    return true;
  }

  ptx::SpecialRegister NameRegister() {
    const ptx::Instruction& in = *op_.source;
    for (const ptx::Operand& operand : in.operands) {
      if (operand.kind == ptx::Operand::Kind::kSpecial && IsChosenByMachine(operand.special)) {
        NameChoice(warp_, warp_.PcOf(op_),
                   {MachineChoice::Kind::kRegister, std::string(ptx::Name(operand.special))});
        return operand.special;
      }
    }
    return ptx::SpecialRegister::kClock;
  }

  /// Is this source used for what addresses are for, next to what the other one holds in this lane?
  bool IsFair(const Boundary::Source& source, int lane, const Pointee& pointee) {
    const Operation operation = op_.rules.operation;
    const std::size_t first = op_.destinations;
    if (operation == Operation::kConvert) return pointee.narrow && op_.operands[0].bits == 32;
    const bool compared = operation == Operation::kCompare;
    const bool related = compared || operation == Operation::kDifference ||
                         operation == Operation::kLeast || operation == Operation::kGreatest;
    const bool added = operation == Operation::kSum || operation == Operation::kMultiplyAdd;
    // match tells which lanes have equal addresses, and no more.
    if (!related && !added)
      return operation == Operation::kSelect || operation == Operation::kSelectBySign ||
             operation == Operation::kMatch;
    if (source.position > 2) return false;
    bool others = false;
    for (const Boundary::Source& other : boundary_.sources) {
      if (&other == &source || other.kinds == 0) continue;
      const Pointee second =
          PointeeOf(warp_, other.kinds, lane, ReadLane(warp_, other.operand, lane));
      if (second.object == nullptr) continue;
      others = true;
      if (related && second.object == pointee.object) return true;
      // Objects that live side by side never share an address.
      const bool equality =
          compared && (op_.source->Has(ptx::Mod::kEq) || op_.source->Has(ptx::Mod::kNe));
      if (equality && second.inside && pointee.inside) return true;
    }
    if (others) return false;
    if (operation == Operation::kDifference) return source.position == 0;
    if (operation == Operation::kSum) return true;
    if (operation == Operation::kMultiplyAdd) return source.position == 2;
    if (!compared) return false;
    const DecodedOperand& other = op_.operands[first + (source.position == 0 ? 1 : 0)];
    return ReadLane(warp_, other, lane) == 0 && (frame_.undefined[other.shadow] >> lane & 1) == 0;
  }

  void MarkApproximation(const Boundary::Source& source) {
    LaneBitsets bits{};
    LaneMask lanes = 0;
    const bool compared = (source.kinds & 0xf) == kApproximateValue;
    const DecodedOperand& other = op_.operands[op_.destinations + (source.position == 0 ? 1u : 0u)];
    for (LaneMask rest = warp_.exec & ~frame_.undefined[source.operand.shadow]; rest != 0;
         rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      bits[static_cast<std::size_t>(lane)] =
          compared ? ~std::uint64_t{0}
                   : (std::uint64_t{1} << (kApproximateTail - (source.kinds >> 4))) - 1;
      const auto distance = static_cast<std::int64_t>(ReadLane(warp_, source.operand, lane)) -
                            static_cast<std::int64_t>(ReadLane(warp_, other, lane));
      constexpr std::int64_t kNear = 1 << kApproximateTail;
      if (!compared || (distance < kNear && -distance < kNear)) lanes |= LaneMask{1} << lane;
    }
    if (lanes == 0) return;
    NameChoice(warp_, warp_.PcOf(op_),
               {MachineChoice::Kind::kApproximation, "the last bits of an approximate function"});
    Mark(source.operand, lanes, bits);
  }

  void MarkAddresses(const Boundary::Source& source) {
    const DecodedOperand& operand = source.operand;
    LaneBitsets bits{};
    LaneMask lanes = 0;
    LaneMask whole = 0;
    const LaneMask unset = UnsetLanes(frame_, operand.shadow);
    const LaneMask chosen = ChosenLanes(frame_, operand.shadow);
    for (LaneMask rest = warp_.exec & ~unset; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const auto at = static_cast<std::size_t>(lane);
      const std::uint64_t value = ReadLane(warp_, operand, lane);
      if ((chosen >> lane & 1) != 0) {
        // What was added to it does not make the rest of it known.
        bits[at] = UndefinedBits(frame_, operand, lane);
        const Pointee pointee = PointeeOf(warp_, source.kinds, lane, value);
        if (pointee.object != nullptr) bits[at] |= OnesAbove(pointee.promised);
        lanes |= LaneMask{1} << lane;
        continue;
      }
      const Pointee pointee = PointeeOf(warp_, source.kinds, lane, value);
      if (pointee.object == nullptr || IsFair(source, lane, pointee)) continue;
      bits[at] = OnesAbove(pointee.promised);
      promised_[at] = pointee.promised;
      value_[at] = value;
      lanes |= LaneMask{1} << lane;
      whole |= LaneMask{1} << lane;
      if (!named_) {
        const bool shared =
            pointee.region != nullptr && pointee.region->kind == MemoryRegion::Kind::kShared;
        NameChoice(warp_, warp_.PcOf(op_),
                   {shared ? MachineChoice::Kind::kSharedAddress : MachineChoice::Kind::kAddress,
                    Describe(pointee)});
        named_ = true;
      }
    }
    single_ = (single_ ^ whole) & ~(lanes & ~whole) & ~(seen_ & lanes);
    seen_ |= lanes;
    if (lanes == 0) return;
    Mark(operand, lanes, bits);
    if (op_.rules.shadow == ptx::Shadow::kStore && whole != 0)
      warp_.whole_addresses.emplace_back(operand.shadow, whole);
  }

  void Mark(const DecodedOperand& operand, LaneMask lanes, const LaneBitsets& bits) {
    if (count_ == kMost) return;
    const std::uint32_t shadow = operand.shadow;
    Saved& saved = saved_[count_++];
    saved.shadow = shadow;
    saved.undefined = frame_.undefined[shadow];
    saved.partial = frame_.partial[shadow];
    saved.machine = frame_.machine[shadow];
    saved.origin = frame_.origin[shadow];
    if (saved.partial != 0) saved.bits = *frame_.bits[shadow];
    const std::uint32_t origin =
        (ChosenLanes(frame_, shadow) & lanes) != 0 ? frame_.origin[shadow] : warp_.PcOf(op_);
    SetUndefinedBits(frame_, operand, lanes, bits, origin);
    frame_.machine[shadow] |= lanes;
  }

  CoreWarp& warp_;
  const Decoded& op_;
  const Boundary& boundary_;
  Frame& frame_;
  std::array<Saved, kMost> saved_;
  std::size_t count_ = 0;
  bool named_ = false;
  LaneMask single_ = 0;  ///< Lanes with exactly one address, not marked before.
  LaneMask seen_ = 0;
  std::array<std::uint8_t, kWarpSize> promised_{};
  LaneBitsets value_{};
};
}  // namespace

void NameChoice(CoreWarp& warp, std::uint32_t pc, MachineChoice choice) {
  const auto kind = choice.kind;
  const auto [named, first] = warp.device->choices.try_emplace(pc, std::move(choice));
  // One instruction that has met addresses of several spaces: what is right for shared ones is.
  if (!first && kind == MachineChoice::Kind::kSharedAddress) named->second.kind = kind;
}
void RunBoundary(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const Program::Impl& program = warp.device->program;
  const Boundary& boundary = program.boundaries[program.boundary_of[warp.PcOf(op)] - 1];
  if ((op.flags & kFlagVolatileSpecial) != 0) RefreshSpecials(warp, *warp.frame);
  if (!warp.device->track_defined || warp.exec == 0) return boundary.run(warp, op);
  Marks marks(warp, op, boundary);
  if (boundary.propagate != kPropagateSelf) Propagate(warp, op);
  boundary.run(warp, op);
  if (!marks.any()) return;
  marks.KeepAddresses();
  marks.Restore();
}

void ReadClock(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const Program::Impl& program = warp.device->program;
  RefreshSpecials(warp, *warp.frame);
  program.boundaries[program.boundary_of[warp.PcOf(op)] - 1].run(warp, op);
}

void SetChosen(Frame& frame, std::uint32_t shadow, LaneMask lanes, std::uint32_t origin) {
  const LaneMask chosen = lanes & ~UnsetLanes(frame, shadow);
  SetUndefined(frame, shadow, chosen, chosen, origin);
  frame.machine[shadow] |= chosen;
}

ChoiceOf::ChoiceOf(const Frame& frame, const DecodedOperand& source)
    : chosen_(ChosenLanes(frame, source.shadow) != 0 && UnsetLanes(frame, source.shadow) == 0),
      origin_(frame.origin[source.shadow]) {}

void ChoiceOf::Pass(Frame& frame, const DecodedOperand& target, LaneMask lanes) const {
  if (!chosen_ || target.kind == DecodedOperand::Kind::kSink) return;
  const LaneMask passed = frame.undefined[target.shadow] & lanes;
  if (passed == 0) return;
  frame.machine[target.shadow] |= passed;
  frame.origin[target.shadow] = origin_;
}

bool MayBeOfSharedAddress(const Device& device, std::uint32_t origin) {
  const auto what = device.choices.find(origin);
  return what == device.choices.end() || what->second.kind == MachineChoice::Kind::kSharedAddress;
}
void ReportChoice(CoreWarp& warp, std::uint32_t pc, LaneMask lanes, const std::string& sink,
                  std::string what, std::uint32_t origin, std::optional<MemoryPlace> memory) {
  const auto found = warp.device->choices.find(origin);
  const std::string choice =
      found == warp.device->choices.end() ? "what the machine chooses" : found->second.what;
  const std::string line = LineOf(*warp.device, origin);
  Report1(warp, FindingKind::kMachineDependent, pc, lanes,
          fmt::format("{} on {} (at {}), which the machine chooses", sink, choice, line),
          std::move(what), std::move(memory),
          fmt::format("a computation that gives the same result whatever {} is",
                      choice.starts_with('%') ? choice : choice + " may be"),
          {}, origin);
}

}  // namespace assay::emu

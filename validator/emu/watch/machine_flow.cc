#include "validator/emu/watch/machine_flow.h"

#include <algorithm>
#include <array>
#include <vector>

#include "validator/emu/watch/machine.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::Operation;
using ptx::Space;
using ptx::Type;

/// What an operand is, in the order of Decoded::operands.
struct Part {
  const Operand* operand = nullptr;
  bool is_address = false;  ///< `[...]`: used for what an address is for.
};

void Flatten(const Operand& operand, std::vector<Part>& parts) {
  switch (operand.kind) {
    case Operand::Kind::kVector:
    case Operand::Kind::kTensor:
    case Operand::Kind::kParamList:
      for (const Operand& element : operand.elements) Flatten(element, parts);
      return;
    case Operand::Kind::kLabel:
    case Operand::Kind::kLabelList:
    case Operand::Kind::kPrototype:
      return;
    default:
      parts.push_back({&operand, operand.kind == Operand::Kind::kAddress});
  }
}

bool IsInteger(Type type, int bits) { return ptx::IsInteger(type) && ptx::BitsOf(type) == bits; }
bool IsAddressSized(Type type) { return IsInteger(type, 32) || IsInteger(type, 64); }

/// Which sources (by position) an instruction hands on as the address that they are; the others are
/// uses of the value.
struct Passing {
  std::uint8_t sources = 0;  ///< One bit each.
  bool all_at_once = false;  ///< More than one of them may be an address.
};
Passing PassingOf(const Instruction& in, const Decoded& op) {
  const bool one_result = op.destinations == 1;
  const bool plain = one_result && IsAddressSized(in.type());
  switch (op.rules.operation) {
    case Operation::kCopy:
      // Not of the pieces of a pair.
      return {static_cast<std::uint8_t>(one_result && op.operand_count == 2 ? 1 : 0), false};
    case Operation::kChangeSpace:
    case Operation::kPeerAddress:
      return {1, false};
    case Operation::kSum:
      return {static_cast<std::uint8_t>(plain ? 0b11 : 0), false};
    case Operation::kDifference:
      return {static_cast<std::uint8_t>(plain ? 0b1 : 0), false};
    case Operation::kMultiplyAdd:
      return {static_cast<std::uint8_t>(one_result && !in.Has(Mod::kHi) ? 0b100 : 0), false};
    case Operation::kSelect:
    case Operation::kSelectBySign:
      return {0b11, true};
    case Operation::kConvert:
      return {static_cast<std::uint8_t>(in.types.size() == 2 && IsAddressSized(in.types[0]) &&
                                                IsAddressSized(in.types[1])
                                            ? 1
                                            : 0),
              false};
    default:
      return {};
  }
}
/// Results of these may still be the address that went in (aligned, or with low bits set): what
/// uses them is looked at too.
bool MayKeepAddress(Operation operation) {
  return operation == Operation::kAnd || operation == Operation::kOr ||
         operation == Operation::kXor || operation == Operation::kLogic ||
         operation == Operation::kLeast || operation == Operation::kGreatest;
}
/// Operands that these name without brackets are there for what an address is for.
bool TakesAddress(Operation operation) {
  return operation == Operation::kUseAddress || operation == Operation::kChangeSpace ||
         operation == Operation::kPeerAddress;
}
/// Only what both hold together says anything.
bool RelatesTwo(Operation operation) {
  return operation == Operation::kDifference || operation == Operation::kCompare ||
         operation == Operation::kLeast || operation == Operation::kGreatest ||
         operation == Operation::kSelect;
}

class Flow {
 public:
  Flow(Program::Impl& impl, std::uint32_t function)
      : impl_(impl),
        index_(function),
        code_(impl.functions[function]),
        function_(impl.module.functions[function]),
        kinds_(std::size_t{code_.slot_count} + code_.predicate_count),
        used_(kinds_.size()),
        shifted_(kinds_.size(), kExact) {
    for (std::uint32_t pc = code_.first_pc; pc + 1 < code_.end_pc; ++pc) {
      std::vector<Part> parts;
      const Instruction& in = *impl_.code[pc].source;
      for (const Operand& operand : in.operands) {
        // The callee of a call is no operand of Decoded; its lists are, less their variables.
        if (impl_.code[pc].rules.effect == ptx::Effect::kCall &&
            operand.kind != Operand::Kind::kParamList)
          continue;
        Flatten(operand, parts);
      }
      parts_.push_back(std::move(parts));
    }
  }

  void Run() {
    while (Backward()) {
    }
    FindPointerParams();
    while (Forward()) {
    }
    while (Approximate()) {
    }
    for (std::uint32_t pc = code_.first_pc; pc + 1 < code_.end_pc; ++pc) Judge(pc);
  }

 private:
  const std::vector<Part>& PartsOf(std::uint32_t pc) const { return parts_[pc - code_.first_pc]; }
  static bool IsSlot(const DecodedOperand& operand) {
    return operand.kind == DecodedOperand::Kind::kSlot;
  }
  /// Calls have operands of their own (CallSite).
  static bool Covered(const Decoded& op, const std::vector<Part>& parts) {
    return parts.size() == op.operand_count;
  }

  /// Registers whose value is an address for somebody, or may become a part of one.
  bool Backward() {
    bool changed = false;
    const auto use = [&](const DecodedOperand& operand) {
      if (!IsSlot(operand) || used_[operand.shadow]) return;
      used_[operand.shadow] = true;
      changed = true;
    };
    // Constants have slots as well, shared by all who name the same one: they say nothing of each other.
    const auto is_register = [](const Part& part) {
      return part.operand->kind != Operand::Kind::kImmediate;
    };
    for (std::uint32_t pc = code_.end_pc - 1; pc-- > code_.first_pc;) {
      const Decoded& op = impl_.code[pc];
      const std::vector<Part>& parts = PartsOf(pc);
      if (!Covered(op, parts)) continue;
      const Instruction& in = *op.source;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].is_address && parts[i].operand->has_base_register) use(op.operands[i]);
      }
      const std::size_t first = op.destinations;
      if (TakesAddress(op.rules.operation) && first < parts.size()) use(op.operands[first]);
      if (first == 1 && IsSlot(op.operands[0]) && used_[op.operands[0].shadow]) {
        const Passing passing = PassingOf(in, op);
        for (std::size_t i = first; i < parts.size(); ++i) {
          const bool passes = (passing.sources >> (i - first) & 1) != 0;
          if ((passes || MayKeepAddress(op.rules.operation)) && is_register(parts[i]))
            use(op.operands[i]);
        }
      }
      if (RelatesTwo(op.rules.operation) && IsAddressSized(in.type()) &&
          parts.size() >= first + 2) {
        const DecodedOperand& a = op.operands[first];
        const DecodedOperand& b = op.operands[first + 1];
        const bool two = is_register(parts[first]) && is_register(parts[first + 1]);
        if (two && IsSlot(a) && IsSlot(b) && (used_[a.shadow] || used_[b.shadow])) {
          use(a);
          use(b);
        }
      }
    }
    return changed;
  }

  /// The parameter that a load reads as a whole, or null.
  const Operand* WholeParameter(const Decoded& op, const std::vector<Part>& parts) const {
    const Instruction& in = *op.source;
    if (op.rules.shadow != ptx::Shadow::kLoad || parts.size() != 2 || !IsInteger(in.type(), 64))
      return nullptr;
    const Operand& address = *parts[1].operand;
    const bool whole = address.has_symbol && !address.has_base_register && address.offset == 0 &&
                       address.symbol.scope == ptx::SymbolRef::Scope::kFunction &&
                       code_.variables[address.symbol.index].bytes == 8 && op.destinations == 1 &&
                       IsSlot(op.operands[0]) && op.operands[0].bits == 64;
    return whole ? &address : nullptr;
  }

  void FindPointerParams() {
    std::vector<bool>& pointers = impl_.pointer_params[index_];
    pointers.assign(code_.variables.size(), function_.is_entry);
    const auto spoil = [&](const Operand& operand) {
      const bool names = operand.kind == Operand::Kind::kSymbol || operand.has_symbol;
      if (names && operand.symbol.scope == ptx::SymbolRef::Scope::kFunction)
        pointers[operand.symbol.index] = false;
    };
    for (std::uint32_t pc = code_.first_pc; pc + 1 < code_.end_pc; ++pc) {
      const Decoded& op = impl_.code[pc];
      const std::vector<Part>& parts = PartsOf(pc);
      const Operand* const whole = Covered(op, parts) ? WholeParameter(op, parts) : nullptr;
      if (whole != nullptr && used_[op.operands[0].shadow]) continue;
      for (const Part& part : parts) spoil(*part.operand);
    }
  }

  std::uint8_t KindsOfSymbol(const Operand& operand) const {
    const bool of_module = operand.symbol.scope == ptx::SymbolRef::Scope::kModule;
    const PlacedVariable& place = of_module ? impl_.module_variables[operand.symbol.index]
                                            : code_.variables[operand.symbol.index];
    if (place.where == PlacedVariable::Where::kShared) return kAddressShared;
    if (place.where == PlacedVariable::Where::kFrame) return kAddressLocal;
    return kAddressGeneric;
  }

  /// What operand `i`, as a source, may hold.
  std::uint8_t KindsOf(const Decoded& op, const std::vector<Part>& parts, std::size_t i) const {
    const Operand& operand = *parts[i].operand;
    if (operand.kind == Operand::Kind::kSymbol) return KindsOfSymbol(operand);
    if (operand.kind == Operand::Kind::kFunction) return kAddressGeneric;
    // cvta takes its operand in brackets or without.
    if (operand.kind == Operand::Kind::kAddress && !operand.has_base_register)
      return operand.has_symbol ? KindsOfSymbol(operand) : std::uint8_t{0};
    return IsSlot(op.operands[i]) ? kinds_[op.operands[i].shadow] : std::uint8_t{0};
  }

  /// What an instruction's result may hold.
  std::uint8_t ResultOf(const Decoded& op, const std::vector<Part>& parts) {
    const Instruction& in = *op.source;
    const std::size_t first = op.destinations;
    switch (op.rules.operation) {
      case Operation::kChangeSpace:
        if (!in.Has(Mod::kTo)) return kAddressGeneric;
        return in.space == Space::kLocal ? kAddressLocal
               : in.space == Space::kShared || in.space == Space::kSharedCta ||
                       in.space == Space::kSharedCluster
                   ? kAddressShared
                   : kAddressGeneric;
      case Operation::kPeerAddress:
        return op.operands[0].bits == 64 && in.space == Space::kGeneric ? kAddressGeneric
                                                                        : kAddressShared;
      case Operation::kStackAddress:
        return kAddressLocal;
      default:
        break;
    }
    if (op.rules.shadow == ptx::Shadow::kLoad) {
      const bool used = std::any_of(
          op.operands, op.operands + op.destinations,
          [&](const DecodedOperand& loaded) { return IsSlot(loaded) && used_[loaded.shadow]; });
      if (!IsAddressSized(in.type()) || !used) return 0;
      if (const Operand* const whole = WholeParameter(op, parts);
          whole != nullptr && impl_.pointer_params[index_][whole->symbol.index])
        return kAddressGeneric;
      return IsInteger(in.type(), 64) ? std::uint8_t{kAddressGeneric}
                                      : std::uint8_t{kAddressShared};
    }
    std::uint8_t kinds = 0;
    const Passing passing = PassingOf(in, op);
    for (std::size_t i = first; i < parts.size() && i < first + 8; ++i) {
      if ((passing.sources >> (i - first) & 1) != 0 || MayKeepAddress(op.rules.operation))
        kinds |= KindsOf(op, parts, i);
    }
    // The low word of a generic address of shared memory is the shared address.
    if (op.rules.operation == Operation::kConvert && kinds != 0 && op.operands[0].bits == 32)
      kinds |= kAddressShared;
    return kinds;
  }

  bool Forward() {
    bool changed = false;
    for (std::uint32_t pc = code_.first_pc; pc + 1 < code_.end_pc; ++pc) {
      Decoded& op = impl_.code[pc];
      const std::vector<Part>& parts = PartsOf(pc);
      if (op.destinations == 0 || !Covered(op, parts) || !IsSlot(op.operands[0])) continue;
      const std::uint8_t kinds = ResultOf(op, parts);
      for (std::size_t d = 0; d < op.destinations; ++d) {
        if (!IsSlot(op.operands[d]) || (d > 0 && op.rules.shadow != ptx::Shadow::kLoad)) continue;
        std::uint8_t& held = kinds_[op.operands[d].shadow];
        changed = changed || (kinds & ~held) != 0;
        held |= kinds;
      }
    }
    return changed;
  }

  static bool IsApproximate(const Instruction& in) {
    return in.type() == Type::kF32 && (in.Has(Mod::kApprox) || in.Has(Mod::kFull));
  }
  static bool IsFloatArithmetic(const Decoded& op) {
    constexpr Operation kArithmetic[] = {Operation::kSum,      Operation::kDifference,
                                         Operation::kProduct,  Operation::kMultiplyAdd,
                                         Operation::kNegation, Operation::kMagnitude};
    return op.source->type() == Type::kF32 &&
           std::ranges::find(kArithmetic, op.rules.operation) != std::end(kArithmetic);
  }
  static bool IsImmediate(const std::vector<Part>& parts, std::size_t i) {
    return i < parts.size() && parts[i].operand->kind == Operand::Kind::kImmediate;
  }

  /// Registers with the last bits of an approximation in them: by how much they were shifted down.
  bool Approximate() {
    bool changed = false;
    for (std::uint32_t pc = code_.first_pc; pc + 1 < code_.end_pc; ++pc) {
      const Decoded& op = impl_.code[pc];
      const std::vector<Part>& parts = PartsOf(pc);
      if (op.destinations != 1 || !Covered(op, parts) || !IsSlot(op.operands[0]) ||
          op.operands[0].bits != 32)
        continue;
      const Instruction& in = *op.source;
      std::uint8_t shifted = kExact;
      if (IsApproximate(in)) {
        shifted = 0;
      } else if (op.rules.operation == Operation::kCopy ||
                 op.rules.operation == Operation::kSelect || IsFloatArithmetic(op)) {
        for (std::size_t i = 1; i < parts.size(); ++i) {
          if (IsSlot(op.operands[i]) && op.operands[i].bits == 32)
            shifted = std::min(shifted, shifted_[op.operands[i].shadow]);
        }
      } else if (op.rules.operation == Operation::kShiftRight && IsImmediate(parts, 2) &&
                 IsSlot(op.operands[1]) && parts[2].operand->bits < kExact) {
        shifted = shifted_[op.operands[1].shadow];
        if (shifted < kExact) shifted = static_cast<std::uint8_t>(shifted + parts[2].operand->bits);
      }
      std::uint8_t& held = shifted_[op.operands[0].shadow];
      if (shifted >= kExact || shifted >= held) continue;
      held = shifted;
      changed = true;
    }
    return changed;
  }

  /// Does the instruction cut out nothing but the last bits of an approximation, or compare all of
  /// them with a constant?
  std::uint8_t UseOfApproximation(const Decoded& op, const std::vector<Part>& parts) const {
    const Instruction& in = *op.source;
    const std::size_t first = op.destinations;
    if (parts.size() < first + 2 || !IsSlot(op.operands[first])) return 0;
    const std::uint8_t shifted = shifted_[op.operands[first].shadow];
    if (shifted >= kExact || !IsImmediate(parts, first + 1)) return 0;
    const std::uint64_t constant = parts[first + 1].operand->bits & 0xffffffffu;
    const int left = kApproximateTail - shifted;
    const auto kinds = static_cast<std::uint8_t>(kApproximateBits | shifted << 4);
    switch (op.rules.operation) {
      case Operation::kAnd:
        return constant != 0 && constant >> left == 0 ? kinds : std::uint8_t{0};
      case Operation::kShiftLeft:
        return constant < 32 && constant + static_cast<std::uint64_t>(left) >= 32 ? kinds
                                                                                  : std::uint8_t{0};
      case Operation::kExtract:
        return IsImmediate(parts, first + 2) &&
                       constant + parts[first + 2].operand->bits <= static_cast<std::uint64_t>(left)
                   ? kinds
                   : std::uint8_t{0};
      case Operation::kCompare: {
        // Half of the mantissa in use: no bound of anything, but a value that was looked up.
        constexpr std::uint64_t kLowHalf = 0xfff;
        const bool equality =
            in.Has(Mod::kEq) || in.Has(Mod::kNe) || in.Has(Mod::kEqu) || in.Has(Mod::kNeu);
        return shifted == 0 && equality && (constant & kLowHalf) != 0 ? kApproximateValue
                                                                      : std::uint8_t{0};
      }
      default:
        return 0;
    }
  }

  /// Makes a boundary of an instruction that is one.
  void Judge(std::uint32_t pc) {
    Decoded& op = impl_.code[pc];
    const std::vector<Part>& parts = PartsOf(pc);
    Boundary boundary;
    const std::size_t first = op.destinations;
    if (!Covered(op, parts)) return JudgeCall(pc);
    const Instruction& in = *op.source;
    if (op.rules.shadow == ptx::Shadow::kLoad && IsSlot(op.operands[0]) &&
        kinds_[op.operands[0].shadow] != 0)
      op.flags |= kFlagLoadsAddress;
    const Passing passing = PassingOf(in, op);
    std::size_t addresses = 0;
    for (std::size_t i = first; i < parts.size(); ++i) {
      const Operand& operand = *parts[i].operand;
      const auto position = static_cast<std::uint8_t>(std::min<std::size_t>(i - first, 255));
      if (operand.kind == Operand::Kind::kSpecial && IsChosenByMachine(operand.special)) {
        boundary.sources.push_back({op.operands[i], 0, position});
        continue;
      }
      if (parts[i].is_address || !IsSlot(op.operands[i])) continue;
      const std::uint8_t kinds = KindsOf(op, parts, i);
      if (kinds == 0 || TakesAddress(op.rules.operation)) continue;
      const bool passes = i - first < 8 && (passing.sources >> (i - first) & 1) != 0;
      const bool narrows =
          op.rules.operation == Operation::kConvert && op.operands[0].bits < op.operands[i].bits;
      if (passes && !narrows) {
        if (!passing.all_at_once) ++addresses;
        continue;
      }
      boundary.sources.push_back({op.operands[i], kinds, position});
    }
    // Of two addresses, none is the offset of the other; and what one is used for says how.
    if (addresses > 1 || (addresses > 0 && !boundary.sources.empty())) {
      boundary.sources.clear();
      for (std::size_t i = first; i < parts.size(); ++i) {
        const Operand& operand = *parts[i].operand;
        const auto position = static_cast<std::uint8_t>(i - first);
        if (operand.kind == Operand::Kind::kSpecial && IsChosenByMachine(operand.special)) {
          boundary.sources.push_back({op.operands[i], 0, position});
        } else if (const std::uint8_t kinds = KindsOf(op, parts, i);
                   kinds != 0 && IsSlot(op.operands[i])) {
          boundary.sources.push_back({op.operands[i], kinds, position});
        }
      }
    }
    if (const std::uint8_t use = UseOfApproximation(op, parts); use != 0)
      boundary.sources.push_back({op.operands[first], use, 0});
    Replace(pc, std::move(boundary));
  }

  /// Arguments in registers.
  void JudgeCall(std::uint32_t pc) {
    const Decoded& op = impl_.code[pc];
    Boundary boundary;
    for (std::size_t i = 0; i < op.operand_count; ++i) {
      const DecodedOperand& operand = op.operands[i];
      if (IsSlot(operand) && kinds_[operand.shadow] != 0)
        boundary.sources.push_back({operand, kinds_[operand.shadow], 255});
    }
    Replace(pc, std::move(boundary));
  }

  void Replace(std::uint32_t pc, Boundary boundary) {
    if (boundary.sources.empty()) return;
    Decoded& op = impl_.code[pc];
    boundary.run = op.monitored;
    boundary.propagate = op.propagate;
    op.monitored = &RunBoundary;
    if ((op.flags & kFlagVolatileSpecial) != 0) op.run = &ReadClock;
    op.propagate = kPropagateSelf;
    impl_.boundaries.push_back(std::move(boundary));
    impl_.boundary_of[pc] = static_cast<std::uint32_t>(impl_.boundaries.size());
  }

  Program::Impl& impl_;
  std::uint32_t index_;
  const FunctionCode& code_;
  const ptx::Function& function_;
  std::vector<std::uint8_t> kinds_;  ///< By shadow index: AddressKind.
  std::vector<bool> used_;           ///< By shadow index.
  static constexpr std::uint8_t kExact = kApproximateTail;
  std::vector<std::uint8_t> shifted_;  ///< By shadow index; kExact: no approximation.
  std::vector<std::vector<Part>> parts_;
};

}  // namespace

bool IsChosenByMachine(ptx::SpecialRegister special) {
  using ptx::SpecialRegister;
  constexpr SpecialRegister kPromised[] = {SpecialRegister::kTid,
                                           SpecialRegister::kNtid,
                                           SpecialRegister::kLaneid,
                                           SpecialRegister::kCtaid,
                                           SpecialRegister::kNctaid,
                                           SpecialRegister::kIsExplicitCluster,
                                           SpecialRegister::kClusterid,
                                           SpecialRegister::kNclusterid,
                                           SpecialRegister::kClusterCtaid,
                                           SpecialRegister::kClusterNctaid,
                                           SpecialRegister::kClusterCtarank,
                                           SpecialRegister::kClusterNctarank,
                                           SpecialRegister::kLanemaskEq,
                                           SpecialRegister::kLanemaskLe,
                                           SpecialRegister::kLanemaskLt,
                                           SpecialRegister::kLanemaskGe,
                                           SpecialRegister::kLanemaskGt,
                                           SpecialRegister::kDynamicSmemSize};
  return std::ranges::find(kPromised, special) == std::end(kPromised);
}

void MarkBoundaries(Program::Impl& impl) {
  impl.boundary_of.assign(impl.code.size(), 0);
  impl.pointer_params.resize(impl.functions.size());
  for (std::uint32_t f = 0; f < impl.functions.size(); ++f) {
    if (impl.module.functions[f].has_body) Flow(impl, f).Run();
  }
}

}  // namespace assay::emu

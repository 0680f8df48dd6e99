// Module to Decoded: slots for registers and constants, places for variables, targets, handlers.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "validator/emu/memory.h"
#include "validator/emu/program.h"
#include "validator/emu/resolver.h"
#include "validator/emu/watch/undefined.h"
#include "validator/emu/work.h"
#include "validator/ptx/control_flow.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

/// Register slots carry this bit until the number of constant slots, which come first, is known.
constexpr Slot kRegisterTag = 0x80000000u;
constexpr std::uint32_t kFirstPredicate =
    2;  ///< Predicates 0 and 1 are the constants false and true.

std::uint32_t SlotsOf(int bits) { return bits <= 32 ? 1u : static_cast<std::uint32_t>(bits) / 32u; }

Error At(const Program::Impl& impl, const Instruction& in, std::string message, ErrorKind kind,
         std::string cure = {}) {
  return Error{kind, fmt::format("{}: '{}'", message, impl.Line(in.ptx_line)),
               fmt::format("kernel.ptx:{}", in.ptx_line), std::move(cure)};
}

class FunctionDecoder {
 public:
  FunctionDecoder(Program::Impl& impl, std::uint32_t index)
      : impl_(impl), code_(impl.functions[index]), function_(impl.module.functions[index]) {}

  Status Run() {
    code_.first_pc = static_cast<std::uint32_t>(impl_.code.size());
    NumberRegisters();
    first_operand_ = impl_.operands.size();
    first_call_ = impl_.calls.size();
    for (const Instruction& in : function_.body) ASSAY_TRY_VOID(DecodeInstruction(in));
    FlagUsedResults();
    impl_.code.push_back(Decoded{.rules = ptx::FormOf(Sentinel()).rules, .source = &Sentinel()});
    impl_.code.back().operand_count = 0;
    operand_starts_.push_back(impl_.operands.size());
    code_.end_pc = static_cast<std::uint32_t>(impl_.code.size());
    FixSlots();
    return {};
  }

  /// Operands may move while functions are decoded: pointers are set at the end.
  void SetPointers() {
    for (std::uint32_t pc = code_.first_pc; pc < code_.end_pc; ++pc) {
      impl_.code[pc].operands = impl_.operands.data() + operand_starts_[pc - code_.first_pc];
    }
  }

 private:
  static const Instruction& Sentinel() {
    static const Instruction kReturn = [] {
      Instruction in;
      in.opcode = ptx::Opcode::kRet;
      in.form = ptx::FormsOf(in.opcode).front();
      return in;
    }();
    return kReturn;
  }

  /// Where an operand stands: how wide it is there, and of which type.
  struct Place {
    int bits = 32;
    ptx::Type type = ptx::Type::kNone;
  };

  /// By number: is it named by an instruction, or handed over by a call?
  std::vector<bool> NamedRegisters() const {
    std::vector<bool> named(function_.registers.size(), !function_.is_entry);
    const auto name = [&](const auto& self, const Operand& operand) -> void {
      if (operand.kind == Operand::Kind::kRegister || operand.has_base_register)
        named[operand.reg] = true;
      for (const Operand& element : operand.elements) self(self, element);
    };
    for (const Instruction& in : function_.body) {
      if (in.guard.present) named[in.guard.predicate] = true;
      for (const Operand& operand : in.operands) name(name, operand);
    }
    return named;
  }

  void NumberRegisters() {
    std::uint32_t slots = 0;
    std::uint32_t predicates = kFirstPredicate;
    const std::vector<bool> named = NamedRegisters();
    for (std::size_t i = 0; i < function_.registers.size(); ++i) {
      const ptx::Register& reg = function_.registers[i];
      if (!named[i]) {
        registers_.push_back({});  // It takes no place.
        continue;
      }
      if (reg.type == ptx::Type::kPred) {
        registers_.push_back({DecodedOperand::Kind::kPredicate, 1, predicates++});
      } else {
        const int bits = std::max(16, ptx::BitsOf(reg.type));
        registers_.push_back(
            {DecodedOperand::Kind::kSlot, static_cast<std::uint8_t>(bits), slots | kRegisterTag});
        slots += SlotsOf(bits);
      }
    }
    register_slots_ = slots;
    code_.predicate_count = predicates;
  }

  Slot Constant(ConstantSlot constant) {
    const auto key = std::tuple(constant.kind, constant.bits, constant.component, constant.special,
                                constant.index, constant.value);
    const auto [found, inserted] = constants_.try_emplace(key, constant_slots_);
    if (inserted) {
      constant.slot = constant_slots_;
      constant_slots_ += SlotsOf(constant.bits);
      code_.constants.push_back(constant);
    }
    return found->second;
  }

  static std::uint64_t ImmediateBits(const Operand& operand, Place place) {
    if (operand.immediate_type == ptx::Type::kF64 && place.bits == 32) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
    }
    if (operand.immediate_type == ptx::Type::kF32 && place.type == ptx::Type::kF64) {
      return std::bit_cast<std::uint64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits))));
    }
    return operand.bits;
  }

  /// The constant slot that holds a variable's address plus `offset`.
  Slot SymbolSlot(const ptx::SymbolRef& symbol, std::int64_t offset, int bits) {
    ConstantSlot constant{.bits = static_cast<std::uint8_t>(bits)};
    const auto added = static_cast<std::uint64_t>(offset);
    if (symbol.scope == ptx::SymbolRef::Scope::kModule) {
      const PlacedVariable& place = impl_.module_variables[symbol.index];
      if (place.where == PlacedVariable::Where::kShared) {
        constant.value = place.offset + added;
      } else {
        constant.kind = ConstantSlot::Kind::kModuleSymbol;
        constant.index = symbol.index;
        constant.value = added;
      }
    } else {
      const PlacedVariable& place = code_.variables[symbol.index];
      using Where = PlacedVariable::Where;
      constant.kind = place.where == Where::kFrame         ? ConstantSlot::Kind::kLocalSymbol
                      : place.where == Where::kKernelParam ? ConstantSlot::Kind::kParamSymbol
                                                           : ConstantSlot::Kind::kBits;
      constant.value = place.offset + added;
    }
    return Constant(constant);
  }

  Status Push(const Operand& operand, const Instruction& in, Place place) {
    DecodedOperand decoded;
    decoded.negated = operand.negated;
    decoded.bits = static_cast<std::uint8_t>(place.bits);
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        decoded.kind = registers_[operand.reg].kind;
        decoded.bits = registers_[operand.reg].bits;
        decoded.slot = registers_[operand.reg].slot;
        break;
      case Operand::Kind::kImmediate:
        if (place.bits == 1) {
          decoded.kind = DecodedOperand::Kind::kPredicate;
          decoded.slot = operand.bits != 0 ? 1 : 0;
        } else {
          decoded.kind = DecodedOperand::Kind::kSlot;
          decoded.slot = Constant({.bits = decoded.bits, .value = ImmediateBits(operand, place)});
        }
        break;
      case Operand::Kind::kSpecial:
        decoded.kind = DecodedOperand::Kind::kSlot;
        decoded.slot = Constant({.kind = ConstantSlot::Kind::kSpecial,
                                 .bits = decoded.bits,
                                 .component = operand.component,
                                 .special = operand.special});
        break;
      case Operand::Kind::kSymbol:
        decoded.kind = DecodedOperand::Kind::kSlot;
        decoded.slot = SymbolSlot(operand.symbol, operand.offset, place.bits);
        break;
      case Operand::Kind::kFunction:
        decoded.kind = DecodedOperand::Kind::kSlot;
        decoded.slot = Constant({.kind = ConstantSlot::Kind::kFunction,
                                 .bits = decoded.bits,
                                 .index = operand.function});
        break;
      case Operand::Kind::kAddress:
        decoded.kind = DecodedOperand::Kind::kSlot;
        if (operand.has_base_register) {
          if (registers_[operand.reg].kind != DecodedOperand::Kind::kSlot ||
              registers_[operand.reg].bits < 32) {
            return std::unexpected(At(impl_, in, "an address needs a register of 32 or 64 bits",
                                      ErrorKind::kMalformedInput));
          }
          decoded.bits = registers_[operand.reg].bits;
          decoded.slot = registers_[operand.reg].slot;
          decoded.offset = operand.offset;
        } else if (operand.has_symbol) {
          decoded.bits = 64;
          decoded.slot = SymbolSlot(operand.symbol, operand.offset, 64);
        } else {
          decoded.bits = 64;
          decoded.slot =
              Constant({.bits = 64, .value = static_cast<std::uint64_t>(operand.offset)});
        }
        break;
      case Operand::Kind::kVector:
      case Operand::Kind::kTensor:
        for (const Operand& element : operand.elements) {
          const bool coordinate =
              operand.kind == Operand::Kind::kTensor && element.kind != Operand::Kind::kAddress;
          ASSAY_TRY_VOID(Push(element, in, coordinate ? Place{} : place));
        }
        return {};
      case Operand::Kind::kSink:
        decoded.kind = DecodedOperand::Kind::kSink;
        break;
      case Operand::Kind::kLabel:
      case Operand::Kind::kLabelList:
      case Operand::Kind::kPrototype:
      case Operand::Kind::kParamList:
        return {};
    }
    impl_.operands.push_back(decoded);
    return {};
  }

  Status DecodeInstruction(const Instruction& in) {
    Decoded decoded;
    decoded.source = &in;
    decoded.extra_work = ExtraWork(in);
    decoded.rules = ptx::FormOf(in).rules;
    const std::size_t start = impl_.operands.size();
    operand_starts_.push_back(start);
    if (in.guard.present) {
      decoded.guard = registers_[in.guard.predicate].slot;
      decoded.guard_negated = in.guard.negated;
    }
    if (decoded.rules.effect == ptx::Effect::kCall) {
      ASSAY_TRY_VOID(DecodeCall(in, decoded));
    } else {
      const ptx::OperandRules rules = ptx::RulesOf(in);
      const std::size_t written = rules.written();
      bool have_address = false;
      for (std::size_t i = 0; i < in.operands.size(); ++i) {
        const Operand& operand = in.operands[i];
        const std::size_t before = impl_.operands.size();
        ASSAY_TRY_VOID(
            Push(operand, in,
                 {.bits = ptx::BitsOf(rules[i], in, operand), .type = ptx::TypeOf(rules[i], in)}));
        if (i < written)
          decoded.destinations = static_cast<std::uint16_t>(impl_.operands.size() - start);
        if (operand.kind == Operand::Kind::kAddress && !have_address) {
          decoded.immediate = static_cast<std::uint64_t>(impl_.operands[before].offset);
          have_address = true;
        }
        if (operand.kind == Operand::Kind::kLabel) decoded.target = code_.first_pc + operand.target;
        if (operand.kind == Operand::Kind::kLabelList) {
          decoded.aux = static_cast<std::uint32_t>(impl_.branch_tables.size());
          std::vector<std::uint32_t> targets;
          for (const ptx::InstructionIndex target : operand.targets)
            targets.push_back(code_.first_pc + target);
          impl_.branch_tables.push_back(std::move(targets));
        }
        if (operand.kind == Operand::Kind::kSpecial && IsVolatile(operand.special)) {
          decoded.flags |= kFlagVolatileSpecial;
        }
      }
    }
    decoded.operand_count = static_cast<std::uint16_t>(impl_.operands.size() - start);
    impl_.code.push_back(decoded);
    return {};
  }

  static bool IsVolatile(ptx::SpecialRegister special) {
    using ptx::SpecialRegister;
    constexpr SpecialRegister kClocks[] = {
        SpecialRegister::kClock,         SpecialRegister::kClockHi,
        SpecialRegister::kClock64,       SpecialRegister::kGlobaltimer,
        SpecialRegister::kGlobaltimerLo, SpecialRegister::kGlobaltimerHi};
    return std::ranges::find(kClocks, special) != std::end(kClocks);
  }

  Result<CallSite::Copy> CopyOf(const Operand& operand, const Instruction& in,
                                std::uint64_t bytes) {
    CallSite::Copy copy;
    copy.bytes = bytes;
    if (operand.kind == Operand::Kind::kSymbol &&
        operand.symbol.scope == ptx::SymbolRef::Scope::kFunction &&
        code_.variables[operand.symbol.index].where == PlacedVariable::Where::kFrame) {
      copy.frame_offset = code_.variables[operand.symbol.index].offset;
      copy.bytes = code_.variables[operand.symbol.index].bytes;
      return copy;
    }
    if (operand.kind == Operand::Kind::kSink) return copy;
    const int bits = operand.kind == Operand::Kind::kRegister
                         ? registers_[operand.reg].bits
                         : static_cast<int>(std::max<std::uint64_t>(2, bytes) * 8);
    if (bits == 1 || bits > 64) {
      return std::unexpected(
          At(impl_, in, "a call argument of this kind is not covered", ErrorKind::kUnsupported));
    }
    const std::size_t before = impl_.operands.size();
    ASSAY_TRY_VOID(Push(operand, in, {.bits = bits}));
    if (impl_.operands.size() != before + 1) {
      return std::unexpected(
          At(impl_, in, "a call argument of this kind is not covered", ErrorKind::kUnsupported));
    }
    copy.slot = impl_.operands.back().slot;
    copy.bits = impl_.operands.back().bits;
    return copy;
  }

  Status DecodeCall(const Instruction& in, Decoded& decoded) {
    CallSite site;
    const Operand& callee = in.operands[1];
    const std::vector<ptx::Variable>* params = nullptr;
    const std::vector<ptx::Variable>* returns = nullptr;
    if (callee.kind == Operand::Kind::kFunction) {
      site.callee = callee.function;
      const ptx::Function& target = impl_.module.functions[callee.function];
      if (!target.has_body && !impl_.functions[callee.function].is_builtin) {
        return std::unexpected(
            At(impl_, in, fmt::format("'{}' is called but has no body", target.name),
               ErrorKind::kUnsupported, "link the function in, or do not call it"));
      }
      params = &target.params;
      returns = &target.returns;
    } else {
      site.indirect = true;
      site.target = registers_[callee.reg].slot;
      if (in.operands.size() > 3) {
        const ptx::Prototype& prototype = function_.prototypes[in.operands[3].target];
        params = &prototype.params;
        returns = &prototype.returns;
        site.prototype = &prototype;
      }
    }
    const auto bytes_of = [](const std::vector<ptx::Variable>* list,
                             std::size_t i) -> std::uint64_t {
      return list != nullptr && i < list->size() ? (*list)[i].bytes : 8;
    };
    for (std::size_t i = 0; i < in.operands[0].elements.size(); ++i) {
      ASSAY_TRY(const CallSite::Copy copy,
                CopyOf(in.operands[0].elements[i], in, bytes_of(returns, i)));
      site.returns.push_back(copy);
    }
    for (std::size_t i = 0; i < in.operands[2].elements.size(); ++i) {
      ASSAY_TRY(const CallSite::Copy copy,
                CopyOf(in.operands[2].elements[i], in, bytes_of(params, i)));
      site.arguments.push_back(copy);
    }
    decoded.aux = static_cast<std::uint32_t>(impl_.calls.size());
    impl_.calls.push_back(std::move(site));
    return {};
  }

  /// nvcc writes `atom` where `red` would do: only reads of the result make it matter.
  void FlagUsedResults() {
    std::vector<bool> read(registers_.size() + 1);
    const auto mark = [&](const auto& self, const Operand& operand) -> void {
      if (operand.kind == Operand::Kind::kRegister || operand.has_base_register)
        read[operand.reg] = true;
      for (const Operand& element : operand.elements) self(self, element);
    };
    for (const Instruction& in : function_.body) {
      if (in.guard.present) read[in.guard.predicate] = true;
      for (std::size_t i = ptx::RulesOf(in).written(); i < in.operands.size(); ++i)
        mark(mark, in.operands[i]);
    }
    for (std::size_t i = 0; i < function_.body.size(); ++i) {
      const Instruction& in = function_.body[i];
      for (std::size_t d = 0; d < ptx::RulesOf(in).written(); ++d) {
        const auto used = [&](const Operand& operand) {
          return operand.kind == Operand::Kind::kRegister && read[operand.reg];
        };
        const Operand& operand = in.operands[d];
        if (used(operand) || std::ranges::any_of(operand.elements, used)) {
          impl_.code[code_.first_pc + i].flags |= kFlagResultUsed;
        }
      }
    }
  }

  /// By number: may somebody read it before it was written? Other lanes may, whatever their own way is.
  std::vector<bool> UnsetRegisters() const {
    std::vector<bool> unset = ptx::MayBeUnset(function_);
    const auto mark = [&](const auto& self, const Operand& operand) -> void {
      if (operand.kind == Operand::Kind::kRegister || operand.has_base_register)
        unset[operand.reg] = true;
      for (const Operand& element : operand.elements) self(self, element);
    };
    for (const Instruction& in : function_.body) {
      const ptx::Rules& rules = ptx::FormOf(in).rules;
      if (rules.effect == ptx::Effect::kNone && rules.shadow != ptx::Shadow::kShuffle &&
          rules.shadow != ptx::Shadow::kProduct)
        continue;
      for (const Operand& operand : in.operands) mark(mark, operand);
    }
    return unset;
  }

  Slot Fixed(Slot slot) const {
    return slot != kNoSlot && (slot & kRegisterTag) != 0 ? constant_slots_ + (slot & ~kRegisterTag)
                                                         : slot;
  }

  void FixSlots() {
    code_.constant_slots = constant_slots_;
    code_.slot_count = constant_slots_ + register_slots_;
    const std::vector<bool> unset = UnsetRegisters();
    for (std::size_t i = 0; i < registers_.size(); ++i) {
      const RegisterPlace& place = registers_[i];
      // What calls hand over is not told from what nobody has written.
      if (place.kind != DecodedOperand::Kind::kSlot || (function_.is_entry && !unset[i])) continue;
      for (std::uint32_t part = 0; part < SlotsOf(place.bits); ++part)
        code_.unset.push_back(Fixed(place.slot) + part);
    }
    for (std::size_t i = first_operand_; i < impl_.operands.size(); ++i) {
      DecodedOperand& operand = impl_.operands[i];
      if (operand.kind == DecodedOperand::Kind::kSlot) operand.slot = Fixed(operand.slot);
      operand.shadow = operand.kind == DecodedOperand::Kind::kPredicate
                           ? code_.slot_count + operand.slot
                           : operand.slot;
    }
    for (std::size_t i = first_call_; i < impl_.calls.size(); ++i) {
      CallSite& site = impl_.calls[i];
      site.target = Fixed(site.target);
      for (CallSite::Copy& copy : site.returns) copy.slot = Fixed(copy.slot);
      for (CallSite::Copy& copy : site.arguments) copy.slot = Fixed(copy.slot);
    }
    std::size_t reg = 0;
    for (std::uint32_t i = 0; i < function_.returns.size() + function_.params.size(); ++i) {
      if (function_.variables[i].space != Space::kReg) continue;
      const RegisterPlace& place = registers_[reg++];
      if (place.kind != DecodedOperand::Kind::kSlot) continue;  // No call can pass a predicate.
      const Slot slot = Fixed(place.slot);
      code_.register_parameters.push_back(
          {.variable = i,
           .place = {.kind = place.kind, .bits = place.bits, .slot = slot, .shadow = slot}});
    }
    for (std::uint32_t pc = code_.first_pc; pc < code_.end_pc; ++pc) {
      Decoded& decoded = impl_.code[pc];
      const DecodedOperand* const operands =
          impl_.operands.data() + operand_starts_[pc - code_.first_pc];
      const auto slot_at = [&](std::size_t i) {
        return i < decoded.operand_count ? operands[i].slot : kNoSlot;
      };
      if (decoded.destinations > 0) decoded.d = slot_at(0);
      decoded.a = slot_at(decoded.destinations);
      decoded.b = slot_at(decoded.destinations + std::size_t{1});
      decoded.c = slot_at(decoded.destinations + std::size_t{2});
    }
  }

  struct RegisterPlace {
    DecodedOperand::Kind kind;
    std::uint8_t bits;
    Slot slot;
  };
  using ConstantKey = std::tuple<ConstantSlot::Kind, std::uint8_t, std::uint8_t,
                                 ptx::SpecialRegister, std::uint32_t, std::uint64_t>;

  Program::Impl& impl_;
  FunctionCode& code_;
  const ptx::Function& function_;
  std::vector<RegisterPlace> registers_;
  std::map<ConstantKey, Slot> constants_;
  std::vector<std::size_t> operand_starts_;
  std::size_t first_operand_ = 0;
  std::size_t first_call_ = 0;
  std::uint32_t constant_slots_ = 0;
  std::uint32_t register_slots_ = 0;
};

/// A strong access of less than device scope to memory that several blocks may reach. What is
/// shared is one block's own, but in clusters (RunLaunch).
bool IsNarrow(const ptx::Instruction& in) {
  const AccessOrder order = OrderOf(in);
  if (order.order == Order::kWeak || order.scope >= Scope::kGpu) return false;
  return std::ranges::any_of(ptx::MemoryRoles(in), [](const ptx::MemoryRole& role) {
    const bool shared = role.space == ptx::Space::kShared || role.space == ptx::Space::kSharedCta ||
                        role.space == ptx::Space::kSharedCluster;
    return !shared && !role.mbarrier;
  });
}

}  // namespace

Status Decode(Program::Impl& impl) {
  const ptx::Module& module = impl.module;
  LayOut(impl);
  std::vector<FunctionDecoder> decoders;
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
    if (!module.functions[f].has_body) continue;
    decoders.emplace_back(impl, f);
    ASSAY_TRY_VOID(decoders.back().Run());
    impl.function_of.resize(impl.code.size(), f);
  }
  for (FunctionDecoder& decoder : decoders) decoder.SetPointers();

  for (Decoded& decoded : impl.code) {
    if (!Resolve(*decoded.source, decoded)) {
      return std::unexpected(At(impl, *decoded.source, "instruction not covered by the emulator",
                                ErrorKind::kUnsupported,
                                "use another formulation of the kernel, or a GPU engine"));
    }
    decoded.rules.definedness = DefinednessOf(decoded);
    impl.narrow_scopes = impl.narrow_scopes || IsNarrow(*decoded.source);
  }
  return {};
}

}  // namespace assay::emu

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "validator/ptx/isa.h"
#include "validator/ptx/names.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/printer_impl.h"

namespace assay::ptx {
namespace {

using Kind = Operand::Kind;

class InstructionPrinter {
 public:
  InstructionPrinter(std::string& out, const Module& module, const Function& function,
                     const Instruction& in, std::string_view targets)
      : out_(out), module_(module), function_(function), in_(in), targets_(targets) {}

  void Run() {
    if (in_.guard.present) {
      out_ += in_.guard.negated ? "@!" : "@";
      Register(in_.guard.predicate);
      out_ += ' ';
    }
    out_ += Mnemonic(in_.opcode);
    Modifiers();
    if (in_.opcode == Opcode::kCall && in_.operands.size() >= 3) return Call();
    std::string_view separator = " ";
    for (const Operand& operand : in_.operands) {
      out_ += operand.paired ? "|" : separator;
      One(operand);
      separator = ", ";
    }
  }

 private:
  template <class... Args>
  void Format(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void Modifiers() {
    std::size_t mod = 0, type = 0, space = 0;
    const Space spaces[] = {in_.space, in_.space2};
    bool width = in_.vector_width == 1;
    const auto next_mod = [&] {
      if (mod < in_.mods.size()) Format(".{}", Name(in_.mods[mod++]));
    };
    const auto next_type = [&] { Format(".{}", Name(in_.types[type++])); };
    const auto next_space = [&] { Format(".{}", Name(spaces[space++])); };
    const auto vector = [&] {
      Format(".v{}", in_.vector_width);
      width = true;
    };
    using SlotKind = ModifierSlot::Kind;
    const std::span<const Form> forms = Forms();
    for (const ModifierSlot& slot : forms[in_.form < forms.size() ? in_.form : 0].slots) {
      switch (slot.kind) {
        case SlotKind::kMod:
          // Which of the modifiers fills the slot does not matter: PTX takes them in any order, and
          // theirs is kept.
          if (std::any_of(in_.mods.begin(), in_.mods.end(),
                          [&](Mod m) { return slot.Has(static_cast<std::uint16_t>(m)); })) {
            next_mod();
          }
          break;
        case SlotKind::kType:
          if (type < in_.types.size() && slot.Has(static_cast<std::uint16_t>(in_.types[type]))) {
            next_type();
          }
          break;
        case SlotKind::kSpace:
          if (space < 2 && spaces[space] != Space::kGeneric &&
              slot.Has(static_cast<std::uint16_t>(spaces[space]))) {
            next_space();
          }
          break;
        case SlotKind::kWidth:
          if (!width && slot.Has(in_.vector_width)) vector();
          break;
      }
    }
    while (mod < in_.mods.size()) next_mod();
    while (space < 2 && spaces[space] != Space::kGeneric) next_space();
    if (!width) vector();
    while (type < in_.types.size()) next_type();
  }

  void Register(RegisterIndex index) {
    out_ += index < function_.registers.size() ? function_.registers[index].name : "?";
  }

  void Symbol(SymbolRef symbol) {
    const auto& list =
        symbol.scope == SymbolRef::Scope::kModule ? module_.variables : function_.variables;
    out_ += symbol.index < list.size() ? list[symbol.index].name : "?";
  }

  void Label(InstructionIndex target) {
    const auto found = std::lower_bound(
        function_.labels.begin(), function_.labels.end(), target,
        [](const auto& label, InstructionIndex wanted) { return label.second < wanted; });
    out_ += found != function_.labels.end() && found->second == target ? found->first : "?";
  }

  void Offset(std::int64_t offset) {
    if (offset != 0) Format("+{}", offset);
  }

  void Elements(std::span<const Operand> elements, char open, char close) {
    out_ += open;
    std::string_view separator = "";
    for (const Operand& element : elements) {
      out_ += separator;
      One(element);
      separator = ", ";
    }
    out_ += close;
  }

  void Address(const Operand& operand) {
    if (operand.has_base_register) {
      Register(operand.reg);
      Offset(operand.offset);
    } else if (operand.has_symbol) {
      Symbol(operand.symbol);
      Offset(operand.offset);
    } else {
      Format("{}", operand.offset);
    }
  }

  void Immediate(const Operand& operand) {
    if (operand.immediate_type == Type::kF32) {
      Format("0f{:08X}", operand.bits & 0xffffffffu);
    } else if (operand.immediate_type == Type::kF64) {
      Format("0d{:016X}", operand.bits);
    } else {
      Format("{}", static_cast<std::int64_t>(operand.bits));
    }
  }

  void One(const Operand& operand) {
    switch (operand.kind) {
      case Kind::kRegister:
        if (operand.negated) out_ += '!';
        return Register(operand.reg);
      case Kind::kImmediate:
        return Immediate(operand);
      case Kind::kSymbol:
        Symbol(operand.symbol);
        return Offset(operand.offset);
      case Kind::kAddress:
        out_ += '[';
        Address(operand);
        out_ += ']';
        return;
      case Kind::kVector:
        return Elements(operand.elements, '{', '}');
      case Kind::kLabel:
        return Label(operand.target);
      case Kind::kLabelList:
        out_ += targets_;
        return;
      case Kind::kFunction:
        out_ += operand.function < module_.functions.size()
                    ? module_.functions[operand.function].name
                    : "?";
        return;
      case Kind::kPrototype:
        out_ += operand.target < function_.prototypes.size()
                    ? function_.prototypes[operand.target].name
                    : "?";
        return;
      case Kind::kSpecial:
        out_ += Name(operand.special);
        if (IsVector(operand.special)) Format(".{}", "xyzw"[operand.component & 3]);
        return;
      case Kind::kSink:
        out_ += '_';
        return;
      case Kind::kTensor:
        out_ += '[';
        if (!operand.elements.empty()) {
          Address(operand.elements[0]);
          out_ += ", ";
          Elements(std::span(operand.elements).subspan(1), '{', '}');
        }
        out_ += ']';
        return;
      case Kind::kParamList:
        return Elements(operand.elements, '(', ')');
    }
  }

  /// (returns), callee, (arguments), prototype; empty lists are left out.
  void Call() {
    out_ += ' ';
    if (!in_.operands[0].elements.empty()) {
      One(in_.operands[0]);
      out_ += ", ";
    }
    One(in_.operands[1]);
    for (std::size_t i = 2; i < in_.operands.size(); ++i) {
      const Operand& operand = in_.operands[i];
      if (operand.kind == Kind::kParamList && operand.elements.empty()) continue;
      out_ += ", ";
      One(operand);
    }
  }

  std::string& out_;
  const Module& module_;
  const Function& function_;
  const Instruction& in_;
  std::string_view targets_;
};

}  // namespace

void AppendInstruction(std::string& out, const Module& module, const Function& function,
                       const Instruction& in, std::string_view targets) {
  InstructionPrinter(out, module, function, in, targets).Run();
}

std::string PrintInstruction(const Module& module, const Function& function,
                             const Instruction& in) {
  std::string out;
  AppendInstruction(out, module, function, in, "targets");
  return out;
}

}  // namespace assay::ptx

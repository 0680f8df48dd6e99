#include "validator/ptx/isa_examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "validator/ptx/names.h"

namespace assay::ptx {
namespace {

/// For each slot, the index of the alternative taken, or -1.
using Choice = std::vector<int>;

class ExampleBuilder {
 public:
  ExampleBuilder(const Form& form, const Choice& choice, bool with_optional)
      : form_(form), with_optional_(with_optional) {
    head_.opcode = form.opcode;
    text_ = Mnemonic(form.opcode);
    int spaces = 0;
    for (std::size_t i = 0; i < form.slots.size(); ++i) {
      if (choice[i] < 0) continue;
      const std::uint16_t value = form.slots[i].values[static_cast<std::size_t>(choice[i])];
      switch (form.slots[i].kind) {
        case ModifierSlot::Kind::kMod:
          head_.mods.push_back(static_cast<Mod>(value));
          text_ += fmt::format(".{}", Name(static_cast<Mod>(value)));
          break;
        case ModifierSlot::Kind::kType:
          head_.types.push_back(static_cast<Type>(value));
          text_ += fmt::format(".{}", Name(static_cast<Type>(value)));
          break;
        case ModifierSlot::Kind::kSpace:
          (spaces++ == 0 ? head_.space : head_.space2) = static_cast<Space>(value);
          text_ += fmt::format(".{}", Name(static_cast<Space>(value)));
          break;
        case ModifierSlot::Kind::kWidth:
          head_.vector_width = static_cast<std::uint8_t>(value);
          text_ += fmt::format(".v{}", value);
          break;
      }
    }
  }

  std::string Run() {
    std::string separator = " ";
    for (const OperandRule& rule : form_.operands) {
      const bool gated = !rule.gate.empty();
      const bool open =
          std::any_of(rule.gate.begin(), rule.gate.end(), [&](Mod mod) { return head_.Has(mod); });
      if ((gated && !open) || (rule.optional && !with_optional_)) continue;
      text_ += rule.paired ? "|" : separator;
      text_ += OperandText(rule);
      separator = ", ";
    }
    return text_ + ";";
  }

 private:
  std::string Register(Type type, bool relaxed) {
    const int bits = BitsOf(type);
    const auto numbered = [&](std::string_view prefix, int& next) {
      return fmt::format("{}{}", prefix, next++ % 100);
    };
    if (type == Type::kPred) return numbered("%p", next_predicate_);
    if (type == Type::kF32) return numbered("%f", next_);
    if (type == Type::kF64) return numbered("%fd", next_);
    if (bits <= 8 && !relaxed) return numbered("%rc", next_);
    if (bits <= 16) return numbered("%rs", next_);
    if (bits == 32) return numbered("%r", next_);
    if (bits == 64) return numbered("%rd", next_);
    return numbered("%rq", next_);
  }

  std::string Constant(const OperandRule& rule) const {
    if (!rule.constants.empty()) return std::to_string(rule.constants.front().low);
    return form_.opcode == Opcode::kAlloca ? "16" : "1";
  }

  std::size_t Dimensions() const {
    constexpr std::array kDims = {Mod::kDim1d, Mod::kDim2d, Mod::kDim3d, Mod::kDim4d, Mod::kDim5d};
    for (std::size_t i = 0; i < kDims.size(); ++i) {
      if (head_.Has(kDims[i])) return i + 1;
    }
    return 0;
  }

  std::string Address() {
    const Space space = addresses_++ == 1 ? head_.space2 : head_.space;
    switch (space) {
      case Space::kParam:
        return form_.opcode == Opcode::kSt ? "passed" : "given";
      case Space::kParamEntry:
        return "given";
      case Space::kParamFunc:
        return "passed";
      case Space::kConst:
        return "constants";
      case Space::kLocal:
        return "locals";
      default:
        return fmt::format("%rd{}+16", next_++ % 100);
    }
  }

  std::string VectorText(const OperandRule& rule, Type type) {
    std::size_t count = 0;
    switch (rule.count_rule) {
      case OperandRule::Count::kScalar:
        break;
      case OperandRule::Count::kFixed:
        count = rule.count;
        break;
      case OperandRule::Count::kWidth:
        count = head_.vector_width;
        break;
      case OperandRule::Count::kMatrices:
        count = head_.Has(Mod::kX4) ? 4 : head_.Has(Mod::kX2) ? 2 : 1;
        break;
      case OperandRule::Count::kAccumulator: {
        const std::string_view shape = Name(head_.mods[head_.Has(Mod::kSp) ? 3 : 2]);
        count = static_cast<std::size_t>(std::stoi(std::string(shape.substr(4)))) / 2;
        if (head_.types[0] == Type::kF16) count /= 2;
        break;
      }
      case OperandRule::Count::kPack:
        count = with_optional_ && BitsOf(type) > 16 ? 4 : 2;
        type = BitsOf(type) / static_cast<int>(count) == 64   ? Type::kB64
               : BitsOf(type) / static_cast<int>(count) == 32 ? Type::kB32
               : BitsOf(type) / static_cast<int>(count) == 16 ? Type::kB16
                                                              : Type::kB8;
        break;
      case OperandRule::Count::kOffsets:
        count = Dimensions() - 2;
        break;
    }
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) {
      text += i == 0 ? "" : ", ";
      text += Register(type, rule.relaxed);
    }
    return text + "}";
  }

  std::string OperandText(const OperandRule& rule) {
    using Body = OperandRule::Body;
    switch (rule.body) {
      case Body::kAddress:
        return fmt::format("[{}]", Address());
      case Body::kTensor: {
        std::string text = fmt::format("[%rd{}, {{", next_++ % 100);
        for (std::size_t i = 0; i < Dimensions(); ++i) {
          text += fmt::format("{}%r{}", i == 0 ? "" : ", ", i);
        }
        ++addresses_;
        return text + "}]";
      }
      case Body::kLabel:
        return "Here";
      case Body::kTargets:
        return "Targets";
      case Body::kSink:
        return "_";
      case Body::kCall:
        return "(returned), callee, (passed)";
      case Body::kValue:
        break;
    }
    const Type type = TypeOf(rule, head_);
    if (rule.count_rule != OperandRule::Count::kScalar) return VectorText(rule, type);
    if (rule.constant_only) return Constant(rule);
    return Register(type, rule.relaxed);
  }

  const Form& form_;
  bool with_optional_;
  Instruction head_;
  std::string text_;
  int next_ = 0;
  int next_predicate_ = 0;
  int addresses_ = 0;
};

}  // namespace

std::vector<std::string> Examples(const Form& form) {
  Choice base;
  Choice full;
  for (const ModifierSlot& slot : form.slots) {
    base.push_back(slot.optional ? -1 : 0);
    full.push_back(0);
  }
  std::vector<std::string> examples;
  const auto add = [&](const Choice& choice, bool with_optional) {
    std::string text = ExampleBuilder(form, choice, with_optional).Run();
    if (std::find(examples.begin(), examples.end(), text) == examples.end()) {
      examples.push_back(std::move(text));
    }
  };
  add(base, false);
  add(base, true);
  add(full, true);
  for (std::size_t i = 0; i < form.slots.size(); ++i) {
    for (std::size_t value = 0; value < form.slots[i].values.size(); ++value) {
      Choice choice = base;
      choice[i] = static_cast<int>(value);
      if (form.slots[i].with_previous && choice[i - 1] < 0) choice[i - 1] = 0;
      if (i + 1 < form.slots.size() && form.slots[i + 1].with_previous) choice[i + 1] = 0;
      add(choice, false);
    }
  }
  return examples;
}

std::string ExampleModule(const Form& form, const std::vector<std::string>& statements, int sm,
                          int ptx_version) {
  const auto uses = [&](std::string_view name) {
    return std::any_of(statements.begin(), statements.end(), [&](const std::string& statement) {
      return statement.find(name) != std::string::npos;
    });
  };
  std::string text = fmt::format(".version {}.{}\n.target {}\n.address_size 64\n", ptx_version / 10,
                                 ptx_version % 10, ArchitectureText(sm));
  text +=
      ".const .align 16 .b8 constants[64];\n"
      ".func (.param .b32 result) callee(.param .b32 argument) { ret; }\n"
      ".func (.param .align 16 .b8 result[16]) giver() { ret; }\n"
      ".visible .entry kernel(.param .align 16 .b8 given[64])\n"
      ".maxntid 128, 1, 1\n"
      "{\n"
      "\t.reg .pred %p<100>;\n\t.reg .b16 %rs<100>;\n\t.reg .b32 %r<100>;\n"
      "\t.reg .b64 %rd<100>;\n\t.reg .f32 %f<100>;\n\t.reg .f64 %fd<100>;\n"
      "\t.local .align 16 .b8 locals[64];\n";
  if (uses("%rq")) text += "\t.reg .b128 %rq<100>;\n";
  if (uses("%rc")) text += "\t.reg .b8 %rc<100>;\n";
  text += form.opcode == Opcode::kCall ? "\t.param .b32 passed;\n\t.param .b32 returned;\n"
                                       : "\t.param .align 16 .b8 passed[16];\n";
  if (form.opcode == Opcode::kBrx) text += "\tTargets: .branchtargets Here, There;\n";
  // ptxas 13.0 crashes on a load of a returned value that no call returns.
  if (uses("ld.param::func")) text += "\tcall (passed), giver;\n";
  for (const std::string& statement : statements) text += fmt::format("\t{}\n", statement);
  text += "Here:\n\tnanosleep.u32 0;\nThere:\n\tret;\n}\n";
  return text;
}

}  // namespace assay::ptx

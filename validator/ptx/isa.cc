#include "validator/ptx/isa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "base/error.h"
#include "validator/ptx/names.h"

namespace assay::ptx {
namespace {

struct ClassRow {
  std::string_view name, alternatives;
};
constexpr ClassRow kClasses[] = {
#define CLASS(name, alternatives) {#name, alternatives},
#include "validator/ptx/isa_classes.def"
#undef CLASS
};

struct Row {
  Opcode opcode;
  std::string_view modifiers, operands;
  int ptx_version, sm;
  std::string_view section;
};
constexpr Row kRows[] = {
    {Opcode{}, "", "", 0, 0, ""},
#define FORM(opcode, modifiers, operands, version, sm, section) \
  {Opcode::k##opcode, modifiers, operands, version, sm, section},
#include "validator/ptx/isa.def"
#undef FORM
};

/// By opcode.
constexpr Rules kRules[] = {
#define OPCODE(name, mnemonic, family, operation, effect, definedness, shadow) \
  {Operation::k##operation, Effect::k##effect, Definedness::k##definedness, Shadow::k##shadow},
#include "validator/ptx/opcodes.def"
#undef OPCODE
};

/// Calls `use` with each piece of `text` between `separator`s, blanks trimmed; nothing for an empty
/// text.
template <class Use>
void Split(std::string_view text, char separator, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view piece = text.substr(0, end);
    while (piece.starts_with(' ')) piece.remove_prefix(1);
    while (piece.ends_with(' ')) piece.remove_suffix(1);
    use(piece);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Calls `use` with each alternative, classes expanded.
template <class Use>
void Alternatives(std::string_view text, Use use) {
  Split(text, '|', [&](std::string_view piece) {
    if (!piece.starts_with('$')) return use(piece);
    for (const ClassRow& row : kClasses) {
      if (row.name == piece.substr(1)) return Split(row.alternatives, '|', use);
    }
    ASSAY_CHECK(false, "unknown class " + std::string(piece));
  });
}

ModifierSlot ParseSlot(std::string_view text) {
  ModifierSlot slot;
  if (text.ends_with('+')) {
    slot.with_previous = true;
    text.remove_suffix(1);
  }
  if (text.ends_with('?')) {
    slot.optional = true;
    text.remove_suffix(1);
  }
  std::optional<ModifierSlot::Kind> kind;
  Alternatives(text, [&](std::string_view name) {
    ModifierSlot::Kind found = ModifierSlot::Kind::kMod;
    std::uint16_t value = 0;
    if (const auto type = FindType(name)) {
      found = ModifierSlot::Kind::kType;
      value = static_cast<std::uint16_t>(*type);
    } else if (const auto space = FindSpace(name)) {
      found = ModifierSlot::Kind::kSpace;
      value = static_cast<std::uint16_t>(*space);
    } else if (name == "v2" || name == "v4" || name == "v8") {
      found = ModifierSlot::Kind::kWidth;
      value = static_cast<std::uint16_t>(name[1] - '0');
    } else {
      const auto mod = FindMod(name);
      ASSAY_CHECK(mod.has_value(), "modifiers.def lacks " + std::string(name));
      value = static_cast<std::uint16_t>(*mod);
    }
    ASSAY_CHECK(!kind || *kind == found, "a slot of two kinds: " + std::string(text));
    kind = found;
    slot.values.push_back(value);
  });
  slot.kind = kind.value_or(ModifierSlot::Kind::kMod);
  return slot;
}

void ParseValueType(std::string_view text, OperandRule& rule) {
  if (text == "t" || text == "w") {
    rule.doubled = text == "w";
  } else if (text.size() == 2 && text[0] == 't' && text[1] >= '0' && text[1] <= '9') {
    rule.type_index = static_cast<std::uint8_t>(text[1] - '0');
  } else if (text == "addr") {
    rule.any_address = true;
  } else {
    const auto type = FindType(text);
    ASSAY_CHECK(type.has_value(), "isa.def names an unknown type " + std::string(text));
    rule.fixed = *type;
  }
}

void ParseVectorRule(std::string_view text, OperandRule& rule) {
  const std::size_t star = text.find('*');
  ParseValueType(text.substr(0, star), rule);
  const std::string_view count = text.substr(star + 1);
  using Count = OperandRule::Count;
  if (count == "v") {
    rule.count_rule = Count::kWidth;
  } else if (count == "x") {
    rule.count_rule = Count::kMatrices;
  } else if (count == "d") {
    rule.count_rule = Count::kAccumulator;
  } else if (count == "p") {
    rule.count_rule = Count::kPack;
  } else if (count == "i") {
    rule.count_rule = Count::kOffsets;
  } else {
    rule.count_rule = Count::kFixed;
    rule.count = static_cast<std::uint8_t>(count[0] - '0');
    ASSAY_CHECK(count.size() == 1 && rule.count > 0 && rule.count < 10, "a bad vector count");
  }
}

bool ParseFlag(char flag, OperandRule& rule) {
  switch (flag) {
    case '=':
      rule.written = true;
      return true;
    case '+':
      rule.written = rule.read = true;
      return true;
    case '_':
      rule.sink = true;
      return true;
    case '|':
      rule.paired = true;
      return true;
    case '!':
      rule.negatable = true;
      return true;
    case '~':
      rule.relaxed = true;
      return true;
    case '$':
      rule.special = true;
      return true;
    case '&':
      rule.symbol = true;
      return true;
    case '%':
      rule.constant = false;
      return true;
    case '#':
      rule.constant_only = true;
      return true;
    case '^':
      rule.vector_of_one = true;
      return true;
    default:
      return false;
  }
}

void ParseAddressRule(std::string_view text, OperandRule& rule) {
  rule.body = OperandRule::Body::kAddress;
  Split(text, ' ', [&](std::string_view word) {
    if (word == "tensor") {
      rule.body = OperandRule::Body::kTensor;
    } else if (word == "mbarrier") {
      rule.mbarrier = true;
    } else {
      rule.loads = word.starts_with('r');
      rule.stores = word.ends_with('w');
      ASSAY_CHECK(word == "r" || word == "w" || word == "rw", "a bad address in isa.def");
    }
  });
}

std::int64_t ParseNumber(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  ASSAY_CHECK(problem == std::errc{} && end == text.data() + text.size(), "a bad constant");
  return value;
}

/// "16", "0..255", "24..256/8", "/16"
ConstantRange ParseRange(std::string_view text) {
  ConstantRange range;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    range.step = ParseNumber(text.substr(slash + 1));
    text = text.substr(0, slash);
  }
  if (text.empty()) {
    range.high = std::int64_t{1} << 32;
    return range;
  }
  const std::size_t dots = text.find("..");
  range.low = ParseNumber(text.substr(0, dots));
  range.high = dots == std::string_view::npos ? range.low : ParseNumber(text.substr(dots + 2));
  return range;
}

OperandRule ParseRule(std::string_view text) {
  OperandRule rule;
  if (text.ends_with('?')) {
    rule.optional = true;
    text.remove_suffix(1);
  }
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    const ModifierSlot gate = ParseSlot(text.substr(at + 1));
    for (const std::uint16_t value : gate.values) rule.gate.push_back(static_cast<Mod>(value));
    text = text.substr(0, at);
  }
  if (const std::size_t at = text.find('<'); at != std::string_view::npos) {
    Split(text.substr(at + 1, text.size() - at - 2), '|',
          [&](std::string_view range) { rule.constants.push_back(ParseRange(range)); });
    text = text.substr(0, at);
  }
  while (text.size() > 1 && ParseFlag(text[0], rule)) text.remove_prefix(1);
  if (rule.written) rule.constant = false;
  if (!rule.written) rule.read = true;
  using Body = OperandRule::Body;
  if (text.starts_with('[')) {
    ParseAddressRule(text.substr(1, text.size() - 2), rule);
  } else if (text == "label") {
    rule.body = Body::kLabel;
  } else if (text == "targets") {
    rule.body = Body::kTargets;
  } else if (text == "call") {
    rule.body = Body::kCall;
  } else if (text == "_") {
    rule.body = Body::kSink;
    rule.written = true;
    rule.read = false;
  } else if (text.starts_with('{')) {
    ParseVectorRule(text.substr(1, text.size() - 2), rule);
  } else {
    ParseValueType(text, rule);
  }
  return rule;
}

std::vector<Form> BuildForms() {
  std::vector<Form> forms;
  for (const Row& row : kRows) {
    Form form{.opcode = row.opcode,
              .rules = forms.empty() ? Rules{} : kRules[static_cast<std::size_t>(row.opcode)],
              .modifiers = row.modifiers,
              .operand_text = row.operands,
              .ptx_version = row.ptx_version,
              .sm = row.sm,
              .section = row.section,
              .slots = {},
              .operands = {}};
    Split(row.modifiers, ' ',
          [&](std::string_view slot) { form.slots.push_back(ParseSlot(slot)); });
    Split(row.operands, ',',
          [&](std::string_view rule) { form.operands.push_back(ParseRule(rule)); });
    ASSAY_CHECK(form.slots.size() <= kMostSlots && form.operands.size() <= kMostSlots,
                "a row too long for the matcher");
    forms.push_back(std::move(form));
  }
  return forms;
}

/// A name for an operand in a form's text: d, a, b, c ... by position; p for predicates.
std::string OperandText(const OperandRule& rule, int& sources, int& destinations) {
  constexpr std::string_view kSources = "abcefghijklmn";
  std::string name = rule.written ? std::string(1, "dq"[std::min(destinations++, 1)])
                                  : std::string(1, kSources[static_cast<std::size_t>(sources++)]);
  using Body = OperandRule::Body;
  switch (rule.body) {
    case Body::kAddress:
      return fmt::format("[{}]", name);
    case Body::kTensor:
      return fmt::format("[{}, {{coordinates}}]", name);
    case Body::kLabel:
      return "label";
    case Body::kTargets:
      return "targets";
    case Body::kSink:
      return "_";
    case Body::kCall:
      return "(d), f, (a)";
    case Body::kValue:
      break;
  }
  if (rule.negatable) name = "{!}" + name;
  if (rule.constant_only) name = "imm-" + name;
  if (rule.count_rule != OperandRule::Count::kScalar) name = fmt::format("{{{}...}}", name);
  return name;
}

}  // namespace

bool ModifierSlot::Has(std::uint16_t value) const {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::span<const Form> Forms() {
  static const std::vector<Form> forms = BuildForms();
  return forms;
}

std::span<const std::uint16_t> FormsOf(Opcode opcode) {
  static const auto by_opcode = [] {
    std::array<std::vector<std::uint16_t>, kOpcodeCount> table;
    const std::span<const Form> forms = Forms();
    for (std::size_t i = 1; i < forms.size(); ++i) {
      table[static_cast<std::size_t>(forms[i].opcode)].push_back(static_cast<std::uint16_t>(i));
    }
    return table;
  }();
  return by_opcode[static_cast<std::size_t>(opcode)];
}

std::string ArchitectureText(int sm) {
  return sm > 900 ? fmt::format("sm_{}a", sm / 10) : fmt::format("sm_{}", sm);
}

std::string Text(const Form& form) {
  std::string text(Mnemonic(form.opcode));
  Split(form.modifiers, ' ', [&](std::string_view slot) {
    if (slot.ends_with('+')) slot.remove_suffix(1);
    const bool optional = slot.ends_with('?');
    if (optional) slot.remove_suffix(1);
    std::string shown;
    Split(slot, '|', [&](std::string_view piece) {
      shown += shown.empty() ? "." : "|";
      shown += piece.starts_with('$') ? fmt::format("<{}>", piece.substr(1)) : std::string(piece);
    });
    text += optional ? fmt::format("{{{}}}", shown) : shown;
  });
  int sources = 0, destinations = 0;
  std::string_view separator = " ";
  for (const OperandRule& rule : form.operands) {
    const std::string operand = OperandText(rule, sources, destinations);
    const std::string_view glue = rule.paired ? "|" : separator;
    text += rule.optional || !rule.gate.empty() ? fmt::format("{{{}{}}}", glue, operand)
                                                : fmt::format("{}{}", glue, operand);
    separator = ", ";
  }
  return text;
}

}  // namespace assay::ptx

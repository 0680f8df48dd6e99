// Declarations: module and function variables, registers, parameters.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "validator/ptx/names.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {
namespace {

constexpr std::size_t kMostDimensions = 16;
constexpr std::uint32_t kMostAlign = 1u << 16;

/// Types that memory can hold one of (5.2.1): whole bytes, no predicates.
bool IsStorable(Type type) { return BitsOf(type) >= 8 && type != Type::kTF32; }

std::uint32_t VectorWidth(std::string_view word) {
  return word == "v2" ? 2u : word == "v4" ? 4u : word == "v8" ? 8u : 0u;
}

}  // namespace

Result<std::uint32_t> Parser::ParseAlignment() {
  const Token at = current_;
  ASSAY_TRY(const std::uint64_t align, ExpectCount("an alignment", kMostAlign));
  if (!std::has_single_bit(align)) return Error_(at, "an alignment is a power of two");
  return static_cast<std::uint32_t>(align);
}

Status Parser::SkipAttribute() {
  ASSAY_TRY_VOID(Expect('('));
  for (int depth = 1; depth > 0; Advance()) {
    if (current_.kind == Token::Kind::kEnd || current_.kind == Token::Kind::kError) {
      return Expected("')'");
    }
    if (current_.Is('(')) ++depth;
    if (current_.Is(')')) --depth;
  }
  return {};
}

Status Parser::ParseVariableWord(VariableHead& head) {
  const Token word = current_;
  Advance();
  if (word.text == "align") {
    ASSAY_TRY(head.align, ParseAlignment());
    return {};
  }
  if (word.text == "attribute") return SkipAttribute();
  if (word.text == "ptr") {
    head.is_pointer = true;
    if (current_.kind == Token::Kind::kDotted) {
      if (const auto space = FindSpace(current_.text)) {
        head.pointee_space = *space;
        Advance();
      }
    }
    if (current_.IsDotted("align")) {
      Advance();
      ASSAY_TRY(head.pointee_align, ParseAlignment());
    }
    return {};
  }
  if (const std::uint32_t width = VectorWidth(word.text)) {
    head.vector = width;
    return {};
  }
  if (const auto type = FindType(word.text)) {
    if (head.type != Type::kNone) return Error_(word, "a declaration has two types");
    head.type = *type;
    return {};
  }
  if (word.text == "texref" || word.text == "samplerref" || word.text == "surfref") {
    return Error_(word, "textures and surfaces are not covered", {}, ErrorKind::kUnsupported);
  }
  return Error_(word, fmt::format("unknown word '.{}' in a declaration", word.text.substr(0, 40)));
}

Result<Parser::VariableHead> Parser::ParseVariableHead(Space space) {
  VariableHead head{.space = space};
  while (current_.kind == Token::Kind::kDotted) ASSAY_TRY_VOID(ParseVariableWord(head));
  if (head.type == Type::kNone) return Expected("a type such as '.b32'");
  if (space != Space::kReg && !IsStorable(head.type)) {
    return Error_(current_, fmt::format("a variable cannot have type .{}", Name(head.type)));
  }
  return head;
}

Result<Parser::Dimensions> Parser::ParseDimensions(const VariableHead& head) {
  Dimensions dimensions;
  while (current_.Is('[')) {
    const Token at = current_;
    Advance();
    if (dimensions.counts.size() >= kMostDimensions) {
      return Error_(at, "an array of too many dimensions", {}, ErrorKind::kLimit);
    }
    if (Accept(']')) {
      if (!dimensions.counts.empty())
        return Error_(at, "only the first dimension may be left open");
      dimensions.open = true;
      dimensions.counts.push_back(0);
      continue;
    }
    const Token value = current_;
    ASSAY_TRY(const std::int64_t count, ParseInteger());
    if (count < 0) return Error_(value, "the size of an array is negative");
    if (static_cast<std::uint64_t>(count) > kLimits.variable_bytes) {
      return Error_(value, "the size of an array is out of range", {}, ErrorKind::kLimit);
    }
    dimensions.counts.push_back(static_cast<std::uint64_t>(count));
    ASSAY_TRY_VOID(Expect(']'));
  }
  if (head.vector > 1) dimensions.counts.push_back(head.vector);
  return dimensions;
}

Status Parser::SetSize(Variable& variable, const VariableHead& head, const Dimensions& dimensions,
                       const Token& name) {
  // A predicate, which only registers hold, counts as a byte.
  const auto element =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(BitsOf(head.type)) / 8);
  std::uint64_t bytes = element;
  for (const std::uint64_t count : dimensions.counts) {
    // Both factors are at most 2^40, so a check before the product suffices.
    if (count != 0 && bytes > kLimits.variable_bytes / count) {
      return Error_(name, "a variable above the size limit", {}, ErrorKind::kLimit);
    }
    bytes *= count;
  }
  variable.bytes = bytes;
  variable.type = head.type;
  variable.space = head.space;
  variable.align = head.align != 0 ? head.align : static_cast<std::uint32_t>(element * head.vector);
  variable.is_pointer = head.is_pointer;
  variable.pointee_space = head.pointee_space;
  variable.pointee_align = head.pointee_align;
  variable.name = name.text;
  variable.ptx_line = name.line;
  return {};
}

Status Parser::ParseModuleVariables(Space space, Linkage linkage) {
  ASSAY_TRY(const VariableHead head, ParseVariableHead(space));
  do {
    ASSAY_TRY(const Token name, ExpectIdentifier("the name of a variable"));
    ASSAY_TRY(Dimensions dimensions, ParseDimensions(head));
    Variable variable;
    variable.is_extern = linkage.is_extern;
    variable.is_visible = linkage.is_visible;
    variable.is_weak = linkage.is_weak;
    variable.is_common = linkage.is_common;
    ASSAY_TRY_VOID(SetSize(variable, head, dimensions, name));
    const std::size_t first_relocation = pending_relocations_.size();
    if (current_.Is('=')) {
      if (linkage.is_extern || (space != Space::kGlobal && space != Space::kConst)) {
        return Error_(current_, "only .global and .const variables defined here have initialisers");
      }
      Advance();
      ASSAY_TRY_VOID(ParseInitialiser(variable, head, dimensions));
      ASSAY_TRY_VOID(SetSize(variable, head, dimensions, name));
    } else if (dimensions.open && !linkage.is_extern) {
      return Error_(name, "an array without a size", "give the size, or declare it .extern");
    }
    ASSAY_TRY_VOID(DeclareModuleVariable(std::move(variable), name, first_relocation));
  } while (Accept(','));
  return Expect(';');
}

Status Parser::DeclareModuleVariable(Variable variable, const Token& name,
                                     std::size_t first_relocation) {
  if (name.text == "_" || FindSpecialRegister(name.text)) {
    return Error_(name, fmt::format("'{}' cannot be a variable's name", name.text));
  }
  if (const auto found = symbols_.Find(name.text)) {
    Variable* const known =
        found->kind == Binding::Kind::kModuleVariable ? &module_.variables[found->index] : nullptr;
    const bool repeats = known != nullptr && known->space == variable.space &&
                         (known->is_extern || variable.is_extern || variable.is_common);
    if (!repeats)
      return Error_(name, fmt::format("'{}' is declared twice", name.text.substr(0, 60)));
    for (std::size_t i = first_relocation; i < pending_relocations_.size(); ++i) {
      pending_relocations_[i].variable = found->index;
    }
    if (known->is_extern) *known = std::move(variable);
    return {};
  }
  const auto index = static_cast<std::uint32_t>(module_.variables.size());
  for (std::size_t i = first_relocation; i < pending_relocations_.size(); ++i) {
    pending_relocations_[i].variable = index;
  }
  symbols_.Declare(name.text, {Binding::Kind::kModuleVariable, index});
  module_.variables.push_back(std::move(variable));
  return {};
}

Status Parser::ParseFunctionVariables(Space space) {
  ASSAY_TRY(const VariableHead head, ParseVariableHead(space));
  do {
    ASSAY_TRY(const Token name, ExpectIdentifier("the name of a variable"));
    ASSAY_TRY(const Dimensions dimensions, ParseDimensions(head));
    Variable variable;
    ASSAY_TRY_VOID(SetSize(variable, head, dimensions, name));
    if (dimensions.open) return Error_(name, "an array without a size", "give the size");
    if (current_.Is('=')) {
      return Error_(current_, fmt::format("a .{} variable has no initialiser", Name(space)));
    }
    const auto index = static_cast<std::uint32_t>(function_.variables.size());
    if (name.text == "_" || FindSpecialRegister(name.text) ||
        !symbols_.Declare(name.text, {Binding::Kind::kFunctionVariable, index})) {
      return Error_(name, fmt::format("'{}' cannot be declared here: the name is taken",
                                      name.text.substr(0, 60)));
    }
    function_.variables.push_back(std::move(variable));
  } while (Accept(','));
  return Expect(';');
}

std::uint64_t Parser::RegisterLimit() const {
  return std::min<std::uint64_t>(kLimits.registers, kLimits.registers_of_small_text + text_.size());
}

Status Parser::AddRegisterRange(const Token& prefix, Type type) {
  const Token at = current_;
  ASSAY_TRY(const std::uint64_t count, ExpectCount("a number of registers", RegisterLimit()));
  register_count_ += count;
  if (register_count_ > RegisterLimit()) {
    return Error_(at, fmt::format("more than {} registers", RegisterLimit()), {},
                  ErrorKind::kLimit);
  }
  const auto first = static_cast<std::uint32_t>(function_.registers.size());
  if (!symbols_.DeclareRange(prefix.text, first, static_cast<std::uint32_t>(count))) {
    return Error_(prefix,
                  fmt::format("registers '{}...' are declared twice", prefix.text.substr(0, 60)));
  }
  function_.registers.reserve(function_.registers.size() + count);
  for (std::uint64_t i = 0; i < count; ++i) {
    function_.registers.push_back({std::string(prefix.text) + std::to_string(i), type});
  }
  return Expect('>');
}

Status Parser::ParseRegisters() {
  ASSAY_TRY(const VariableHead head, ParseVariableHead(Space::kReg));
  if (head.vector > 1) {
    return Error_(current_, "vector registers are not covered", "declare one register an element",
                  ErrorKind::kUnsupported);
  }
  do {
    ASSAY_TRY(const Token name, ExpectIdentifier("the name of a register"));
    if (Accept('<')) {
      ASSAY_TRY_VOID(AddRegisterRange(name, head.type));
      continue;
    }
    if (++register_count_ > RegisterLimit()) {
      return Error_(name, fmt::format("more than {} registers", RegisterLimit()), {},
                    ErrorKind::kLimit);
    }
    const auto index = static_cast<std::uint32_t>(function_.registers.size());
    if (name.text == "_" || FindSpecialRegister(name.text) ||
        !symbols_.Declare(name.text, {Binding::Kind::kRegister, index})) {
      return Error_(name, fmt::format("'{}' cannot be declared here: the name is taken",
                                      name.text.substr(0, 60)));
    }
    function_.registers.push_back({std::string(name.text), head.type});
  } while (Accept(','));
  return Expect(';');
}

Result<Variable> Parser::ParseParameter() {
  const bool in_register = current_.IsDotted("reg");
  if (!in_register && !current_.IsDotted("param")) return Expected("'.param' or '.reg'");
  Advance();
  ASSAY_TRY(const VariableHead head, ParseVariableHead(in_register ? Space::kReg : Space::kParam));
  ASSAY_TRY(const Token name, ExpectIdentifier("the name of a parameter"));
  ASSAY_TRY(const Dimensions dimensions, ParseDimensions(head));
  Variable variable;
  ASSAY_TRY_VOID(SetSize(variable, head, dimensions, name));
  if (in_register && !dimensions.counts.empty()) {
    return Error_(name, "a register parameter is one scalar");
  }
  return variable;
}

}  // namespace assay::ptx

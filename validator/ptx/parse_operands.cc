// Operands: registers, constants, names, addresses, vectors.
#include <fmt/format.h>

#include <string>

#include "validator/ptx/names.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {
namespace {

using Kind = Operand::Kind;

/// 0..3 for x y z w; -1 otherwise.
int ComponentNumber(std::string_view text) {
  constexpr std::string_view kComponents = "xyzw";
  if (text.size() != 1) return -1;
  const std::size_t found = kComponents.find(text[0]);
  return found == std::string_view::npos ? -1 : static_cast<int>(found);
}

}  // namespace

Status Parser::ParseOperands(std::vector<Operand>& operands) {
  operands.reserve(4);
  bool paired = false;
  while (true) {
    if (operands.size() >= kLimits.vector_elements) {
      return Error_(current_, "too many operands", {}, ErrorKind::kLimit);
    }
    ASSAY_TRY(Operand operand, ParseOperand(0));
    operand.paired = paired;
    operands.push_back(std::move(operand));
    if (Accept(',')) {
      paired = false;
    } else if (Accept('|')) {
      paired = true;
    } else {
      return {};
    }
  }
}

Result<Operand> Parser::ParseRegister() {
  const Token name = current_;
  ASSAY_TRY(Operand operand, ParseOperand(1));
  if (operand.kind != Kind::kRegister || operand.negated) {
    return Error_(name, fmt::format("'{}' is not a register", name.text.substr(0, 60)));
  }
  return operand;
}

Result<Operand> Parser::ParseOperand(int depth) {
  const Token token = current_;
  if (token.kind == Token::Kind::kIdentifier && token.text != "WARP_SZ") {
    Advance();
    return ParseName(token);
  }
  if (token.Is('[')) {
    if (depth > 0) return Error_(token, "an address cannot stand here");
    return ParseAddress();
  }
  if (token.Is('{')) {
    if (depth > 0) return Error_(token, "a vector cannot stand here");
    return ParseVector(depth);
  }
  if (token.Is('!')) {
    // `!%p1`; `!1` is a constant expression.
    Advance();
    if (current_.kind == Token::Kind::kIdentifier) {
      ASSAY_TRY(Operand operand, ParseRegister());
      operand.negated = true;
      return operand;
    }
    ASSAY_TRY(const std::int64_t value, ParseInteger());
    return Operand{.kind = Kind::kImmediate, .bits = value == 0 ? 1u : 0u};
  }
  if (token.kind == Token::Kind::kEnd || token.kind == Token::Kind::kDotted ||
      token.kind == Token::Kind::kString || token.Is(';')) {
    return Expected("an operand");
  }
  ASSAY_TRY(const Constant constant, ParseConstant());
  return Operand{.kind = Kind::kImmediate, .immediate_type = constant.type, .bits = constant.bits};
}

Result<Operand> Parser::ParseName(const Token& name) {
  if (name.text == "_") return Operand{.kind = Kind::kSink};
  if (const auto found = symbols_.Find(name.text)) {
    Operand operand;
    switch (found->kind) {
      case Binding::Kind::kRegister:
        operand.reg = found->index;
        if (current_.kind == Token::Kind::kDotted && lexer_.Peek() != '\0' &&
            current_.offset == name.offset + name.text.size()) {
          return Error_(current_, "parts of registers are not covered", {},
                        ErrorKind::kUnsupported);
        }
        return operand;
      case Binding::Kind::kModuleVariable:
      case Binding::Kind::kFunctionVariable:
        operand.kind = Kind::kSymbol;
        operand.has_symbol = true;
        operand.symbol = {found->kind == Binding::Kind::kModuleVariable
                              ? SymbolRef::Scope::kModule
                              : SymbolRef::Scope::kFunction,
                          found->index};
        if (current_.Is('+') || current_.Is('-')) {
          ASSAY_TRY(operand.offset, ParseInteger());
        }
        return operand;
      case Binding::Kind::kFunction:
        operand.kind = Kind::kFunction;
        operand.function = found->index;
        return operand;
      case Binding::Kind::kPrototype:
        operand.kind = Kind::kPrototype;
        operand.target = found->index;
        return operand;
      case Binding::Kind::kTargetList:
        return Error_(name, "a .branchtargets list cannot stand here");
    }
  }
  if (const auto special = FindSpecialRegister(name.text)) {
    Operand operand{.kind = Kind::kSpecial, .special = *special};
    if (!IsVector(*special)) return operand;
    const int component =
        current_.kind == Token::Kind::kDotted ? ComponentNumber(current_.text) : -1;
    if (component < 0) return Expected("a component: '.x', '.y' or '.z'");
    operand.component = static_cast<std::uint8_t>(component);
    Advance();
    return operand;
  }
  if (name.text.starts_with('%')) {
    return Error_(name, fmt::format("unknown register '{}'", name.text.substr(0, 60)),
                  "declare it with .reg in this scope or one around it");
  }
  return Error_(name, fmt::format("unknown name '{}'", name.text.substr(0, 60)),
                "declare the variable or function before its use");
}

Result<Operand> Parser::ParseAddress() {
  const Token open = current_;
  Advance();
  Operand address{.kind = Kind::kAddress};
  if (current_.kind == Token::Kind::kIdentifier && current_.text != "WARP_SZ") {
    const Token name = current_;
    Advance();
    ASSAY_TRY(Operand base, ParseName(name));
    if (base.kind == Kind::kRegister) {
      address.has_base_register = true;
      address.reg = base.reg;
      if (current_.Is('+') || current_.Is('-')) {
        // `+` is part of the syntax, `-` of the constant: both occur, also as `+-8`.
        Accept('+');
        ASSAY_TRY(address.offset, ParseInteger());
      }
    } else if (base.kind == Kind::kSymbol) {
      address.has_symbol = true;
      address.symbol = base.symbol;
      address.offset = base.offset;
    } else {
      return Error_(name, "an address is a register, a variable or a constant, plus an offset");
    }
  } else {
    ASSAY_TRY(address.offset, ParseInteger());
  }
  if (!Accept(',')) {
    ASSAY_TRY_VOID(Expect(']'));
    return address;
  }
  Operand tensor{.kind = Kind::kTensor};
  tensor.elements.push_back(std::move(address));
  if (!current_.Is('{')) return Expected("'{' and the coordinates");
  ASSAY_TRY(Operand coordinates, ParseVector(1));
  for (Operand& element : coordinates.elements) tensor.elements.push_back(std::move(element));
  if (!current_.Is(']'))
    return Error_(current_, "expected ']'",
                  "close the address that opened on line " + std::to_string(open.line));
  Advance();
  return tensor;
}

Result<Operand> Parser::ParseVector(int depth) {
  Operand vector{.kind = Kind::kVector};
  ASSAY_TRY_VOID(Expect('{'));
  vector.elements.reserve(4);
  do {
    if (vector.elements.size() >= kLimits.vector_elements) {
      return Error_(current_, "a vector of too many elements", {}, ErrorKind::kLimit);
    }
    ASSAY_TRY(Operand element, ParseOperand(depth + 1));
    vector.elements.push_back(std::move(element));
  } while (Accept(','));
  ASSAY_TRY_VOID(Expect('}'));
  return vector;
}

}  // namespace assay::ptx

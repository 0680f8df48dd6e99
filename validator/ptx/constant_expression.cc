// Constant expressions (4.5.3): literals, unary and binary operators on 64-bit integers,
// parentheses. Floats may be negated only.
#include <fmt/format.h>

#include <bit>
#include <string>

#include "validator/ptx/parser.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {
namespace {

/// Binding strength of a binary operator, as in C; 0 for anything else.
int Precedence(const Token& token) {
  if (token.kind != Token::Kind::kPunctuation) return 0;
  switch (token.symbol) {
    case '|':
      return 1;
    case '^':
      return 2;
    case '&':
      return 3;
    case 'l':
    case 'r':
      return 4;
    case '+':
    case '-':
      return 5;
    case '*':
    case '/':
    case '%':
      return 6;
    default:
      return 0;
  }
}

/// Wraps modulo 2^64; division and right shifts are signed. Division by zero is the caller's to
/// refuse.
std::uint64_t Apply(char op, std::uint64_t a, std::uint64_t b) {
  const auto signed_a = static_cast<std::int64_t>(a);
  const auto signed_b = static_cast<std::int64_t>(b);
  switch (op) {
    case '|':
      return a | b;
    case '^':
      return a ^ b;
    case '&':
      return a & b;
    case 'l':
      return b < 64 ? a << b : 0;
    case 'r':
      return static_cast<std::uint64_t>(signed_a >> (b < 64 ? b : 63));
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return signed_b == -1 ? 0 - a : static_cast<std::uint64_t>(signed_a / signed_b);
    default:
      return signed_b == -1 ? 0 : static_cast<std::uint64_t>(signed_a % signed_b);
  }
}

}  // namespace

Result<Parser::Constant> Parser::ParseUnary(int depth) {
  if (depth > kLimits.nesting) {
    return Error_(current_, "a constant expression nested too deeply", {}, ErrorKind::kLimit);
  }
  const Token token = current_;
  switch (token.kind) {
    case Token::Kind::kInteger:
      Advance();
      return Constant{Type::kNone, token.bits};
    case Token::Kind::kFloat32:
      Advance();
      return Constant{Type::kF32, token.bits};
    case Token::Kind::kFloat64:
      Advance();
      return Constant{Type::kF64, token.bits};
    case Token::Kind::kIdentifier:
      if (token.text != "WARP_SZ") break;
      Advance();
      return Constant{Type::kNone, 32};
    case Token::Kind::kPunctuation: {
      if (Accept('(')) {
        ASSAY_TRY(Constant inner, ParseBinary(1, depth + 1));
        ASSAY_TRY_VOID(Expect(')'));
        return inner;
      }
      if (!token.Is('-') && !token.Is('+') && !token.Is('~') && !token.Is('!')) break;
      Advance();
      ASSAY_TRY(Constant value, ParseUnary(depth + 1));
      if (value.type != Type::kNone) {
        if (token.Is('-')) {
          value.bits ^= value.type == Type::kF32 ? std::uint64_t{1} << 31 : std::uint64_t{1} << 63;
        } else if (!token.Is('+')) {
          return Error_(token, "this operator needs an integer");
        }
        return value;
      }
      if (token.Is('-')) value.bits = 0 - value.bits;
      if (token.Is('~')) value.bits = ~value.bits;
      if (token.Is('!')) value.bits = value.bits == 0 ? 1 : 0;
      return value;
    }
    default:
      break;
  }
  return Expected("a constant");
}

Result<Parser::Constant> Parser::ParseBinary(int precedence, int depth) {
  ASSAY_TRY(Constant left, ParseUnary(depth));
  while (Precedence(current_) >= precedence) {
    const Token op = current_;
    Advance();
    ASSAY_TRY(const Constant right, ParseBinary(Precedence(op) + 1, depth + 1));
    if (left.type != Type::kNone || right.type != Type::kNone) {
      return Error_(op, "arithmetic between constants needs integers");
    }
    if ((op.Is('/') || op.Is('%')) && right.bits == 0) {
      return Error_(op, "a constant divided by zero");
    }
    left.bits = Apply(op.symbol, left.bits, right.bits);
  }
  return left;
}

Result<Parser::Constant> Parser::ParseConstant() { return ParseBinary(1, 0); }

Result<std::int64_t> Parser::ParseInteger() {
  const Token at = current_;
  ASSAY_TRY(const Constant value, ParseConstant());
  if (value.type != Type::kNone) return Error_(at, "expected an integer, found a float");
  return static_cast<std::int64_t>(value.bits);
}

}  // namespace assay::ptx

#include "ops/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>

#include "ops/expression_steps.h"

namespace assay::ops {
namespace {

constexpr std::size_t kMaxLength = 1024;
constexpr int kMaxDepth = 64;

enum Code : std::uint8_t {
  kLiteral,
  kName,
  kNegate,
  kNot,
  kBool,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kMin,
  kMax,
  kCeilDiv,
  kRoundUp,
  kAndJump,
  kOrJump,  // short circuit: value is the index to go to
};

struct Operator {
  std::string_view text;
  int precedence;
  Code code;
};
// Longer spellings first: "<=" must not be read as "<".
constexpr std::array kOperators = {
    Operator{"||", 1, kOrJump},   Operator{"&&", 2, kAndJump},   Operator{"==", 3, kEqual},
    Operator{"!=", 3, kNotEqual}, Operator{"<=", 4, kLessEqual}, Operator{">=", 4, kGreaterEqual},
    Operator{"<", 4, kLess},      Operator{">", 4, kGreater},    Operator{"+", 5, kAdd},
    Operator{"-", 5, kSubtract},  Operator{"*", 6, kMultiply},   Operator{"/", 6, kDivide},
    Operator{"%", 6, kRemainder},
};

struct Function {
  std::string_view name;
  Code code;
};
constexpr std::array kFunctions = {
    Function{"min", kMin},
    Function{"max", kMax},
    Function{"ceil_div", kCeilDiv},
    Function{"round_up", kRoundUp},
};

std::unexpected<Error> At(const std::string& place, std::uint32_t column, std::string message,
                          std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message),
              fmt::format("{}, column {}", place, column), std::move(cure));
}

struct Item {
  Code code;
  std::int64_t value;
  std::uint32_t column;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  Status Run() {
    ASSAY_TRY_VOID(Binary(1, 0));
    SkipSpace();
    if (position_ < text_.size()) {
      return At(place_, Column(), fmt::format("unexpected '{}'", Printable(text_[position_])),
                "operators are + - * / % == != < <= > >= && || !");
    }
    return {};
  }

  std::vector<Item> items;
  std::vector<std::string> names;

 private:
  static std::string Printable(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  std::uint32_t Column() const { return static_cast<std::uint32_t>(position_ + 1); }
  void SkipSpace() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t'))
      ++position_;
  }
  bool Accept(char c) {
    SkipSpace();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  Status Expect(char c, std::string_view where) {
    if (Accept(c)) return {};
    return At(place_, Column(), fmt::format("expected '{}' {}", c, where));
  }
  const Operator* PeekOperator() {
    SkipSpace();
    for (const Operator& candidate : kOperators) {
      if (text_.substr(position_).starts_with(candidate.text)) return &candidate;
    }
    return nullptr;
  }

  Status Binary(int lowest, int depth) {
    if (depth > kMaxDepth)
      return At(place_, Column(), "nested too deeply", "simplify the expression");
    ASSAY_TRY_VOID(Unary(depth));
    while (const Operator* op = PeekOperator()) {
      if (op->precedence < lowest) break;
      const std::uint32_t column = Column();
      position_ += op->text.size();
      const std::size_t at = items.size();
      const bool jump = op->code == kAndJump || op->code == kOrJump;
      if (jump) items.push_back({op->code, 0, column});
      ASSAY_TRY_VOID(Binary(op->precedence + 1, depth + 1));
      if (jump) {
        items.push_back({kBool, 0, column});
        items[at].value = static_cast<std::int64_t>(items.size());
      } else {
        items.push_back({op->code, 0, column});
      }
    }
    return {};
  }

  Status Unary(int depth) {
    if (depth > kMaxDepth)
      return At(place_, Column(), "nested too deeply", "simplify the expression");
    SkipSpace();
    const std::uint32_t column = Column();
    if (position_ >= text_.size()) {
      return At(place_, column, "an operand is missing",
                "write a number, an axis or a parenthesis");
    }
    const char c = text_[position_];
    if (c == '-' || (c == '!' && !text_.substr(position_).starts_with("!="))) {
      ++position_;
      ASSAY_TRY_VOID(Unary(depth + 1));
      items.push_back({c == '-' ? kNegate : kNot, 0, column});
      return {};
    }
    if (Accept('(')) {
      ASSAY_TRY_VOID(Binary(1, depth + 1));
      return Expect(')', "to close the parenthesis");
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return Number();
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') return NameOrCall(depth);
    return At(place_, column, fmt::format("unexpected '{}'", Printable(c)),
              "write a number, an axis or a parenthesis");
  }

  Status Number() {
    const std::uint32_t column = Column();
    std::int64_t value = 0;
    while (position_ < text_.size() &&
           std::isdigit(static_cast<unsigned char>(text_[position_])) != 0) {
      const int digit = text_[position_++] - '0';
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{digit}, &value)) {
        return At(place_, column, "the number does not fit 63 bits");
      }
    }
    if (position_ < text_.size() &&
        (std::isalpha(static_cast<unsigned char>(text_[position_])) != 0 ||
         text_[position_] == '.')) {
      return At(place_, column, "numbers are decimal integers");
    }
    items.push_back({kLiteral, value, column});
    return {};
  }

  Status NameOrCall(int depth) {
    const std::uint32_t column = Column();
    const std::size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 ||
            text_[position_] == '_')) {
      ++position_;
    }
    const std::string_view name = text_.substr(start, position_ - start);
    if (!Accept('(')) {
      const auto found = std::ranges::find(names, name);
      const auto index = std::distance(names.begin(), found);
      if (found == names.end()) names.emplace_back(name);
      items.push_back({kName, index, column});
      return {};
    }
    const auto function = std::ranges::find(kFunctions, name, &Function::name);
    if (function == kFunctions.end()) {
      return At(place_, column, fmt::format("unknown function '{}'", name),
                "functions are min, max, ceil_div and round_up, of two operands each");
    }
    ASSAY_TRY_VOID(Binary(1, depth + 1));
    ASSAY_TRY_VOID(Expect(',', fmt::format("and a second operand of {}", name)));
    ASSAY_TRY_VOID(Binary(1, depth + 1));
    ASSAY_TRY_VOID(Expect(')', fmt::format("after the two operands of {}", name)));
    items.push_back({function->code, 0, column});
    return {};
  }

  std::string_view text_;
  const std::string& place_;
  std::size_t position_ = 0;
};

enum class Trouble { kNone, kOverflow, kZeroDivision, kNegative };

Trouble Divide(Code code, std::int64_t a, std::int64_t b, std::int64_t& out) {
  if (b == 0) return Trouble::kZeroDivision;
  if (a == INT64_MIN && b == -1) return Trouble::kOverflow;
  if (code == kDivide) out = a / b;
  if (code == kRemainder) out = a % b;
  if (code != kCeilDiv && code != kRoundUp) return Trouble::kNone;
  // Defined for a >= 0 and b > 0 only: nobody means anything by the rest.
  if (a < 0 || b < 0) return Trouble::kNegative;
  out = a / b + (a % b != 0 ? 1 : 0);
  if (code == kRoundUp && __builtin_mul_overflow(out, b, &out)) return Trouble::kOverflow;
  return Trouble::kNone;
}

Trouble Apply(Code code, std::int64_t a, std::int64_t b, std::int64_t& out) {
  const auto overflow = [](bool wrapped) { return wrapped ? Trouble::kOverflow : Trouble::kNone; };
  switch (code) {
    case kAdd:
      return overflow(__builtin_add_overflow(a, b, &out));
    case kSubtract:
      return overflow(__builtin_sub_overflow(a, b, &out));
    case kMultiply:
      return overflow(__builtin_mul_overflow(a, b, &out));
    case kEqual:
      out = a == b;
      break;
    case kNotEqual:
      out = a != b;
      break;
    case kLess:
      out = a < b;
      break;
    case kLessEqual:
      out = a <= b;
      break;
    case kGreater:
      out = a > b;
      break;
    case kGreaterEqual:
      out = a >= b;
      break;
    case kMin:
      out = std::min(a, b);
      break;
    case kMax:
      out = std::max(a, b);
      break;
    default:
      return Divide(code, a, b, out);
  }
  return Trouble::kNone;
}

}  // namespace

Result<Expression> Expression::Parse(std::string_view text, std::string place) {
  if (text.size() > kMaxLength) {
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("the expression is longer than {} characters", kMaxLength),
                std::move(place), "simplify it");
  }
  Parser parser(text, place);
  ASSAY_TRY_VOID(parser.Run());
  Expression parsed;
  parsed.text_ = text;
  parsed.program_.clear();
  // Names are sorted; the program's indices follow.
  parsed.names_ = parser.names;
  std::ranges::sort(parsed.names_);
  for (const Item& item : parser.items) {
    std::int64_t value = item.value;
    if (item.code == kName) {
      const auto& name = parser.names[static_cast<std::size_t>(item.value)];
      value = std::distance(parsed.names_.begin(), std::ranges::lower_bound(parsed.names_, name));
    }
    parsed.program_.push_back({item.code, value, item.column});
  }
  parsed.place_ = std::move(place);
  return parsed;
}

Expression Expression::Constant(std::int64_t value) {
  Expression constant;
  constant.text_ = std::to_string(value);
  constant.program_ = {{kLiteral, value, 1}};
  return constant;
}

namespace {

bool HasKink(std::uint8_t code) {
  return (code >= kEqual && code <= kGreaterEqual) || code == kMin || code == kMax;
}
bool IsQuotient(std::uint8_t code) { return code == kDivide || code == kCeilDiv; }

}  // namespace

Result<std::int64_t> Expression::Evaluate(const AxisValues& values) const {
  return Run(values, nullptr);
}

std::vector<Expression::Kink> Expression::Kinks(const AxisValues& values) const {
  return OperandsOf(HasKink, values);
}

std::vector<Expression::Kink> Expression::Quotients(const AxisValues& values) const {
  return OperandsOf(IsQuotient, values);
}

std::vector<Expression::Kink> Expression::OperandsOf(bool (*of)(std::uint8_t code),
                                                     const AxisValues& values) const {
  std::vector<Kink> by_token(program_.size());
  const Result<std::int64_t> value = Run(values, &by_token);
  std::vector<Kink> operands;
  for (std::size_t at = 0; at < program_.size(); ++at) {
    if (of(program_[at].code)) operands.push_back(value ? by_token[at] : std::nullopt);
  }
  return operands;
}

Result<std::int64_t> Expression::Run(const AxisValues& values, std::vector<Kink>* operands) const {
  std::vector<std::int64_t> stack;
  for (std::size_t at = 0; at < program_.size(); ++at) {
    const Token& token = program_[at];
    const auto code = static_cast<Code>(token.code);
    switch (code) {
      case kLiteral:
        stack.push_back(token.value);
        continue;
      case kName: {
        const std::string& name = names_[static_cast<std::size_t>(token.value)];
        const auto found = values.find(name);
        if (found == values.end()) {
          return At(place_, token.column, fmt::format("'{}' has no value here", name));
        }
        stack.push_back(found->second);
        continue;
      }
      case kNegate:
        if (stack.back() == INT64_MIN) return At(place_, token.column, "the result leaves 63 bits");
        stack.back() = -stack.back();
        continue;
      case kNot:
        stack.back() = stack.back() == 0;
        continue;
      case kBool:
        stack.back() = stack.back() != 0;
        continue;
      case kAndJump:
      case kOrJump:
        if ((stack.back() != 0) == (code == kOrJump)) {
          stack.back() = code == kOrJump;
          at = static_cast<std::size_t>(token.value) - 1;
        } else {
          stack.pop_back();
        }
        continue;
      default:
        break;
    }
    const std::int64_t b = stack.back();
    stack.pop_back();
    const std::int64_t a = stack.back();
    if (operands != nullptr) (*operands)[at] = {a, b};
    switch (Apply(code, a, b, stack.back())) {
      case Trouble::kNone:
        break;
      case Trouble::kOverflow:
        return At(place_, token.column,
                  fmt::format("'{}' leaves 63 bits at the operands {} and {}", text_, a, b));
      case Trouble::kZeroDivision:
        return At(place_, token.column, fmt::format("'{}' divides {} by zero", text_, a),
                  "guard it: max(divisor, 1)");
      case Trouble::kNegative:
        return At(place_, token.column,
                  fmt::format("'{}' rounds negative operands, {} and {}", text_, a, b),
                  "ceil_div and round_up are defined for operands of at least 0");
    }
  }
  return stack.back();
}

std::vector<std::int64_t> Expression::Literals() const {
  std::vector<std::int64_t> literals;
  for (const Token& token : program_) {
    if (token.code == kLiteral) literals.push_back(token.value);
  }
  return literals;
}

namespace {

using Step = ExpressionStep::Kind;

Step StepOf(Code code) {
  switch (code) {
    case kLiteral:
      return Step::kLiteral;
    case kName:
      return Step::kName;
    case kNegate:
      return Step::kNegate;
    case kNot:
      return Step::kNot;
    case kAdd:
      return Step::kAdd;
    case kSubtract:
      return Step::kSubtract;
    case kMultiply:
      return Step::kMultiply;
    case kDivide:
      return Step::kDivide;
    case kRemainder:
      return Step::kRemainder;
    case kEqual:
      return Step::kEqual;
    case kNotEqual:
      return Step::kNotEqual;
    case kLess:
      return Step::kLess;
    case kLessEqual:
      return Step::kLessEqual;
    case kGreater:
      return Step::kGreater;
    case kGreaterEqual:
      return Step::kGreaterEqual;
    case kMin:
      return Step::kMin;
    case kMax:
      return Step::kMax;
    case kCeilDiv:
      return Step::kCeilDiv;
    case kRoundUp:
      return Step::kRoundUp;
    case kAndJump:
      return Step::kAnd;
    case kOrJump:
      return Step::kOr;
    case kBool:
      break;
  }
  ASSAY_CHECK(false, "a step of its own");
}

}  // namespace

std::vector<ExpressionStep> StepsOf(const Expression& expression) {
  Parser parser(expression.text(), expression.place());
  ASSAY_CHECK(parser.Run(), "what was parsed once is parsed again");
  std::vector<ExpressionStep> steps;
  std::vector<Code> open;  // && and || whose right side is not complete
  for (const Item& item : parser.items) {
    if (item.code == kAndJump || item.code == kOrJump) {
      open.push_back(item.code);
      continue;
    }
    ExpressionStep step{.kind = Step::kLiteral, .value = item.value, .name = {}};
    if (item.code == kBool) {
      step.kind = StepOf(open.back());
      open.pop_back();
    } else {
      step.kind = StepOf(item.code);
    }
    if (item.code == kName) step.name = parser.names[static_cast<std::size_t>(item.value)];
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace assay::ops

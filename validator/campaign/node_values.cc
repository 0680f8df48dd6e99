#include "validator/campaign/node_values.h"

#include <algorithm>
#include <cmath>

namespace assay::campaign {

using Op = facts::Node::Op;
using Type = facts::Node::Type;

static std::int64_t Wrapped(Type type, std::int64_t bits) {
  switch (type) {
    case Type::kU16:
      return static_cast<std::uint16_t>(bits);
    case Type::kS16:
      return static_cast<std::int16_t>(bits);
    case Type::kU32:
      return static_cast<std::uint32_t>(bits);
    case Type::kS32:
      return static_cast<std::int32_t>(bits);
    case Type::kBool:
      return bits & 1;
    default:
      return bits;
  }
}

static int WidthOf(Type type) {
  switch (type) {
    case Type::kU16:
    case Type::kS16:
      return 16;
    case Type::kU32:
    case Type::kS32:
      return 32;
    default:
      return 64;
  }
}

bool IsSigned(Type type) { return type == Type::kS16 || type == Type::kS32 || type == Type::kS64; }

double AsReal(Value value) {
  return value.is_real() ? value.real() : static_cast<double>(value.bits);
}

Value As(Type type, Value value) {
  if (type == Type::kReal) return RealValue(AsReal(value));
  if (!value.is_real()) return Integer(type, value.bits);
  constexpr double kMost = 9.2e18;
  const double real = std::isnan(value.real()) ? 0 : std::clamp(value.real(), -kMost, kMost);
  return Integer(type, static_cast<std::int64_t>(real));
}

Value Integer(Type type, std::int64_t bits) { return {Wrapped(type, bits), Value::Kind::kInteger}; }

int Compare(Type type, Value a, Value b) {
  if (a.is_real()) return a.real() < b.real() ? -1 : a.real() > b.real();
  if (IsSigned(type)) return a.bits < b.bits ? -1 : a.bits > b.bits;
  const auto left = static_cast<std::uint64_t>(a.bits);
  const auto right = static_cast<std::uint64_t>(b.bits);
  return left < right ? -1 : left > right;
}

static Value Real(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return RealValue(a + b);
    case Op::kSubtract:
      return RealValue(a - b);
    case Op::kMultiply:
      return RealValue(a * b);
    case Op::kDivide:
      return RealValue(a / b);
    case Op::kMin:
      return RealValue(std::fmin(a, b));
    case Op::kMax:
      return RealValue(std::fmax(a, b));
    case Op::kNegate:
      return RealValue(-a);
    case Op::kAbsolute:
      return RealValue(std::fabs(a));
    case Op::kSquareRoot:
      return RealValue(std::sqrt(a));
    default:
      return kNoValue;
  }
}

static Value Divided(Op op, Type type, std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return kNoValue;
  if (IsSigned(type)) return Integer(type, op == Op::kDivide ? a / b : a % b);
  const auto left = static_cast<std::uint64_t>(a);
  const auto right = static_cast<std::uint64_t>(b);
  return Integer(type, static_cast<std::int64_t>(op == Op::kDivide ? left / right : left % right));
}

static std::int64_t HighHalf(Type type, std::int64_t a, std::int64_t b) {
  if (WidthOf(type) < 64) return (a * b) >> WidthOf(type);
  if (IsSigned(type)) return static_cast<std::int64_t>((static_cast<__int128>(a) * b) >> 64);
  const auto product =
      static_cast<unsigned __int128>(static_cast<std::uint64_t>(a)) * static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(product >> 64);
}

static std::int64_t Shifted(Op op, Type type, std::int64_t a, std::int64_t by) {
  const int width = WidthOf(type);
  const bool gone = by < 0 || by >= width;
  if (op == Op::kShiftLeft)
    return gone ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << by);
  if (IsSigned(type)) return a >> (gone ? 63 : by);
  return gone ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) >> by);
}

static Value Integers(Op op, Type type, std::int64_t a, std::int64_t b) {
  const auto unsigned_a = static_cast<std::uint64_t>(a);
  const auto unsigned_b = static_cast<std::uint64_t>(b);
  const auto of = [&](std::uint64_t bits) {
    return Integer(type, static_cast<std::int64_t>(bits));
  };
  const int order = Compare(type, {a, Value::Kind::kInteger}, {b, Value::Kind::kInteger});
  switch (op) {
    case Op::kAdd:
      return of(unsigned_a + unsigned_b);
    case Op::kSubtract:
      return of(unsigned_a - unsigned_b);
    case Op::kMultiply:
      return of(unsigned_a * unsigned_b);
    case Op::kMultiplyHigh:
      return Integer(type, HighHalf(type, a, b));
    case Op::kDivide:
    case Op::kRemainder:
      return Divided(op, type, a, b);
    case Op::kAnd:
      return Integer(type, a & b);
    case Op::kOr:
      return Integer(type, a | b);
    case Op::kXor:
      return Integer(type, a ^ b);
    case Op::kNot:
      return Integer(type, ~a);
    case Op::kNegate:
      return of(0 - unsigned_a);
    case Op::kAbsolute:
      return of(a < 0 ? 0 - unsigned_a : unsigned_a);
    case Op::kShiftLeft:
    case Op::kShiftRight:
      return Integer(type, Shifted(op, type, a, b));
    case Op::kMin:
      return Integer(type, order <= 0 ? a : b);
    case Op::kMax:
      return Integer(type, order >= 0 ? a : b);
    default:
      return kNoValue;
  }
}

bool Holds(Op op, int order) {
  switch (op) {
    case Op::kEqual:
      return order == 0;
    case Op::kNotEqual:
      return order != 0;
    case Op::kLess:
      return order < 0;
    case Op::kLessEqual:
      return order <= 0;
    case Op::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Value Apply(Op op, Type type, Value a, Value b) {
  return type == Type::kReal ? Real(op, a.real(), b.real()) : Integers(op, type, a.bits, b.bits);
}

}  // namespace assay::campaign

// What a facts::Node computes, on numbers: integers of 16 to 64 bits with PTX's wrapping and signs,
// and reals as doubles. For guidance, so floats are not rounded to their type.
#pragma once

#include <bit>
#include <cstdint>

#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// An integer, a real, or nothing. Two words, so that it is passed in registers: shapes are searched by a million of them.
struct Value {
  enum class Kind : std::uint64_t { kNothing, kInteger, kReal };
  // Without initialisers: whoever computes a decision has an array of them, most of it never used.
  std::int64_t bits;  ///< Of a real: those of its double.
  Kind kind;

  bool is_real() const { return kind == Kind::kReal; }
  double real() const { return std::bit_cast<double>(bits); }
  explicit operator bool() const { return kind != Kind::kNothing; }
};
inline constexpr Value kNoValue = {0, Value::Kind::kNothing};
inline Value RealValue(double real) {
  return {std::bit_cast<std::int64_t>(real), Value::Kind::kReal};
}

/// `bits` as a value of an integer type.
Value Integer(facts::Node::Type type, std::int64_t bits);
/// Converted: reals to integers towards zero, saturating.
Value As(facts::Node::Type type, Value value);
double AsReal(Value value);
bool IsSigned(facts::Node::Type type);
/// The sign of a - b.
int Compare(facts::Node::Type type, Value a, Value b);
/// Does a comparison hold for that sign?
bool Holds(facts::Node::Op op, int order);
/// An operation of one or two operands of its type; nothing for what has no result (x / 0) or is none.
Value Apply(facts::Node::Op op, facts::Node::Type type, Value a, Value b);

}  // namespace assay::campaign

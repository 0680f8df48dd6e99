// What a facts::Node computes, on numbers: integers of 16 to 64 bits with PTX's wrapping and signs,
// and reals as doubles. For guidance, so floats are not rounded to their type.
#pragma once

#include <cstdint>
#include <optional>

#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// An integer as its 64 bits, or a real.
struct Value {
  // Without initialisers: whoever computes a decision has an array of them, most of it never used.
  bool is_real;
  std::int64_t bits;
  double real;
};

/// `bits` as a value of an integer type.
Value Integer(facts::Node::Type type, std::int64_t bits);
/// Converted: reals to integers towards zero, saturating.
Value As(facts::Node::Type type, const Value& value);
double AsReal(const Value& value);
bool IsSigned(facts::Node::Type type);
/// The sign of a - b.
int Compare(facts::Node::Type type, const Value& a, const Value& b);
/// Does a comparison hold for that sign?
bool Holds(facts::Node::Op op, int order);
/// An operation of one or two operands of its type; nothing for what has no result (x / 0) or is none.
std::optional<Value> Apply(facts::Node::Op op, facts::Node::Type type, const Value& a,
                           const Value& b);

}  // namespace assay::campaign

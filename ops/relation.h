// How an output is held to its truth: a value that op.json states by output (docs/ops.md, section 5).
//
//   "outputs": {"index":  {"shape": ["rows", "k"], "dtype": "i32", "relation": {"kind": "choice", "scores": "scores"}},
//               "scores": {"shape": ["rows", "columns"], "hidden": true}}
//
//   kind        the output is right when
//   allowance   each element is within the error that honest arithmetic may have; the rule for floats
//   exact       each element is the truth, rounded to the dtype; the rule for integers
//   any         it is written: its values are open
//   norm        the error of each vector, the last dimensions, is within the norm of its allowances
//   unordered   it is a permutation of the truth, within rows, or among the ties of another output
//   choice      it names the best by scores that are themselves computed, each within its error
//
// What a candidate chose is handed to the reference, which computes everything else for it: two
// honest kernels may choose differently where scores are near, and each is held to its own choice.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::ops {

struct Relation {
  enum class Kind : std::uint8_t {
    kUsual,  ///< Nothing stated: kAllowance for floats, kExact for integers.
    kAllowance,
    kExact,
    kAny,
    kNorm,
    kUnordered,
    kChoice,
  } kind = Kind::kUsual;
  std::int64_t over = 1;  ///< kNorm: so many of the last dimensions are one vector.
  /// kChoice: the output with the scores; candidates run along its last dimension. kUnordered: the
  /// output whose equal elements say what may change places; empty: all of a row may.
  std::string of;
  std::optional<double> padding;  ///< kUnordered: what holds this value stays in its place.
  bool largest = true;            ///< kChoice: the best is the largest score, not the smallest.
  bool sorted = true;             ///< kChoice: the best comes first; else any order will do.
  bool first_of_ties = false;     ///< kChoice: of scores that are equal exactly, the first one's.

  std::optional<bool> any_nan;   ///< Open where the truth is NaN; unset: as the contract says.
  bool keeps_zero_sign = false;  ///< -0 and 0 are different where the truth is exact.
  std::string where;  ///< Compared only where this output of the reference is not 0; empty: all.

  /// Is every element held to a truth of its own?
  bool HoldsElements() const {
    return (kind == Kind::kUsual || kind == Kind::kAllowance || kind == Kind::kExact) &&
           where.empty();
  }
  bool operator==(const Relation&) const = default;
};

/// A kind, its name in op.json, and what a kernel's author is told.
struct RelationName {
  Relation::Kind kind;
  std::string_view name;
  std::string_view meaning;
};
/// Those that can be stated.
std::span<const RelationName> RelationNames();

/// What a kernel's author is told of a relation; empty where it is the usual one.
std::string RelationText(const Relation& relation);

}  // namespace assay::ops

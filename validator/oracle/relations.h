// Relations between an output and its truth (ops/relation.h): one row of a table each.
//
// A row looks at one output and adds findings and statistics. What no rounding explains is a wrong
// value; what narrower arithmetic than the contract's would do is a matter of precision.
#pragma once

#include <span>

#include "ops/op.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// One output, with everything that it may be compared by.
struct Compared {
  const ops::Instance& instance;
  const TensorMap& inputs;
  const ops::TensorSpec& spec;
  const Truth& all;  ///< Of the op's other outputs, hidden ones too.
  const OutputTruth& truth;
  const Tensor& got;

  /// Is it open what a candidate holds where the truth is NaN?
  bool AnyNan() const;
};

struct RelationRow {
  ops::Relation::Kind kind;
  void (*compare)(const Compared& output, Comparison& out);
};
/// One for each kind.
std::span<const RelationRow> RelationRows();

/// Each element against its allowance, then rows, columns, signs and growth (compare.cc).
void CompareElements(const Compared& output, Comparison& out);
/// The row of kChoice (compare_choice.cc).
void CompareChoice(const Compared& output, Comparison& out);
/// The row of kNorm (compare_norm.cc).
void CompareNorm(const Compared& output, Comparison& out);

}  // namespace assay::oracle

// What a run of the reference with bounded numbers leaves behind, as the truth of an output.
#pragma once

#include <cstdint>
#include <optional>

#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// One output element, as the prelude's BoundedCell stores it.
struct Cell {
  double value;        ///< Truth.
  double hard;         ///< Largest honest error before the rounding to the output's dtype.
  double typical;      ///< Its standard deviation, rather above than below.
  double terms;        ///< Terms of the last accumulation that are not zero.
  double length;       ///< Longest accumulation behind it; -1: none, though it was computed.
  double independent;  ///< The part of `typical` that is independent from element to element.
};

/// `cells` is f64, of the output's shape with one more axis of 6. Where terms are not exchangeable,
/// the typical error is the largest one.
OutputTruth ReadCells(const ops::Instance& instance, const ops::TensorSpec& spec,
                      const Tensor& cells, bool exchangeable);

/// One element; nothing where its cell was not written, or holds a plain 0.
std::optional<TruthPoint> ReadCell(const ops::Instance& instance, const ops::TensorSpec& spec,
                                   const Tensor& cells, std::int64_t index);
/// Fills in_order, in_order_fused and in_order_slack from three more runs of the reference, in the
/// contract's type twice and bounded.
void ReadInOrder(const Tensor& separate, const Tensor& fused, const Tensor& bounded,
                 OutputTruth& truth);

}  // namespace assay::oracle

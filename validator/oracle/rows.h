// Some rows of a case as a case of their own, where an op declares that its rows are independent
// (ops/properties.h): how slices of ops are judged whose truths hang on choices, which a reference
// cannot compute element by element.
//
//   tokens=100000 hidden=7168, of which a slice wrote rows 0, 1 and 99999  ->  tokens=3 hidden=7168
//
// A truth of the rows is a truth of what was written, with all relations between outputs, and at the
// bounds of a whole case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"
#include "validator/cases/case.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// The axis that counts the rows of every output, and of each input that extends along it; nothing
/// where there is none, or where rows of an input are not declared independent.
std::optional<std::string> AxisOfRows(const ops::OpSpec& op);

/// Rows of which every element of every output is among `written`, ascending.
std::vector<std::int64_t> RowsWritten(const TensorMap& outputs, const SparseElements& written);

/// These rows of each tensor that has `axis` first, and all of the others.
Result<TensorMap> TakeRows(const std::vector<ops::TensorSpec>& specs, const TensorMap& tensors,
                           const std::string& axis, const std::vector<std::int64_t>& rows);

/// Says of each finding which row of the case it means.
void NameRows(const std::vector<std::int64_t>& rows, Comparison& comparison);

}  // namespace assay::oracle

// Words for what a comparison finds: places, rows, distributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "validator/oracle/groups.h"

namespace assay::oracle {

/// One index a dimension, of the element at `flat` in row-major order.
std::vector<std::int64_t> IndexOf(const Shape& shape, std::size_t flat);
/// "[3, 17]"; empty for scalars.
std::string Subscript(const std::vector<std::int64_t>& index);
/// "row 3", "row [1, 3]", "the whole output".
std::string RowName(const Shape& shape, std::size_t row);
/// "17 terms"
std::string Terms(double contributions);
/// "0 ulp: 97.2 %, 1 ulp: 2.1 %, up to 2 ulp: 0.7 %": shares of elements by |got - rounded truth|.
std::string Histogram(const Groups& groups);

}  // namespace assay::oracle

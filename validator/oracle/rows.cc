#include "validator/oracle/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "ops/properties.h"

namespace assay::oracle {
namespace {

bool HasRows(const ops::TensorSpec& spec, const std::string& axis) {
  return !spec.is_scalar && ops::DimensionOf(spec, axis).value_or(1) == 0;
}

/// Does it extend along the axis in any other way than by its rows?
bool Otherwise(const ops::OpSpec& op, const ops::TensorSpec& spec, const std::string& axis) {
  if (spec.is_scalar) return false;
  return ops::AlsoHangsOn(op, spec, axis) || ops::DimensionOf(spec, axis).value_or(0) != 0;
}

}  // namespace

std::optional<std::string> AxisOfRows(const ops::OpSpec& op) {
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    const auto independent = [&](const ops::TensorSpec& input) {
      if (Otherwise(op, input, axis.name)) return false;
      if (!HasRows(input, axis.name)) return true;
      return std::ranges::any_of(op.properties, [&](const ops::Property& property) {
        return property.name == "independent_rows" &&
               property.arguments == std::vector<std::string>{input.name, axis.name};
      });
    };
    const auto has_rows = [&](const ops::TensorSpec& output) {
      return output.updates.empty() && HasRows(output, axis.name) &&
             !Otherwise(op, output, axis.name);
    };
    // Where no input has such rows, which of them is meant stands in values, and taking some out is
    // another case.
    const auto taken = [&](const ops::TensorSpec& input) {
      return !input.is_scalar && ops::DimensionOf(input, axis.name) == 0;
    };
    if (std::ranges::any_of(op.inputs, taken) && std::ranges::all_of(op.inputs, independent) &&
        std::ranges::all_of(op.outputs, has_rows))
      return axis.name;
  }
  return std::nullopt;
}

std::vector<std::int64_t> RowsWritten(const TensorMap& outputs, const SparseElements& written) {
  std::map<std::int64_t, std::size_t> complete;  // of so many outputs
  for (const auto& [name, tensor] : outputs) {
    const auto elements = written.find(name);
    if (elements == written.end() || tensor.shape.empty() || tensor.shape.front() == 0) return {};
    const std::int64_t length = tensor.elements / tensor.shape.front();
    std::map<std::int64_t, std::int64_t> counts;
    for (const std::int64_t index : elements->second) ++counts[index / length];
    for (const auto& [row, count] : counts) {
      if (count == length) ++complete[row];
    }
  }
  std::vector<std::int64_t> rows;
  for (const auto& [row, count] : complete) {
    if (count == outputs.size()) rows.push_back(row);
  }
  return rows;
}

Result<TensorMap> TakeRows(const std::vector<ops::TensorSpec>& specs, const TensorMap& tensors,
                           const std::string& axis, const std::vector<std::int64_t>& rows) {
  TensorMap taken;
  for (const ops::TensorSpec& spec : specs) {
    const auto found = tensors.find(spec.name);
    if (found == tensors.end()) continue;
    const Tensor& all = found->second;
    if (!HasRows(spec, axis)) {
      ASSAY_TRY(Tensor copy, all.Clone());
      taken.emplace(spec.name, std::move(copy));
      continue;
    }
    Shape shape = all.shape;
    const std::int64_t length = all.elements / shape.front();
    shape.front() = static_cast<std::int64_t>(rows.size());
    ASSAY_TRY(Tensor some, Tensor::Create(all.dtype, std::move(shape)));
    const std::size_t bytes = static_cast<std::size_t>(length) * SizeOf(all.dtype);
    for (std::size_t i = 0; i < rows.size() && length > 0; ++i) {
      std::memcpy(some.Element(static_cast<std::int64_t>(i) * length),
                  all.Element(rows[i] * length), bytes);
    }
    taken.emplace(spec.name, std::move(some));
  }
  return taken;
}

void NameRows(const std::vector<std::int64_t>& rows, Comparison& comparison) {
  for (auto* const findings : {&comparison.numeric, &comparison.precision}) {
    for (Finding& finding : *findings) {
      if (!finding.element || finding.element->index.empty()) continue;
      std::int64_t& row = finding.element->index.front();
      const std::int64_t here = row;
      row = rows[static_cast<std::size_t>(here)];
      finding.message +=
          fmt::format("; row {} of those that were looked at is row {} of the case", here, row);
    }
  }
}

}  // namespace assay::oracle

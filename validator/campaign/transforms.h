// The transformed cases behind the metamorphic properties (properties.h): one row a property.
//
// A transform takes a case with spelled-out inputs and says which other cases to run, and how each
// element of the first case's outputs follows from theirs: it is the sum over all twins of the
// mapped element, times a factor. Transforms are pure; what does not fit a property (one row only, a
// shape that the op refuses) gives nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "ops/op.h"
#include "validator/cases/case.h"

namespace assay::campaign {

struct Mapped {
  std::int64_t index = 0;  ///< In each twin.
  double factor = 1;       ///< base * factor = sum over the twins.
};

/// The cases to run, and where each element of the base's outputs must be found again.
struct Variant {
  std::optional<cases::Case> base;  ///< In place of the given case.
  std::vector<cases::Case> twins;
  bool exact = true;      ///< Bits must agree if the op is deterministic (properties.h).
  bool verbatim = false;  ///< Void unless all inputs hold their literals as they stand.
  std::function<std::optional<Mapped>(const ops::TensorSpec& output, const Shape& shape,
                                      std::int64_t index)>
      map;
};

struct Subject {
  const ops::Instance& instance;
  const std::vector<std::string>& arguments;
  const cases::Case& base;  ///< Inputs spelled out.
  const cases::Materialised& filled;
  const TensorMap* outputs;  ///< Of the base, for rows that need them; else null.
};

struct TransformRow {
  std::string_view property;  ///< Its row in ops/properties.h, which says what arguments it takes.
  bool needs_outputs;
  std::optional<Variant> (*transform)(const Subject& subject);
};

std::span<const TransformRow> TransformRows();

}  // namespace assay::campaign

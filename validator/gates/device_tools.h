// Cases under compute-sanitizer's tools, where there is a GPU that can be watched by them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validator/engine/inspector.h"
#include "validator/gates/gate.h"

namespace assay::gates {

struct Inspection {
  std::vector<Finding> findings;      ///< Of one case: the first that shows any.
  std::optional<std::size_t> guilty;  ///< Its place among those that were given.
  std::string text;                   ///< For the gate's reason.
};

/// Runs each of `cases` under each tool, the tools beside each other, and keeps the ledger of them: what
/// could not be watched, the tools being absent first of all, stands there and decides nothing.
Inspection Inspect(GateContext& context, engine::Inspector& inspector,
                   std::span<const cases::Case> cases);

}  // namespace assay::gates

// Which branches decide whether an instruction runs.
//
// Postdominators by Cooper, Harvey and Kennedy (2001), on the instructions of a function; control dependence from them
// (Ferrante, Ottenstein and Warren 1987). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validator/ptx/module.h"

namespace assay::facts {

struct Control {
  /// By instruction: what comes next whichever way is taken, the nearest such instruction. The end of the function is
  /// numbered like one more instruction.
  std::vector<std::uint32_t> joins_at;
  /// By instruction: the branches that decide whether it runs, nearest ones; ascending.
  std::vector<std::vector<std::uint32_t>> decided_by;
};

/// Of a verified function. Nothing where some of it never comes to an end, or that is too much to find out.
std::optional<Control> ControlOf(const ptx::Function& function);

}  // namespace assay::facts

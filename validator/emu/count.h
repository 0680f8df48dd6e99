// A run that is counted instead of watched: what it asks of the machine, launch by launch
// (watch/costs.h says what is counted, and how).
//
//   ASSAY_TRY(auto program, emu::Program::Load(ptx));
//   const Counted counted = emu::Count(*program, execution, buffers, options);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "validator/emu/emulator.h"
#include "validator/execution/launch_counts.h"

namespace assay::emu {

struct Counted {
  Report report;
  std::vector<LaunchCounts> launches;  ///< In order, as many as began.
};
/// Runs `execution` as Run does, without its monitors, and counts.
Counted Count(const Program& program, const Execution& execution,
              std::span<const std::span<std::byte>> buffers, const CountOptions& options);

}  // namespace assay::emu

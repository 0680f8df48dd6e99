// Litmus tests on the emulator.
#pragma once

#include <memory>
#include <set>

#include "tests/litmus/litmus.h"
#include "validator/emu/emulator.h"

namespace assay::litmus {

struct Emulated {
  std::set<Outcome> outcomes;
  bool raced = false;
  std::string failure;  ///< Why a run ended before its end; empty: none did.
  int runs = 0;
};

/// Runs the test under `seeds` schedules of all policies, with loads that return old values: by
/// chance in two of three, the oldest in the third. With `until`, no more once that was seen.
Emulated Emulate(const Test& test, int seeds, const Outcome* until = nullptr);

/// Schedules that are enough to show every outcome that is said to be shown.
inline constexpr int kSeeds = 1800;

}  // namespace assay::litmus

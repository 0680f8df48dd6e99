// The PTX memory consistency model (PTX ISA, "Memory Consistency Model"; Lustig, Sahasrabuddhe,
// Giroux, ASPLOS 2019), run on litmus tests: every outcome that it allows.
//
// Axiomatic and exhaustive: each read takes its value from each write in turn, each location's writes
// stand in each order, and so do the sequentially consistent fences; what the axioms of coherence,
// Fence-SC, atomicity, no thin air, SC-per-location and causality leave is allowed. One proxy.
//
// It shares nothing with the emulator, and is meant to be obviously right rather than fast: a test of
// four threads takes milliseconds.
#pragma once

#include <set>

#include "tests/litmus/litmus.h"

namespace assay::litmus {

std::set<Outcome> AllowedOutcomes(const Test& test);

}  // namespace assay::litmus

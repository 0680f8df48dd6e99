// Shrinking: from a probe that fails to the simplest one that still fails in the same way.
//
// Knows nothing of kernels: it asks a predicate. Passes run in the order shape, prelude, values,
// slices of spelled-out values, schedule, until none makes progress or the trials are spent. Every accepted step goes down in the
// shortlex order of cases (case.h) or removes something beside the case.
//
// Probes are offered in small batches whose members may be tried at the same time; the first member
// that fails is taken, whatever the number of processors, so that the result is a function of the
// start and the predicate alone.
//
// Cost: at most `max_trials` calls of the predicate.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "validator/cases/probe.h"

namespace assay::cases {

/// For each probe: does it fail in the same way? Same length as the argument.
using StillFails = std::function<std::vector<bool>(std::span<const Probe>)>;

struct ShrinkLimits {
  int max_trials = 120;
  /// Inputs of at most this many elements end as literals.
  std::int64_t max_literal = 64;
};

struct Shrunk {
  Probe probe;
  int trials = 0;
  bool minimal = false;  ///< No pass could improve it; false when the trials ran out.
};

Shrunk Shrink(const ops::Instance& instance, Probe start, const StillFails& still_fails,
              const ShrinkLimits& limits = {});

}  // namespace assay::cases

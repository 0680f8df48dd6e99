// What a workload is timed on: sets of inputs, each with the outputs of its last call.
#pragma once

#include <vector>

#include "ops/launch_plan.h"
#include "validator/engine/bind.h"
#include "validator/speed/hold.h"
#include "validator/speed/meter.h"

namespace assay::speed {

struct Meter::Ring {
  std::vector<cases::Case> cases;
  std::vector<cases::Materialised> inputs;
  ops::ResolvedPlan plan;
  engine::Binding binding;
  std::vector<std::vector<Suspect>> suspects;  ///< By slot, of all rounds.

  Held At(std::size_t slot) const {
    return {cases[slot], inputs[slot], binding.calls[slot].outputs};
  }
};

}  // namespace assay::speed

// Metamorphic properties, checked: a case and its transformed twins run, and the outputs compared.
//
// op.json declares them (ops/properties.h); the transforms are a table (transforms.h). Checks work
// on small cases, whose inputs are spelled out. An op whose inputs a generator makes has them made
// anew for each case. A pure function of probe and property, so that counterexamples replay.
//
// Bits must agree where a row of the table says so and the op is deterministic; elsewhere outputs
// agree within the allowances of the truths of all cases involved.
#pragma once

#include <vector>

#include "ops/properties.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {

struct PropertyCheck {
  std::vector<Finding> findings;  ///< kPropertyBroken.
  bool applied = false;  ///< False where the case is too large or too small for the property, or
                         ///< was not run to its end.
  bool exact = false;    ///< Bits were to agree.
  std::uint64_t steps = 0;
};

/// Runs `probe` and its transformed twins. Errors: the property does not fit the op,
/// or the machine is at fault.
Result<PropertyCheck> CheckProperty(const ops::Instance& instance, const ops::Property& property,
                                    const cases::Probe& probe, const Runner& runner,
                                    oracle::Oracle& oracle);

}  // namespace assay::campaign

// Metamorphic properties, checked: a case and its transformed twins run, and the outputs compared.
//
// op.json declares them (ops/properties.h); the transforms are a table (transforms.h). Checks work
// on small cases, whose inputs are spelled out. An op whose inputs a generator makes has them made
// anew for each case. A pure function of probe and property, so that counterexamples replay.
//
// Bits must agree where a row of the table says so and the op is deterministic; elsewhere outputs
// agree within the allowances of the truths of all cases involved.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/properties.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {

struct PropertyCheck {
  std::vector<Finding> findings;  ///< kPropertyBroken.
  bool applied = false;
  std::string not_applied;  ///< Why not: the case is too small for the property, say.
  /// A run, of the case or of a twin, that was not clean: it has findings of other gates, or did
  /// not run to its end. What it tells is for the caller to find out; the property was not checked.
  std::optional<cases::Probe> trouble;
  bool unending = false;    ///< That run reached the limit of steps, and found nothing till then.
  bool exact = false;       ///< Bits were to agree.
  std::uint64_t steps = 0;  ///< Of what ran for it.
  std::uint64_t known_steps = 0;        ///< Of the run that was known.
  std::shared_ptr<const CaseRun> base;  ///< The run of the probe as it stands, where it was made.
};

/// Runs `probe` and its transformed twins. `known` is the run of the probe as it stands, which the
/// properties of one case share; null: it is made if it is needed. Errors: the property does not fit
/// the op, or the machine is at fault.
Result<PropertyCheck> CheckProperty(const ops::Instance& instance, const ops::Property& property,
                                    const cases::Probe& probe, const Runner& runner,
                                    oracle::Oracle& oracle,
                                    std::shared_ptr<const CaseRun> known = nullptr);

}  // namespace assay::campaign

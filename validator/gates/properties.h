// Metamorphic properties: relations between the outputs of a case and of a transformed case, which
// hold whatever the op computes.
//
// A table; add a row to add a property. op.json declares them:
//   "properties": [{"independent_rows": ["x", "tokens"]}, {"shift_invariant": ["x"]}]
//
//   independent_rows INPUT AXIS     other rows of INPUT do not matter to a row of any output along
//   AXIS (bits) permutation_equivariant AXIS    permuting all inputs along AXIS permutes all
//   outputs along it (bits) scale_equivariant INPUT OUTPUT  doubling INPUT doubles OUTPUT (bits:
//   powers of two are exact) scale_invariant INPUT           doubling INPUT changes nothing (within
//   the allowance) shift_invariant INPUT           adding a constant to INPUT changes nothing
//   (within the allowance) batch_split AXIS                the first half along AXIS alone gives
//   the first half of the outputs (within the allowance)
//
// Checks work on small cases, whose inputs are spelled out. A pure function of probe and property,
// so that counterexamples replay.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validator/gates/runner.h"

namespace assay::gates {

/// Names of all known properties, "deterministic" and "any_alignment" (pointers are aligned to
/// their dtype only) among them, which the campaign checks.
std::span<const std::string_view> KnownProperties();

/// "independent_rows x tokens"
std::string PropertyText(const ops::Property& property);
ops::Property PropertyFromText(std::string_view text);

struct PropertyCheck {
  std::vector<Finding> findings;  ///< kPropertyBroken.
  bool applied = false;  ///< False where the case is too large or too small for the property, or
                         ///< was not run to its end.
  std::uint64_t steps = 0;
};

/// Runs `probe` and its transformed twin. Errors: the property is unknown, or the machine is at
/// fault.
Result<PropertyCheck> CheckProperty(const ops::Instance& instance, const ops::Property& property,
                                    const cases::Probe& probe, const Runner& runner,
                                    oracle::Oracle& oracle);

}  // namespace assay::gates

// Metamorphic properties: relations between the outputs of a case and of a transformed case, which
// hold whatever the op computes.
//
// A table; add a row to add a property. op.json declares them:
//   "properties": [{"independent_rows": ["x", "tokens"]}, {"shift_invariant": ["x"]}]
//
//   property                        holds   it says
//   independent_rows INPUT AXIS     bits    a row of an output hangs on no other row of INPUT
//   permutation_equivariant AXIS    bits    permuted inputs give permuted outputs
//   scale_equivariant INPUT OUTPUT  bits    doubling INPUT doubles OUTPUT
//   linear INPUT OUTPUT             within  OUTPUT of a sum of two INPUTs is the sum of theirs
//   scale_invariant INPUT           within  doubling INPUT changes nothing
//   shift_invariant INPUT           within  adding a constant to INPUT changes nothing
//   idempotent INPUT OUTPUT         within  OUTPUT taken for INPUT gives OUTPUT again
//   padding_neutral AXIS            within  zeros appended along AXIS change nothing
//   batch_split AXIS                within  the first half along AXIS gives the outputs' first half
//
// "within" the allowances of the truths of all cases involved. An op whose inputs a generator makes
// has them made anew for each case.
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
std::vector<std::string> KnownProperties();

/// "independent_rows x tokens"
std::string PropertyText(const ops::Property& property);
ops::Property PropertyFromText(std::string_view text);

/// An error where the property is unknown, or its arguments are not what it takes.
Status LintProperty(const ops::OpSpec& op, const ops::Property& property);

struct PropertyCheck {
  std::vector<Finding> findings;  ///< kPropertyBroken.
  bool applied = false;  ///< False where the case is too large or too small for the property, or
                         ///< was not run to its end.
  std::uint64_t steps = 0;
};

/// Runs `probe` and its transformed twins. Errors: the property does not fit the op (LintProperty),
/// or the machine is at fault.
Result<PropertyCheck> CheckProperty(const ops::Instance& instance, const ops::Property& property,
                                    const cases::Probe& probe, const Runner& runner,
                                    oracle::Oracle& oracle);

}  // namespace assay::gates

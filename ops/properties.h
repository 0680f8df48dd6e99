// Metamorphic properties as op.json declares them: relations between the outputs of a case and of a
// transformed case, which hold whatever the op computes. A table; the transforms behind the rows
// are the campaign's (validator/campaign/transforms.h), under the same names.
//
//   "properties": ["deterministic", {"independent_rows": ["x", "tokens"]}]
//
//   property                        it says
//   deterministic                   equal inputs give equal bits, whatever the schedule
//   any_alignment                   pointers are aligned to their dtype only
//   independent_rows INPUT AXIS     a row of an output hangs on no other row of INPUT
//   permutation_equivariant AXIS    permuted inputs give permuted outputs
//   scale_equivariant INPUT OUTPUT  doubling INPUT doubles OUTPUT
//   linear INPUT OUTPUT             OUTPUT of a sum of two INPUTs is the sum of theirs
//   scale_invariant INPUT           doubling INPUT changes nothing
//   shift_invariant INPUT           adding a constant to INPUT changes nothing
//   idempotent INPUT OUTPUT         OUTPUT taken for INPUT gives OUTPUT again
//   padding_neutral AXIS            zeros appended along AXIS change nothing
//   batch_split AXIS                the first half along AXIS gives the outputs' first half
//
// A declaration is checked when the op is loaded: what could never apply to a case is an error
// there, not a gate that never passes. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace assay::ops {

/// What an argument of a property may name.
enum class PropertyArgument : std::uint8_t {
  kInput,    ///< An input tensor that value profiles fill.
  kNumbers,  ///< Such a one that may hold any multiple of a value: no index and no choice.
  kOutput,
  kAxis,  ///< An axis, along which an input of the first kind extends.
};

struct PropertyRow {
  std::string_view name;
  std::vector<PropertyArgument> arguments;
  /// Why arguments that are each right do not go together, or empty. May be null.
  std::string (*misfit)(const OpSpec& op, const std::vector<std::string>& arguments);
  /// Checked by the cases' own surroundings (schedules, addresses), not by a transform.
  bool of_surroundings = false;
};

std::span<const PropertyRow> PropertyRows();

/// Null where there is no such property.
const PropertyRow* FindPropertyRow(std::string_view name);

/// Does op.json declare a property of this name?
bool HasProperty(const OpSpec& op, std::string_view name);
/// Does the op promise the same bits on every run?
inline bool IsDeterministic(const OpSpec& op) { return HasProperty(op, "deterministic"); }

/// "independent_rows x tokens"
std::string PropertyText(const Property& property);
Property PropertyFromText(std::string_view text);

/// An error at `place` where the property is unknown, or its arguments are not what it takes.
Status CheckProperty(const OpSpec& op, const Property& property, const std::string& place);

/// The dimension of `tensor` that is `axis`; nothing where there is none.
std::optional<std::size_t> DimensionOf(const TensorSpec& tensor, std::string_view axis);

/// Is the axis a dimension of some output?
bool IsOfOutputs(const OpSpec& op, std::string_view axis);
/// May results be made over all of an axis? Not where every output has it and no input's rows lie along it:
/// each of its places is by itself there.
bool MayBeReducedOver(const OpSpec& op, std::string_view axis);

/// Axes of results along which a mask may show more or less of `axis`, as of keys to a query: those of outputs that a
/// constraint compares with it, or of which one is computed from the other; and itself, where an output has it.
std::vector<std::string> AxesInStepWith(const OpSpec& op, std::string_view axis);

/// Does an extent of `tensor` change with `axis` other than by being it, or by being it once more?
bool AlsoHangsOn(const OpSpec& op, const TensorSpec& tensor, std::string_view axis);

}  // namespace assay::ops

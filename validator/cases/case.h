// A case: a shape, a seed and a value profile per input. Tiny JSON; materialises inputs
// deterministically, on every machine.
//
// The order of cases (Shortlex) is the order in which people find them simpler: fewer elements
// first, then smaller axes, then plainer profiles. Shrinking goes down in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/tensor.h"
#include "ops/op.h"

namespace assay::cases {

/// How an input's values are drawn. Names are the JSON names; parameters default to what the
/// profile says (profiles.h).
struct Profile {
  std::string kind = "normal";
  std::map<std::string, double, std::less<>>
      parameters;  ///< e.g. {"exponent": 1.0} for zipf, {"mean": 0.5} for normal.
  std::vector<double>
      literal;  ///< kind "literal": the values themselves (what shrinking ends with, where small).
  bool operator==(const Profile&) const = default;
};

struct Case {
  ops::AxisValues axes;  ///< Variable axes only.
  std::uint64_t seed = 0;
  std::map<std::string, Profile, std::less<>>
      profiles;        ///< By input; missing ones are `normal` or the domain's default.
  std::string origin;  ///< "edge", "workload", "random", "regression", "holdout", "shrunk".
  bool operator==(const Case&) const = default;
};

Json ToJson(const Case& value);
Result<Case> CaseFromJson(const Json& json, std::string place);
/// "tokens=3 hidden=5 ids=[0,0,1]" where it fits, else shape, seed and profiles.
std::string Describe(const Case& value, const ops::Instance& instance);

/// True when `a` is simpler than `b`: fewer elements over all inputs and outputs, then smaller axes
/// (in the op's order), then plainer profiles, then the smaller seed. A strict weak order.
bool ShortlexLess(const ops::Instance& instance, const Case& a, const Case& b);
/// Elements of all inputs and outputs; INT64_MAX where the shape cannot be resolved.
std::int64_t TotalElements(const ops::Instance& instance, const ops::AxisValues& variables);

/// Axes completed, inputs filled.
struct Materialised {
  ops::AxisValues axes;
  TensorMap inputs;
};
class InputStore;
/// The inputs that profiles fill: all but the generated ones. A pure function of (instance, case). What takes long comes
/// from `store`, if there is one (input_store.h).
Result<Materialised> MaterialisePlain(const ops::Instance& instance, const Case& value,
                                      InputStore* store = nullptr);
/// All inputs. kUnsupported where some are generated: those take a compiler and an engine
/// (oracle::Oracle::Materialise, which serves every op).
Result<Materialised> Materialise(const ops::Instance& instance, const Case& value);

/// The same case with every tensor input that profiles fill as a literal; nothing when one of them
/// is too long for that (4096 elements). Generated inputs follow from them.
std::optional<Case> SpellOut(const ops::Instance& instance, const Case& value);

}  // namespace assay::cases

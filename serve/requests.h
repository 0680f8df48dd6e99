// What clients send, and what they are answered: one reading for HTTP and for MCP.
//
//   {"op": "softmax", "binding": {"T": "f16"}, "arch": "sm_90", "effort": "standard",
//    "kernel": "...", "launch": {...}}
//
// Clients may be programs that hand on what a model wrote: an op is a name of the library, never a
// path; unknown keys are refused; `launch` is the object or its text.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "ops/op.h"
#include "validator/verdict/candidate.h"
#include "validator/verdict/verdict.h"

namespace assay::serve {

using FindOp = std::function<Result<ops::OpSpec>(const std::string&)>;

struct CheckRequest {
  ops::Instance instance;
  verdict::Candidate candidate;
  std::string effort;  ///< "quick", "standard" or "thorough".
};
/// `arch` where the request names none.
Result<CheckRequest> ParseCheck(const Json& json, const std::string& place, const FindOp& find,
                                const std::string& arch);

//   {"op": "softmax", "model": "small", "binding": {"T": "f16"}, "attempts": 4}
//
/// `model` is a name that the operator gave, and says nothing of where it is.
struct GenerateRequest {
  ops::Instance instance;
  std::string model;
  std::string effort;
  std::optional<int> attempts;
};
Result<GenerateRequest> ParseGenerate(const Json& json, const std::string& place,
                                      const FindOp& find, const std::string& arch);

/// The op of that name; a path, or anything else that is no name, is refused.
Result<ops::OpSpec> FindByName(const FindOp& find, const std::string& name,
                               const std::string& place);

/// A verdict for whoever may be the author: the holdout gate says that it refuted, and neither it nor
/// the verdict's reason shows its cases or its seeds (assay.verdict/1 in all else).
Json ForAuthor(const verdict::Verdict& verdict);
/// The reason of such a verdict.
std::string ReasonForAuthor(const verdict::Verdict& verdict);

}  // namespace assay::serve

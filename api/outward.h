// From our values to those of the public headers.
//
// Inside, the functions of include/assay are written as all others are, with assay::Result; at the border an error becomes the public
// one, and an exception (memory that is used up, a failed check of ours) an error.
#pragma once

#include <exception>
#include <utility>

#include "assay/error.h"
#include "assay/judge.h"
#include "base/check.h"
#include "base/error.h"
#include "ops/op.h"
#include "validator/verdict/verdict.h"

namespace assay::api {

Error Outward(const assay::Error& error);
Verdict Outward(const verdict::Verdict& verdict);
Counterexample Outward(const verdict::Counterexample& counterexample);
Outcome Outward(verdict::Outcome outcome);

/// The instance that a question is about.
assay::Result<ops::Instance> InstanceOf(const Environment& environment, const Question& question);

/// What `work` returns, with the error that the caller may see.
template <class Work>
auto AtBorder(const Work& work) -> Result<typename decltype(work())::value_type> {
  ThrowOnFailedChecks();
  try {
    auto result = work();
    if (result) return *std::move(result);
    return std::unexpected(Outward(result.error()));
  } catch (const std::exception& exception) {
    return std::unexpected(
        Error{ErrorKind::kInternal, exception.what(), "libassay", "free memory, or report it"});
  }
}

}  // namespace assay::api

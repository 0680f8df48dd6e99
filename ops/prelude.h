// The prelude: headers that references include (ops/prelude/assay/*.cuh), embedded in the program,
// and the macros under which sources see the dtypes that an instance binds.
//
// A candidate is compiled with ASSAY_<variable> defined as the CUDA type of the bound dtype
// (ASSAY_T=__nv_bfloat16): it may use the macro to serve all dtypes, or ignore it and name its
// types. A reference sees the prelude's own exact types (ASSAY_T=assay::bf16).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/op.h"

namespace assay::ops {

/// Name as included -> text, for CompileRequest::headers of references.
const std::map<std::string, std::string>& PreludeHeaders();
/// SHA-256 over all of it: part of what a truth depends on.
const std::string& PreludeDigest();

/// {"ASSAY_T=__nv_bfloat16"}: for candidates.
std::vector<std::string> CandidateDefines(const Instance& instance);
/// {"ASSAY_T=assay::bf16"}: for references.
std::vector<std::string> ReferenceDefines(const Instance& instance);

}  // namespace assay::ops

// What nvcc brings along and NVRTC does not: fixed-width integers, INFINITY, FLT_MAX and the like,
// and the few standard headers that device code includes for them.
//
// Kernels are written with nvcc in mind: they say int64_t and -INFINITY without thinking of a
// header, or include <cstdint> and <math.h>. Both must compile here, for neither says anything about
// the kernel. Candidates, and kernels that are sanitized, are compiled with HostHeaders() as virtual
// headers, of which kHostNames is read before the source. The types are those of the toolkit's own
// <cuda/std/cstdint>, so that both may be included.
//
//   request.headers = ops::HostHeaders();
//   request.pre_include = ops::kHostNames;
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace assay::ops {

/// Read before a kernel's first line.
inline constexpr std::string_view kHostNames = "assay/host_names.h";

/// Name as included -> text, for CompileRequest::headers.
const std::map<std::string, std::string>& HostHeaders();

}  // namespace assay::ops

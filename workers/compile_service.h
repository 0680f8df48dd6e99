// The compile service: kernel source in, PTX, SASS, diagnostics and resources out.
//
// Request: header as below, payload = the source (bytes, any encoding).
//   {"action": "compile", "file": "kernel.cu", "arch": "sm_90", "cubin": true,
//    "headers": {"oracle.cuh": "..."}, "options": ["-DN=4"],
//    "entries": ["rms<float, 256>", "spill"]}
//   {"action": "probe"}                                              what `assay doctor` asks
//
// Reply: payload = the PTX, then the cubin.
//   {"ok": true, "status": "NVRTC_SUCCESS", "nvrtc": "13.0", "log": "...", "log_truncated": false,
//    "diagnostics": [{"severity", "file", "line", "column", "code", "message", "excerpt",
//                     "context"}],
//    "diagnostics_dropped": 0, "ptx_bytes": 1121, "cubin_bytes": 5440,
//    "lowered": {"rms<float, 256>": "_Z3rms..."},
//    "resources": {"_Z3rms...": {"entry": true, "registers": 28, "stack_bytes": 0,
//                                "spill_store_bytes": 0, "spill_load_bytes": 0,
//                                "spills_known": true, "shared_bytes": 1024, "local_bytes": 0,
//                                "constant_bytes": 548, "barriers": 1, "code_bytes": 9216}},
//    "program": {"facts": {...}}}                        validator/ptx/facts/facts.h, or
//    "program": {"fault": "ptx:12: ..."}                 why the PTX cannot be read
//   probe: {"nvrtc": "13.0", "library": "/cuda/lib/libnvrtc.so.13", "includes": [...],
//   "architectures": [75, 80, ...]}
//
// An error in the candidate is a reply with ok = false and at least one diagnostic of severity
// "error". An Error is a request that Assay should not have sent (an option or architecture that is
// not allowed) or NVRTC out of memory.
//
// Options come from the judge; even so only those of a short table pass, and none of them names a
// file. Registers are those of the cubin, or ptxas's log where that says more; spills are in the
// log only.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/serve.h"
#include "workers/nvrtc.h"

namespace assay::workers {

/// Where the worker finds the toolkit: paths as seen from inside.
struct CompilerPaths {
  Path nvrtc;
  Path builtins;
  std::vector<Path> includes;
};

/// Opens NVRTC and returns the service.
Result<sandbox::Service> MakeCompileService(const CompilerPaths& paths);

/// True if `option` may be passed to NVRTC.
bool IsAllowedOption(const std::string& option);

}  // namespace assay::workers

// The GPU service: a program, an execution and its buffers in; a report out, the buffers changed in
// place.
//
// Requests: {"action": "describe"} is answered with {"device": "NVIDIA ..., driver ...", "devices": <how many there are>}.
// {"action": "run", "execution": ..., "ptx_bytes": n} with n bytes of PTX and then machine code as
// the payload, and descriptors as for the emulator, is answered with {"report": <Report>}.
//
// "time" and "repeat" take a "plan" beside what "run" takes (validator/execution/timing.h) and answer
// with {"report": ..., "answer": <Timing or Stress>}; "rates" is answered with {"answer": <Rates>}; "product"
// takes {"product": <MatrixProduct>}, "rows" {"rows": <RowsPrimitive>}, and both are answered with {"seconds": ...}.
//
// The device is opened before the worker is sealed. One service serves one thread.
#pragma once

#include <string>

#include "base/error.h"
#include "sandbox/serve.h"

namespace assay::workers {

/// Files of the vendor's libraries; empty: where the loader finds them.
struct GpuLibraries {
  std::string matrices;  ///< cuBLASLt.
  std::string tensors;   ///< cuDNN.
};

/// `device`: the GPU's number. `apart`: it serves one execution, under a tool that watches it: buffers
/// are allocations of their own, and nothing is written into those that begin undefined.
Result<sandbox::Service> MakeGpuService(int device, GpuLibraries libraries, bool apart = false);

}  // namespace assay::workers

// The GPU service: a program, an execution and its buffers in; a report out, the buffers changed in
// place.
//
// Requests: {"action": "describe"} is answered with {"device": "NVIDIA ..., driver ..."}.
// {"action": "run", "execution": ..., "ptx_bytes": n} with n bytes of PTX and then machine code as
// the payload, and descriptors as for the emulator, is answered with {"report": <Report>}.
//
// "time" and "repeat" take a "plan" beside what "run" takes (validator/execution/timing.h) and answer
// with {"report": ..., "answer": <Timing or Stress>}; "rates" is answered with {"answer": <Rates>}; "product"
// takes {"product": <MatrixProduct>} and is answered with {"seconds": ...}.
//
// The device is opened before the worker is sealed. One service serves one thread.
#pragma once

#include <string>

#include "base/error.h"
#include "sandbox/serve.h"

namespace assay::workers {

/// `device`: the GPU's number. `matrix_library`: cuBLASLt's file; empty: where the loader finds it.
Result<sandbox::Service> MakeGpuService(int device, std::string matrix_library);

}  // namespace assay::workers

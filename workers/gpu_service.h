// The GPU service: a program, an execution and its buffers in; a report out, the buffers changed in
// place.
//
// Requests: {"action": "describe"} is answered with {"device": "NVIDIA ..., driver ..."}.
// {"action": "run", "execution": ..., "ptx_bytes": n} with n bytes of PTX and then machine code as
// the payload, and descriptors as for the emulator, is answered with {"report": <Report>}.
//
// The device is opened before the worker is sealed. One service serves one thread.
#pragma once

#include "base/error.h"
#include "sandbox/serve.h"

namespace assay::workers {

/// `device`: the GPU's number.
Result<sandbox::Service> MakeGpuService(int device);

}  // namespace assay::workers

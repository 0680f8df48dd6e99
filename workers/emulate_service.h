// The emulate service: PTX, an execution and its buffers in; a report out, the buffers changed in
// place.
//
// Request: header {"action": "run", "execution": <Execution without ptx>}, payload the PTX, one
// descriptor a buffer in the order of the execution's buffers: inputs are mapped copy-on-write,
// outputs and workspace shared. Reply: header {"report": <Report>}. With "program": <digest of the PTX>
// the payload may be left out where it came before; the reply is {"unknown_program": true} where it did
// not, or is no longer kept. The action "count", with
// "options": <CountOptions>, runs the same without monitors, and its reply has the counts of each
// launch beside: "counts": [<LaunchCounts>] (execution/launch_counts.h).
//
// PTX that the emulator does not cover or cannot read is a report with Stop::kUnsupported, which
// nobody can take for a success. A request that does not hold together (a missing descriptor,
// memory smaller than its buffer) is an Error.
//
// Decoded programs are kept, the most recent few, by their text or by the digest that they came with. One service serves
// one thread.
#pragma once

#include "base/error.h"
#include "sandbox/serve.h"

namespace assay::workers {

Result<sandbox::Service> MakeEmulateService();

}  // namespace assay::workers

// What `assay doctor` and the records of a run ask of the workers: typed, because the answer comes
// from a worker and is not to be believed in form either. The jail's own state is ProbeJail
// (jail.h).
//
// The compiler is asked through the pool, so that the caller links neither NVRTC nor the compile
// service, and what is reported is what a compilation would use. Cost: the start of a worker, if
// none is warm. Thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/workers.h"

namespace assay::sandbox {

struct CompilerHealth {
  std::string nvrtc;                        ///< "13.0"
  std::string library;                      ///< Path of NVRTC as the worker sees it.
  std::vector<std::string> includes;        ///< Folders of headers as the worker sees them.
  std::vector<std::int64_t> architectures;  ///< 75, 80, ...: what NVRTC can compile for.
};

/// Asks a compile worker what it works with. Fails with what is missing: no jail, no toolkit, a
/// worker that dies.
Result<CompilerHealth> ProbeCompiler(Workers& workers,
                                     std::chrono::milliseconds deadline = std::chrono::seconds(60));

}  // namespace assay::sandbox

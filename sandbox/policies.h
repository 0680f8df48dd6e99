// The policies of all kinds of worker, side by side: this file is the one to review.
//
// Both ends of a worker use it: the orchestrator to build the jail, the worker to seal itself (its
// filter and limits, not the binds).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "sandbox/policy.h"
#include "sandbox/toolkit.h"

namespace assay::sandbox {

enum class WorkerKind : std::uint8_t {
  kCompile,  ///< NVRTC: source to PTX and SASS.
  kEmulate,  ///< The emulator: PTX on shared tensors.
  kGpu,      ///< Machine code on a GPU.
  kGpuTool,  ///< The same under one of the vendor's tools, which ends with it.
};
std::string_view Name(WorkerKind kind);
std::optional<WorkerKind> ParseWorkerKind(std::string_view name);

/// True if this library was built with ASan or TSan: then so is the worker, which is built with it.
bool BuiltWithSanitizer();

/// What the worker needs at its place in the jail. Weakening::kSanitizerRuntime is allowed where
/// the build needs it.
Policy PolicyFor(WorkerKind kind);

/// Adds the worker's program to `policy`, at a path that says nothing about the host.
void BindWorker(Policy& policy, const Path& program);

/// Adds the folder of the CUDA driver's library, where it is none of the system's. Nothing where
/// there is no driver: the worker says so.
void BindDriver(Policy& policy);

/// Adds the toolkit at fixed paths under /cuda and returns the arguments that tell the compile
/// worker about them.
std::vector<std::string> BindToolkit(Policy& policy, const Toolkit& toolkit);

}  // namespace assay::sandbox

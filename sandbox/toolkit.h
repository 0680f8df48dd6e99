// Where the CUDA Toolkit's compiler library and headers are on this machine.
//
// The orchestrator only looks for files; the compile worker opens them, inside its jail, where the
// same files appear under fixed paths
// (/cuda/...), so that PTX with line information is the same on every machine. Layouts that are
// understood: an installed toolkit (lib64, targets/*/lib, include), NVIDIA's PyPI wheels for CUDA
// 12 (nvidia/cuda_nvrtc, cuda_runtime, cuda_cccl) and CUDA 13 (nvidia/cu13), and a distribution's
// own packages (/usr). Order: an explicit root, $ASSAY_CUDA_ROOT, $CUDA_HOME, $CUDA_PATH,
// /usr/local/cuda, wheels in .deps/ near the program, /usr. An explicit root that holds no NVRTC is
// an error, not a reason to look further.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::sandbox {

struct Toolkit {
  Path root;                   ///< Where it was found, for people.
  Path nvrtc;                  ///< .../libnvrtc.so.13, links resolved.
  Path builtins;               ///< .../libnvrtc-builtins.so.13.0, links resolved.
  std::string builtins_name;   ///< The name that NVRTC asks the loader for.
  std::vector<Path> includes;  ///< Folders with cuda_bf16.h, cuda/std and others, in search order.
};

struct ToolkitSearch {
  std::string explicit_root;  ///< From the command line; empty to look around.
  std::vector<Path> roots;    ///< In order.

  /// The usual order. `environment` returns a variable's value or "".
  static ToolkitSearch Default(const std::function<std::string(const char*)>& environment,
                               std::string explicit_root = {});
};

/// Looks in one root for any of the layouts.
std::optional<Toolkit> ToolkitIn(const Path& root);
Result<Toolkit> FindToolkit(const ToolkitSearch& search);
/// cuBLASLt in any of the roots, links resolved: what matrix products are measured against. Not every
/// toolkit has it, and nothing but speed needs it.
std::optional<Path> FindMatrixLibrary(const ToolkitSearch& search);
/// The same for cuDNN, which no toolkit has: a wheel beside the others, or the system's. Links are left
/// as they are, since its parts lie beside it.
std::optional<Path> FindTensorLibrary(const ToolkitSearch& search);
/// compute-sanitizer itself, not the script in front of it: a second look at what a GPU runs.
std::optional<Path> FindSanitizer(const ToolkitSearch& search);

}  // namespace assay::sandbox

// NVIDIA's run-time compiler, opened with dlopen: this program builds and starts without a CUDA
// Toolkit.
//
//   ASSAY_TRY(Nvrtc nvrtc, Nvrtc::Open("/cuda/lib/libnvrtc.so.13",
//                                      "/cuda/lib/libnvrtc-builtins.so.13.0"));
//   ASSAY_TRY(Compilation result,
//             nvrtc.Compile({.source = text, .options = {"--gpu-architecture=sm_90"}}));
//
// With an architecture sm_XX one compilation yields both the PTX and the cubin that NVRTC's own
// assembler made of it (CUDA 12 and 13); with compute_XX there is PTX only. NVRTC opens its
// builtins library by name at the first compilation; Open loads it beforehand by path, so that no
// library path is needed in the environment.
//
// Cost: Open some 50 ms; a small kernel with cuda_bf16.h about 40 ms. NVRTC serialises compilations
// of one process. Move-only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::workers {

struct NvrtcVersion {
  int major = 0;
  int minor = 0;
};

struct VirtualHeader {
  std::string name;  ///< As in #include.
  std::string text;
};

/// What to compile. Strings must not hold NUL bytes; Compile refuses those that do.
struct CompileJob {
  std::string source;
  std::string file = "kernel.cu";  ///< The name that diagnostics and line information use.
  std::vector<VirtualHeader> headers;
  std::vector<std::string> options;
  std::vector<std::string> names;  ///< Name expressions whose mangled names are wanted.
};

struct Compilation {
  bool ok = false;
  std::string status;  ///< "NVRTC_ERROR_COMPILATION" and the like.
  std::string log;
  std::string ptx;
  std::string cubin;                                         ///< Empty for compute_XX.
  std::vector<std::pair<std::string, std::string>> lowered;  ///< Name expression, mangled name.
};

class Nvrtc {
 public:
  /// Opens the library; `builtins` may be empty when the loader finds it by itself.
  static Result<Nvrtc> Open(const Path& library, const Path& builtins);

  Nvrtc(Nvrtc&&) noexcept;
  Nvrtc& operator=(Nvrtc&&) noexcept;
  ~Nvrtc();

  NvrtcVersion version() const { return version_; }
  /// 75, 80, ..., as NVRTC lists them; ascending.
  const std::vector<int>& architectures() const { return architectures_; }

  /// Compiles. Errors in the source are in the result; an Error means that NVRTC ran out of memory
  /// or could not take the job.
  Result<Compilation> Compile(const CompileJob& job) const;

 private:
  struct Api;
  explicit Nvrtc(std::unique_ptr<Api> api);

  std::unique_ptr<Api> api_;
  NvrtcVersion version_;
  std::vector<int> architectures_;
};

}  // namespace assay::workers

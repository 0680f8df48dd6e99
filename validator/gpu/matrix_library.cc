#include "validator/gpu/matrix_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <type_traits>

namespace assay::gpu {
namespace {

// cudaDataType_t, cublasComputeType_t, attributes of cublasLt.
constexpr int kReal32 = 0, kReal16 = 2, kRealB16 = 14;
constexpr int kCompute32 = 68;
constexpr int kWorkspaceBytes = 1;

constexpr std::array kLibraries = {"libcublasLt.so.13", "libcublasLt.so.12"};

/// cublasLtMatmulHeuristicResult_t.
struct Choice {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Choice) == 96);

#define ASSAY_MATRIX_CALLS(X)                                                                      \
  X(create, "cublasLtCreate", int(void**))                                                         \
  X(destroy, "cublasLtDestroy", int(void*))                                                        \
  X(describe, "cublasLtMatmulDescCreate", int(void**, int, int))                                   \
  X(layout, "cublasLtMatrixLayoutCreate",                                                          \
    int(void**, int, std::uint64_t, std::uint64_t, std::int64_t))                                  \
  X(prefer, "cublasLtMatmulPreferenceCreate", int(void**))                                         \
  X(prefer_set, "cublasLtMatmulPreferenceSetAttribute", int(void*, int, const void*, std::size_t)) \
  X(choose, "cublasLtMatmulAlgoGetHeuristic",                                                      \
    int(void*, void*, void*, void*, void*, void*, void*, int, Choice*, int*))                      \
  X(multiply, "cublasLtMatmul",                                                                    \
    int(void*, void*, const void*, const void*, void*, const void*, void*, const void*,            \
        const void*, void*, void*, void*, const void*, void*, std::size_t, Stream))

}  // namespace

struct MatrixLibrary::Calls {
#define X(member, name, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
  ASSAY_MATRIX_CALLS(X)
#undef X
};

MatrixLibrary::MatrixLibrary(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}

MatrixLibrary::~MatrixLibrary() {
  if (handle_ != nullptr) calls_->destroy(handle_);
}

Result<std::unique_ptr<MatrixLibrary>> MatrixLibrary::Open(const std::string& file) {
  void* library = file.empty() ? nullptr : ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    for (const char* name : kLibraries) {
      library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
    }
  }
  if (library == nullptr)
    return Fail(ErrorKind::kEnvironment, "there is no cuBLASLt that can be opened", "gpu",
                "install the CUDA toolkit's cuBLAS where the loader finds it");
  auto calls = std::make_unique<Calls>();
  const char* missing = nullptr;
  const auto find = [&](auto& member, const char* name) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(::dlsym(library, name));
    if (member == nullptr) missing = name;
  };
#define X(member, name, ...) find(calls->member, name);
  ASSAY_MATRIX_CALLS(X)
#undef X
  if (missing != nullptr)
    return Fail(ErrorKind::kEnvironment, fmt::format("cuBLASLt has no {}", missing), "gpu");
  std::unique_ptr<MatrixLibrary> opened(new MatrixLibrary(std::move(calls)));
  if (const int code = opened->calls_->create(&opened->handle_))
    return Fail(ErrorKind::kEnvironment, fmt::format("cublasLtCreate gives {}", code), "gpu");
  return opened;
}

Result<std::function<int(Stream)>> MatrixLibrary::Plan(const MatrixProduct& product,
                                                       DeviceAddress a, DeviceAddress b,
                                                       DeviceAddress c, DeviceAddress workspace,
                                                       std::size_t workspace_bytes) {
  const int type = product.dtype == "bf16"  ? kRealB16
                   : product.dtype == "f16" ? kReal16
                   : product.dtype == "f32" ? kReal32
                                            : -1;
  if (type < 0)
    return Fail(ErrorKind::kUnsupported, "no matrix product of " + product.dtype, "gpu");
  const auto fail = [](int code, std::string_view call) {
    return Fail(ErrorKind::kEnvironment, fmt::format("{} gives {}", call, code), "gpu");
  };
  // What is row-major here is the transpose, column-major, there: c' = b' a'.
  const auto m = static_cast<std::uint64_t>(product.m), n = static_cast<std::uint64_t>(product.n),
             k = static_cast<std::uint64_t>(product.k);
  void *operation = nullptr, *left = nullptr, *right = nullptr, *result = nullptr, *wish = nullptr;
  if (const int code = calls_->describe(&operation, kCompute32, kReal32))
    return fail(code, "cublasLtMatmulDescCreate");
  if (const int code = calls_->layout(&left, type, n, k, product.n))
    return fail(code, "cublasLtMatrixLayoutCreate");
  if (const int code = calls_->layout(&right, type, k, m, product.k))
    return fail(code, "cublasLtMatrixLayoutCreate");
  if (const int code = calls_->layout(&result, type, n, m, product.n))
    return fail(code, "cublasLtMatrixLayoutCreate");
  if (const int code = calls_->prefer(&wish)) return fail(code, "cublasLtMatmulPreferenceCreate");
  if (const int code =
          calls_->prefer_set(wish, kWorkspaceBytes, &workspace_bytes, sizeof workspace_bytes))
    return fail(code, "cublasLtMatmulPreferenceSetAttribute");
  Choice choice{};
  int found = 0;
  if (const int code =
          calls_->choose(handle_, operation, left, right, result, result, wish, 1, &choice, &found))
    return fail(code, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0)
    return Fail(ErrorKind::kUnsupported, "cuBLASLt has no kernel for this product", "gpu");
  return [this, operation, left, right, result, choice, a, b, c, workspace,
          workspace_bytes](Stream stream) {
    const float one = 1, zero = 0;
    const auto at = [](DeviceAddress address) { return reinterpret_cast<void*>(address); };
    return calls_->multiply(handle_, operation, &one, at(b), left, at(a), right, &zero, at(c),
                            result, at(c), result, choice.algorithm, at(workspace), workspace_bytes,
                            stream);
  };
}

}  // namespace assay::gpu

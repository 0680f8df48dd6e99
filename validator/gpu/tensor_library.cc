#include "validator/gpu/tensor_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <utility>

namespace assay::gpu {
namespace {

constexpr const char* kLibrary = "libcudnn.so.9";
// The library finds its parts by name, wherever the loader looks; those of its own folder come first.
constexpr const char* kParts[] = {"libcudnn_graph.so.9", "libcudnn_ops.so.9"};

// cudnnDataType_t, cudnnTensorFormat_t, and the choices that give what our primitives mean.
constexpr int kFloat = 0, kHalf = 2, kBFloat16 = 9;
constexpr int kRowMajor = 0;
constexpr int kAccurate = 1, kOverChannels = 1;
constexpr int kAdd = 0, kPropagate = 1, kNoIndices = 0, kIndices32 = 0;

// Member, exported name, signature.
#define ASSAY_TENSOR_CALLS(X)                                                                  \
  X(version, "cudnnGetVersion", std::size_t())                                                 \
  X(create, "cudnnCreate", int(void**))                                                        \
  X(destroy, "cudnnDestroy", int(void*))                                                       \
  X(stream, "cudnnSetStream", int(void*, Stream))                                              \
  X(tensor, "cudnnCreateTensorDescriptor", int(void**))                                        \
  X(tensor_set, "cudnnSetTensor4dDescriptor", int(void*, int, int, int, int, int, int))        \
  X(tensor_destroy, "cudnnDestroyTensorDescriptor", int(void*))                                \
  X(softmax, "cudnnSoftmaxForward",                                                            \
    int(void*, int, int, const void*, void*, const void*, const void*, void*, void*))          \
  X(reduction, "cudnnCreateReduceTensorDescriptor", int(void**))                               \
  X(reduction_set, "cudnnSetReduceTensorDescriptor", int(void*, int, int, int, int, int))      \
  X(reduction_destroy, "cudnnDestroyReduceTensorDescriptor", int(void*))                       \
  X(reduction_room, "cudnnGetReductionWorkspaceSize",                                          \
    int(void*, void*, void*, void*, std::size_t*))                                             \
  X(reduce, "cudnnReduceTensor",                                                               \
    int(void*, void*, void*, std::size_t, void*, std::size_t, const void*, void*, const void*, \
        const void*, void*, void*))

std::unexpected<Error> Refused(int code, std::string_view call) {
  return Fail(ErrorKind::kEnvironment, fmt::format("{} gives {}", call, code), "gpu");
}

}  // namespace

struct TensorLibrary::Calls {
#define X(member, name, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
  ASSAY_TENSOR_CALLS(X)
#undef X
};

/// What a call is told of its operands; ends with its owner.
struct TensorLibrary::Operands {
  explicit Operands(const Calls& the_calls) : calls(the_calls) {}
  ~Operands() {
    if (x != nullptr) calls.tensor_destroy(x);
    if (y != nullptr) calls.tensor_destroy(y);
    if (reduction != nullptr) calls.reduction_destroy(reduction);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  const Calls& calls;
  void* x = nullptr;
  void* y = nullptr;
  void* reduction = nullptr;
};

TensorLibrary::TensorLibrary(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}

TensorLibrary::~TensorLibrary() {
  if (handle_ != nullptr) calls_->destroy(handle_);
}

Result<std::unique_ptr<TensorLibrary>> TensorLibrary::Open(const std::string& file) {
  void* library = nullptr;
  if (!file.empty()) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    for (const char* part : kParts) ::dlopen((folder / part).c_str(), RTLD_NOW | RTLD_GLOBAL);
    library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Fail(ErrorKind::kEnvironment, "there is no cuDNN 9 that can be opened", "gpu",
                "install cuDNN where the loader finds it, or as a wheel beside the toolkit's");
  auto calls = std::make_unique<Calls>();
  const char* missing = nullptr;
  const auto find = [&](auto& member, const char* name) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(::dlsym(library, name));
    if (member == nullptr) missing = name;
  };
#define X(member, name, ...) find(calls->member, name);
  ASSAY_TENSOR_CALLS(X)
#undef X
  if (missing != nullptr)
    return Fail(ErrorKind::kEnvironment, fmt::format("cuDNN has no {}", missing), "gpu");
  std::unique_ptr<TensorLibrary> opened(new TensorLibrary(std::move(calls)));
  if (const int code = opened->calls_->create(&opened->handle_))
    return Refused(code, "cudnnCreate");
  return opened;
}

std::string TensorLibrary::Version() const {
  const std::size_t version = calls_->version();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Result<std::shared_ptr<TensorLibrary::Operands>> TensorLibrary::Describe(
    const RowsPrimitive& primitive) {
  const int type = primitive.dtype == "bf16"  ? kBFloat16
                   : primitive.dtype == "f16" ? kHalf
                   : primitive.dtype == "f32" ? kFloat
                                              : -1;
  if (type < 0)
    return Fail(ErrorKind::kUnsupported,
                fmt::format("no {} of rows of {}", primitive.operation, primitive.dtype), "gpu");
  const std::int64_t most = std::numeric_limits<int>::max();
  // Its descriptors count in 32 bits, bytes and all.
  if (primitive.rows < 1 || primitive.columns < 1 || primitive.rows > most ||
      primitive.columns > most / primitive.rows)
    return Fail(ErrorKind::kUnsupported, "cuDNN takes no tensor of so many elements", "gpu");
  auto operands = std::make_shared<Operands>(*calls_);
  const int rows = static_cast<int>(primitive.rows), columns = static_cast<int>(primitive.columns);
  const bool sum = primitive.operation == "sum";
  if (!sum && primitive.operation != "softmax")
    return Fail(ErrorKind::kUnsupported, "cuDNN has no " + primitive.operation, "gpu");
  for (void** const tensor : {&operands->x, &operands->y}) {
    if (const int code = calls_->tensor(tensor))
      return Refused(code, "cudnnCreateTensorDescriptor");
    const int extent = sum && tensor == &operands->y ? 1 : columns;
    if (const int code = calls_->tensor_set(*tensor, kRowMajor, type, rows, extent, 1, 1))
      return Refused(code, "cudnnSetTensor4dDescriptor");
  }
  if (!sum) return operands;
  if (const int code = calls_->reduction(&operands->reduction))
    return Refused(code, "cudnnCreateReduceTensorDescriptor");
  if (const int code = calls_->reduction_set(operands->reduction, kAdd, kFloat, kPropagate,
                                             kNoIndices, kIndices32))
    return Refused(code, "cudnnSetReduceTensorDescriptor");
  return operands;
}

Result<std::size_t> TensorLibrary::WorkspaceFor(const RowsPrimitive& primitive) {
  ASSAY_TRY(const std::shared_ptr<Operands> operands, Describe(primitive));
  std::size_t bytes = 0;
  if (operands->reduction == nullptr) return bytes;
  if (const int code =
          calls_->reduction_room(handle_, operands->reduction, operands->x, operands->y, &bytes))
    return Refused(code, "cudnnGetReductionWorkspaceSize");
  return bytes;
}

Result<std::function<int(Stream)>> TensorLibrary::Plan(const RowsPrimitive& primitive,
                                                       DeviceAddress x, DeviceAddress y,
                                                       DeviceAddress workspace,
                                                       std::size_t workspace_bytes) {
  ASSAY_TRY(const std::shared_ptr<Operands> operands, Describe(primitive));
  return [this, operands, x, y, workspace, workspace_bytes](Stream stream) {
    const float one = 1, zero = 0;
    const auto at = [](DeviceAddress address) { return reinterpret_cast<void*>(address); };
    if (const int code = calls_->stream(handle_, stream)) return code;
    if (operands->reduction == nullptr) {
      return calls_->softmax(handle_, kAccurate, kOverChannels, &one, operands->x, at(x), &zero,
                             operands->y, at(y));
    }
    return calls_->reduce(handle_, operands->reduction, nullptr, 0, at(workspace), workspace_bytes,
                          &one, operands->x, at(x), &zero, operands->y, at(y));
  };
}

}  // namespace assay::gpu

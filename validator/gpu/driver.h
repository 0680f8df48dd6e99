// The part of the CUDA driver API that judging needs, opened at run time: Assay builds without a
// CUDA driver and runs without one. Shapes and numbers are those of the driver's documented binary
// interface (CUDA 12.4 and later), declared here because its header is not part of every toolkit.
//
//   ASSAY_TRY(const Driver driver, OpenDriver());
//   if (const int code = driver.cuInit(0)) return driver.Fault(code, "cuInit");
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay::gpu {

using DeviceAddress = unsigned long long;
using Function = void*;
using Module = void*;
using Context = void*;
using Event = void*;
using Stream = void*;  ///< Null: the context's own, in whose order everything runs.
using Graph = void*;

/// Codes that mean something to us; the names are the driver's.
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;

/// CUlaunchAttribute.
struct LaunchAttribute {
  enum Id : std::int32_t { kCooperative = 2, kClusterDimension = 4 } id = kCooperative;
  std::uint32_t padding = 0;
  alignas(8) std::uint32_t value[16] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig.
struct LaunchConfig {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  void* stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  std::uint32_t attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

/// CUtensorMap.
struct alignas(64) TensorMapImage {
  std::uint64_t opaque[16] = {};
};

/// CUfunction_attribute.
inline constexpr int kMaxDynamicSharedBytes = 8;
inline constexpr int kNonPortableClusterSize = 14;
/// CUstream_flags, CUstreamCaptureMode.
inline constexpr unsigned kNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1;
/// CUdevice_attribute.
inline constexpr int kProcessors = 16;
inline constexpr int kL2Bytes = 38;
inline constexpr int kSharedBytesOptIn = 97;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;

// Member, exported name, signature.
#define ASSAY_DRIVER_CALLS(X)                                                                     \
  X(init, "cuInit", int(unsigned))                                                                \
  X(version, "cuDriverGetVersion", int(int*))                                                     \
  X(error_name, "cuGetErrorName", int(int, const char**))                                         \
  X(device_get, "cuDeviceGet", int(int*, int))                                                    \
  X(device_count, "cuDeviceGetCount", int(int*))                                                  \
  X(device_name, "cuDeviceGetName", int(char*, int, int))                                         \
  X(device_attribute, "cuDeviceGetAttribute", int(int*, int, int))                                \
  X(context_retain, "cuDevicePrimaryCtxRetain", int(Context*, int))                               \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", int(int))                                    \
  X(context_reset, "cuDevicePrimaryCtxReset_v2", int(int))                                        \
  X(context_set, "cuCtxSetCurrent", int(Context))                                                 \
  X(synchronise, "cuCtxSynchronize", int())                                                       \
  X(allocate, "cuMemAlloc_v2", int(DeviceAddress*, std::size_t))                                  \
  X(free, "cuMemFree_v2", int(DeviceAddress))                                                     \
  X(memory_info, "cuMemGetInfo_v2", int(std::size_t*, std::size_t*))                              \
  X(to_device, "cuMemcpyHtoD_v2", int(DeviceAddress, const void*, std::size_t))                   \
  X(to_host, "cuMemcpyDtoH_v2", int(void*, DeviceAddress, std::size_t))                           \
  X(fill, "cuMemsetD8_v2", int(DeviceAddress, unsigned char, std::size_t))                        \
  X(module_load, "cuModuleLoadData", int(Module*, const void*))                                   \
  X(module_unload, "cuModuleUnload", int(Module))                                                 \
  X(module_function, "cuModuleGetFunction", int(Function*, Module, const char*))                  \
  X(function_attribute, "cuFuncSetAttribute", int(Function, int, int))                            \
  X(parameter_info, "cuFuncGetParamInfo", int(Function, std::size_t, std::size_t*, std::size_t*)) \
  X(launch, "cuLaunchKernelEx", int(const LaunchConfig*, Function, void**, void**))               \
  X(bus_id, "cuDeviceGetPCIBusId", int(char*, int, int))                                          \
  X(copy_async, "cuMemcpyDtoDAsync_v2", int(DeviceAddress, DeviceAddress, std::size_t, Stream))   \
  X(fill_async, "cuMemsetD8Async", int(DeviceAddress, unsigned char, std::size_t, Stream))        \
  X(event_create, "cuEventCreate", int(Event*, unsigned))                                         \
  X(event_record, "cuEventRecord", int(Event, Stream))                                            \
  X(event_elapsed, "cuEventElapsedTime", int(float*, Event, Event))                               \
  X(event_destroy, "cuEventDestroy_v2", int(Event))                                               \
  X(stream_create, "cuStreamCreate", int(Stream*, unsigned))                                      \
  X(stream_destroy, "cuStreamDestroy_v2", int(Stream))                                            \
  X(capture_begin, "cuStreamBeginCapture_v2", int(Stream, int))                                   \
  X(capture_end, "cuStreamEndCapture", int(Stream, Graph*))                                       \
  X(graph_make, "cuGraphInstantiateWithFlags", int(Graph*, Graph, unsigned long long))            \
  X(graph_launch, "cuGraphLaunch", int(Graph, Stream))                                            \
  X(graph_destroy, "cuGraphDestroy", int(Graph))                                                  \
  X(graph_end, "cuGraphExecDestroy", int(Graph))                                                  \
  X(encode_tiled, "cuTensorMapEncodeTiled",                                                       \
    int(TensorMapImage*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,   \
        const std::uint32_t*, const std::uint32_t*, int, int, int, int))

/// The driver's calls. Each returns a code, 0 for success.
struct Driver {
#define X(member, name, signature) std::add_pointer_t<signature> member = nullptr;
  ASSAY_DRIVER_CALLS(X)
#undef X

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700)".
  std::string NameOf(int code) const;
};

/// libcuda.so.1, once a process. kEnvironment where there is none, or one that is too old.
Result<Driver> OpenDriver();

}  // namespace assay::gpu

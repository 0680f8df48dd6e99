#include "validator/gpu/testing/fake_driver.h"

#include <cstring>
#include <string_view>

namespace assay::gpu {
namespace {

FakeGpu* the_gpu = nullptr;
int canary_function = 0;
int kernel_function = 0;
int sweep_function = 0;
int tool_function = 0;

}  // namespace

struct FakeCalls {
  static int Sticky() { return the_gpu->pending_; }
  static int Init(unsigned) { return 0; }
  static int Version(int* version) { return *version = 13000, 0; }
  static int ErrorName(int, const char** name) { return *name = "CUDA_ERROR_OF_THE_FAKE", 0; }
  static int DeviceGet(int* device, int number) { return *device = number, 0; }
  static int DeviceCount(int* count) { return *count = 1, 0; }
  static int DeviceName(char* name, int size, int) {
    return std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size)), 0;
  }
  static int DeviceAttribute(int* value, int, int) { return *value = 9, 0; }
  static int ContextRetain(Context* context, int) {
    ++the_gpu->contexts;
    *context = the_gpu;
    return 0;
  }
  static int ContextRelease(int) { return 0; }
  static int ContextReset(int) {
    the_gpu->pending_ = 0;
    the_gpu->memory_.clear();
    return 0;
  }
  static int ContextSet(Context) { return 0; }
  static int Synchronise() { return Sticky(); }
  static int Allocate(DeviceAddress* at, std::size_t bytes) {
    if (bytes > the_gpu->room) return kOutOfMemory;
    std::vector<std::byte> storage(bytes);
    *at = reinterpret_cast<DeviceAddress>(storage.data());
    the_gpu->memory_.emplace(*at, std::move(storage));
    return 0;
  }
  static int Free(DeviceAddress at) { return the_gpu->memory_.erase(at), 0; }
  static int MemoryInfo(std::size_t* free, std::size_t* all) {
    return *free = *all = the_gpu->room, 0;
  }
  static int ToDevice(DeviceAddress at, const void* from, std::size_t bytes) {
    return std::memcpy(reinterpret_cast<void*>(at), from, bytes), Sticky();
  }
  static int ToHost(void* to, DeviceAddress at, std::size_t bytes) {
    return std::memcpy(to, reinterpret_cast<const void*>(at), bytes), Sticky();
  }
  static int Fill(DeviceAddress at, unsigned char byte, std::size_t bytes) {
    return std::memset(reinterpret_cast<void*>(at), byte, bytes), Sticky();
  }
  static int ModuleLoad(Module* module, const void*) { return *module = the_gpu, Sticky(); }
  static int ModuleUnload(Module) { return 0; }
  static int ModuleFunction(Function* function, Module, const char* name) {
    const std::string_view wanted(name);
    *function = &kernel_function;
    if (wanted == "canary") *function = &canary_function;
    if (wanted == "sweep") *function = &sweep_function;
    if (wanted == "nothing" || wanted == "hog" || wanted == "occupy" || wanted == "noise")
      *function = &tool_function;
    return wanted == "missing" ? 500 : 0;
  }
  static int FunctionAttribute(Function, int, int) { return 0; }
  static int ParameterInfo(Function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    if (index >= the_gpu->parameter_bytes.size()) return kInvalidValue;
    *offset = 0;
    *bytes = the_gpu->parameter_bytes[index];
    return 0;
  }
  static int Launch(const LaunchConfig* config, Function function, void** parameters, void**) {
    FakeLaunch launch{*config, parameters};
    if (function == &canary_function) {
      auto* const values = launch.At<std::uint32_t*>(0);
      for (std::uint32_t i = 0; i < config->block[0]; ++i)
        values[i] = 3 * values[i] + i + (the_gpu->broken ? 1 : 0);
      return Sticky();
    }
    if (function == &sweep_function) return ++the_gpu->sweeps, Sticky();
    if (function == &tool_function) return Sticky();
    if (the_gpu->recording_) {
      the_gpu->recorded_.push_back(
          [config, function, parameters] { return Launch(config, function, parameters, nullptr); });
      return 0;
    }
    ++the_gpu->launches;
    the_gpu->clock += 1;
    the_gpu->pending_ = the_gpu->kernel(launch);
    return 0;
  }
  static int BusId(char*, int, int) { return kInvalidValue; }
  static int CopyAsync(DeviceAddress to, DeviceAddress from, std::size_t bytes, Stream) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    the_gpu->clock += 1;
    return Sticky();
  }
  static int FillAsync(DeviceAddress at, unsigned char byte, std::size_t bytes, Stream) {
    the_gpu->clock += 0.25;
    return Fill(at, byte, bytes);
  }
  static int EventCreate(Event* event, unsigned) {
    *event = new char;
    return 0;
  }
  static int EventRecord(Event event, Stream) {
    return the_gpu->events_[event] = the_gpu->clock, 0;
  }
  static int EventElapsed(float* milliseconds, Event begin, Event end) {
    *milliseconds =
        static_cast<float>(1e3 * (the_gpu->events_.at(end) - the_gpu->events_.at(begin)));
    return Sticky();
  }
  static int EventDestroy(Event event) {
    the_gpu->events_.erase(event);
    delete static_cast<char*>(event);
    return 0;
  }
  static int StreamCreate(Stream* stream, unsigned) {
    *stream = new char;
    return 0;
  }
  static int StreamDestroy(Stream stream) { return delete static_cast<char*>(stream), 0; }
  static int CaptureBegin(Stream, int) { return the_gpu->recording_ = true, 0; }
  static int CaptureEnd(Stream, Graph* graph) {
    the_gpu->recording_ = false;
    *graph = the_gpu;
    return 0;
  }
  static int GraphMake(Graph* runnable, Graph graph, unsigned long long) {
    return *runnable = graph, 0;
  }
  static int GraphLaunch(Graph, Stream) {
    for (const auto& launch : the_gpu->recorded_) {
      if (const int code = launch()) return code;
    }
    return 0;
  }
  static int GraphDestroy(Graph) { return 0; }
  static int EncodeTiled(TensorMapImage*, int, std::uint32_t, void*, const std::uint64_t*,
                         const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int,
                         int, int) {
    return 0;
  }
};

FakeGpu::FakeGpu() { the_gpu = this; }
FakeGpu::~FakeGpu() { the_gpu = nullptr; }

Driver FakeGpu::driver() const {
  return {.init = FakeCalls::Init,
          .version = FakeCalls::Version,
          .error_name = FakeCalls::ErrorName,
          .device_get = FakeCalls::DeviceGet,
          .device_count = FakeCalls::DeviceCount,
          .device_name = FakeCalls::DeviceName,
          .device_attribute = FakeCalls::DeviceAttribute,
          .context_retain = FakeCalls::ContextRetain,
          .context_release = FakeCalls::ContextRelease,
          .context_reset = FakeCalls::ContextReset,
          .context_set = FakeCalls::ContextSet,
          .synchronise = FakeCalls::Synchronise,
          .allocate = FakeCalls::Allocate,
          .free = FakeCalls::Free,
          .memory_info = FakeCalls::MemoryInfo,
          .to_device = FakeCalls::ToDevice,
          .to_host = FakeCalls::ToHost,
          .fill = FakeCalls::Fill,
          .module_load = FakeCalls::ModuleLoad,
          .module_unload = FakeCalls::ModuleUnload,
          .module_function = FakeCalls::ModuleFunction,
          .function_attribute = FakeCalls::FunctionAttribute,
          .parameter_info = FakeCalls::ParameterInfo,
          .launch = FakeCalls::Launch,
          .bus_id = FakeCalls::BusId,
          .copy_async = FakeCalls::CopyAsync,
          .fill_async = FakeCalls::FillAsync,
          .event_create = FakeCalls::EventCreate,
          .event_record = FakeCalls::EventRecord,
          .event_elapsed = FakeCalls::EventElapsed,
          .event_destroy = FakeCalls::EventDestroy,
          .stream_create = FakeCalls::StreamCreate,
          .stream_destroy = FakeCalls::StreamDestroy,
          .capture_begin = FakeCalls::CaptureBegin,
          .capture_end = FakeCalls::CaptureEnd,
          .graph_make = FakeCalls::GraphMake,
          .graph_launch = FakeCalls::GraphLaunch,
          .graph_destroy = FakeCalls::GraphDestroy,
          .graph_end = FakeCalls::GraphDestroy,
          .encode_tiled = FakeCalls::EncodeTiled};
}

}  // namespace assay::gpu

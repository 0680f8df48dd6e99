// Runs the litmus tests on a GPU and prints what it showed: litmus_gpu TESTS [SECONDS [TEST...]]
//
// TESTS is the folder of the tests (tests/litmus/tests). Each test runs for SECONDS (default 2), many instances a launch, with the locations at different
// distances, with and without blocks that make traffic. Printed is JSON as tests/litmus/recorded
// holds it (table.h).
//
// Needs the NVIDIA driver only (dlopen of libcuda.so.1), which translates the PTX.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "tests/litmus/kernel.h"
#include "tests/litmus/table.h"

namespace {

using namespace assay::litmus;

using CUdeviceptr = unsigned long long;

/// The part of the driver API used here, by its exported names.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*context_retain)(void**, int) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*context_sync)() = nullptr;
  int (*module_load)(void**, const void*) = nullptr;
  int (*module_unload)(void*) = nullptr;
  int (*module_function)(void**, void*, const char*) = nullptr;
  int (*alloc)(CUdeviceptr*, std::size_t) = nullptr;
  int (*to_host)(void*, CUdeviceptr, std::size_t) = nullptr;
  int (*set_bytes)(CUdeviceptr, unsigned char, std::size_t) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
};

template <class Fn>
void Bind(void* library, Fn& fn, const char* name) {
  fn = reinterpret_cast<Fn>(dlsym(library, name));
  if (fn != nullptr) return;
  std::fprintf(stderr, "the driver has no %s\n", name);
  std::exit(3);
}

Driver LoadDriver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(3);
  }
  Driver driver;
  Bind(library, driver.init, "cuInit");
  Bind(library, driver.driver_version, "cuDriverGetVersion");
  Bind(library, driver.device_get, "cuDeviceGet");
  Bind(library, driver.device_name, "cuDeviceGetName");
  Bind(library, driver.context_retain, "cuDevicePrimaryCtxRetain");
  Bind(library, driver.context_set, "cuCtxSetCurrent");
  Bind(library, driver.context_sync, "cuCtxSynchronize");
  Bind(library, driver.module_load, "cuModuleLoadData");
  Bind(library, driver.module_unload, "cuModuleUnload");
  Bind(library, driver.module_function, "cuModuleGetFunction");
  Bind(library, driver.alloc, "cuMemAlloc_v2");
  Bind(library, driver.to_host, "cuMemcpyDtoH_v2");
  Bind(library, driver.set_bytes, "cuMemsetD8_v2");
  Bind(library, driver.launch, "cuLaunchKernel");
  return driver;
}

void Must(int result, const std::string& what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what.c_str(), result);
  std::exit(4);
}

constexpr std::uint32_t kInstances = 256;
constexpr std::uint32_t kMostLocations = 4;
constexpr std::uint32_t kMostRegisters = 16;
/// Distances between the locations of an instance, and between instances.
struct Layout {
  std::uint32_t spread;
  std::uint32_t stride;
};
constexpr Layout kLayouts[] = {{128, 512}, {4, 16}, {512, 2048}, {4096, 16384}, {32, 4096 + 128}};
constexpr std::size_t kMemoryBytes = std::size_t{kInstances} * 16384;

class Gpu {
 public:
  explicit Gpu(const Driver& driver) : driver_(driver) {
    Must(driver.alloc(&memory_, kMemoryBytes), "cuMemAlloc");
    Must(driver.alloc(&results_, kInstances * kMostRegisters * 4), "cuMemAlloc");
    Must(driver.alloc(&gate_, kInstances * 4), "cuMemAlloc");
    Must(driver.alloc(&scratch_, kScratchBytes), "cuMemAlloc");
    Must(driver.set_bytes(scratch_, 0, kScratchBytes), "cuMemset");
  }

  void Run(const Test& test, double seconds, std::map<std::string, std::uint64_t>& counts) {
    void* module = nullptr;
    void* function = nullptr;
    Must(driver_.module_load(&module, KernelOf(test).c_str()), test.name);
    Must(driver_.module_function(&function, module, "litmus"), test.name);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (std::size_t round = 0; round < 4 || std::chrono::steady_clock::now() < end; ++round)
      Launch(test, function, round, counts);
    Must(driver_.module_unload(module), test.name);
  }

 private:
  void Launch(const Test& test, void* function, std::size_t round,
              std::map<std::string, std::uint64_t>& counts) {
    const Layout layout = kLayouts[round % std::size(kLayouts)];
    Must(driver_.set_bytes(memory_, 0, std::size_t{kInstances} * layout.stride), "cuMemset");
    Must(driver_.set_bytes(gate_, 0, kInstances * 4), "cuMemset");
    std::uint32_t instances = kInstances;
    std::uint32_t stride = layout.stride;
    std::uint32_t spread = layout.spread;
    const bool traffic = round / std::size(kLayouts) % 2 == 1;
    std::uint32_t rounds = traffic ? 64 : 0;
    CUdeviceptr no_gate = 0;
    CUdeviceptr* const gate = round % 7 == 6 ? &no_gate : &gate_;
    void* parameters[] = {&memory_,   &results_, gate,    &scratch_,
                          &instances, &stride,   &spread, &rounds};
    const std::uint32_t blocks = test.blocks() * instances + (traffic ? 512u : 0u);
    Must(driver_.launch(function, blocks, 1, 1, test.block_threads(), 1, 1, 0, nullptr, parameters,
                        nullptr),
         test.name);
    Must(driver_.context_sync(), test.name);
    const std::uint32_t registers = RegisterCount(test);
    std::vector<std::uint32_t> results(std::size_t{instances} * registers);
    std::vector<std::uint32_t> memory(std::size_t{instances} * stride / 4);
    if (registers > 0)
      Must(driver_.to_host(results.data(), results_, results.size() * 4), "cuMemcpyDtoH");
    Must(driver_.to_host(memory.data(), memory_, memory.size() * 4), "cuMemcpyDtoH");
    for (std::uint32_t i = 0; i < instances; ++i) {
      ++counts[ToString(
          OutcomeOf(test, std::span(results).subspan(std::size_t{i} * registers, registers),
                    std::span(memory).subspan(std::size_t{i} * stride / 4, stride / 4), spread))];
    }
  }

  const Driver& driver_;
  CUdeviceptr memory_ = 0;
  CUdeviceptr results_ = 0;
  CUdeviceptr gate_ = 0;
  CUdeviceptr scratch_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: litmus_gpu TESTS [SECONDS [TEST...]]\n");
    return 3;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
  const std::vector<std::string> names(argv + std::min(argc, 3), argv + argc);
  const auto tests = LoadAll(argv[1]);
  if (!tests) {
    std::fprintf(stderr, "%s\n", ToString(tests.error()).c_str());
    return 3;
  }
  const Driver driver = LoadDriver();
  Must(driver.init(0), "cuInit");
  int device = 0;
  Must(driver.device_get(&device, 0), "cuDeviceGet");
  char name[256] = {};
  Must(driver.device_name(name, sizeof name, device), "cuDeviceGetName");
  Recording recording{.device = name};
  Must(driver.driver_version(&recording.driver), "cuDriverGetVersion");
  char date[32] = {};
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  recording.recorded = date;
  void* context = nullptr;
  Must(driver.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  Must(driver.context_set(context), "cuCtxSetCurrent");
  Gpu gpu(driver);
  for (const Test& test : *tests) {
    if (!names.empty() && std::ranges::find(names, test.name) == names.end()) continue;
    if (test.locations.size() > kMostLocations || RegisterCount(test) > kMostRegisters) {
      std::fprintf(stderr, "%s is too large\n", test.name.c_str());
      return 3;
    }
    gpu.Run(test, seconds, recording.outcomes[test.name]);
    std::fprintf(stderr, "%s: %zu outcomes\n", test.name.c_str(),
                 recording.outcomes[test.name].size());
  }
  std::printf("%s\n", ToJson(recording).dump(1).c_str());
  return 0;
}

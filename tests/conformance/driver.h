// The driver API as recorders use it: opened at run time, so that they build without a CUDA toolkit
// and run with the NVIDIA driver alone. Whatever fails ends the program.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace assay::conformance {

using CUresult = int;
using CUdevice = int;
using CUcontext = void*;
using CUmodule = void*;
using CUfunction = void*;
using CUdeviceptr = unsigned long long;

/// The part of the driver API used here, by its exported names.
struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*driver_version)(int*) = nullptr;
  CUresult (*device_get)(CUdevice*, int) = nullptr;
  CUresult (*device_name)(char*, int, CUdevice) = nullptr;
  CUresult (*context_retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*context_set)(CUcontext) = nullptr;
  CUresult (*context_sync)() = nullptr;
  CUresult (*module_load)(CUmodule*, const void*) = nullptr;
  CUresult (*module_function)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*alloc)(CUdeviceptr*, std::size_t) = nullptr;
  CUresult (*to_device)(CUdeviceptr, const void*, std::size_t) = nullptr;
  CUresult (*to_host)(void*, CUdeviceptr, std::size_t) = nullptr;
  CUresult (*set_bytes)(CUdeviceptr, unsigned char, std::size_t) = nullptr;
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, void*, void**, void**) = nullptr;
};

template <class Fn>
void Bind(void* library, Fn& fn, const char* name) {
  fn = reinterpret_cast<Fn>(dlsym(library, name));
  if (fn == nullptr) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(3);
  }
}

inline Driver LoadDriver() {
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
  Bind(library, driver.module_function, "cuModuleGetFunction");
  Bind(library, driver.alloc, "cuMemAlloc_v2");
  Bind(library, driver.to_device, "cuMemcpyHtoD_v2");
  Bind(library, driver.to_host, "cuMemcpyDtoH_v2");
  Bind(library, driver.set_bytes, "cuMemsetD8_v2");
  Bind(library, driver.launch, "cuLaunchKernel");
  return driver;
}

inline void Must(CUresult result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what, result);
  std::exit(4);
}

/// The first device, its context current.
struct Device {
  std::string name;
  int cuda_driver = 0;
};
inline Device OpenDevice(const Driver& driver) {
  Device opened;
  Must(driver.init(0), "cuInit");
  CUdevice device = 0;
  Must(driver.device_get(&device, 0), "cuDeviceGet");
  char name[256] = {};
  Must(driver.device_name(name, sizeof name, device), "cuDeviceGetName");
  opened.name = name;
  Must(driver.driver_version(&opened.cuda_driver), "cuDriverGetVersion");
  CUcontext context = nullptr;
  Must(driver.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  Must(driver.context_set(context), "cuCtxSetCurrent");
  return opened;
}

inline std::string Today() {
  char date[32] = {};
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  return date;
}

}  // namespace assay::conformance

#include "validator/gpu/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace assay::gpu {

std::string Driver::NameOf(int code) const {
  const char* name = nullptr;
  if (error_name == nullptr || error_name(code, &name) != kSuccess || name == nullptr)
    return fmt::format("CUDA error {}", code);
  return fmt::format("{} ({})", name, code);
}

Result<Driver> OpenDriver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return Fail(ErrorKind::kEnvironment,
                fmt::format("there is no CUDA driver: {}", why != nullptr ? why : "unknown"), "gpu",
                "install NVIDIA's driver, or judge with --engine emulator");
  }
  Driver driver;
  std::string missing;
  const auto find = [&](auto& member, const char* name) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(::dlsym(library, name));
    if (member == nullptr && missing.empty()) missing = name;
  };
#define X(member, name, signature) find(driver.member, name);
  ASSAY_DRIVER_CALLS(X)
#undef X
  if (!missing.empty()) {
    return Fail(ErrorKind::kEnvironment, "the CUDA driver has no " + missing, "gpu",
                "a driver for CUDA 12.4 or later is needed");
  }
  return driver;
}

}  // namespace assay::gpu

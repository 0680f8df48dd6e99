// Runs every form on a GPU and writes what it returned: conformance_record FORMS MODULES CHIP_NAME
// OUTPUT_PREFIX [programs]; with `programs`, the random ones made of the forms (programs.h).
//
// MODULES is a folder of module<k>.cubin (or .ptx) as conformance_ptx wrote them. OUTPUT_PREFIX.bin
// gets the outputs, forms in order, each register of a form in turn, each thread in turn,
// little-endian, in the width of the register (a predicate takes one byte). OUTPUT_PREFIX.json says
// where they come from, and holds a digest of each form's inputs and outputs.
//
// Needs the NVIDIA driver only (dlopen of libcuda.so.1), and no CUDA toolkit at run time.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/conformance/forms.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/inputs.h"
#include "tests/conformance/programs.h"

namespace {

using namespace assay::conformance;

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
  Bind(library, driver.module_function, "cuModuleGetFunction");
  Bind(library, driver.alloc, "cuMemAlloc_v2");
  Bind(library, driver.to_device, "cuMemcpyHtoD_v2");
  Bind(library, driver.to_host, "cuMemcpyDtoH_v2");
  Bind(library, driver.set_bytes, "cuMemsetD8_v2");
  Bind(library, driver.launch, "cuLaunchKernel");
  return driver;
}

void Must(CUresult result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what, result);
  std::exit(4);
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "usage: conformance_record FORMS MODULES CHIP OUTPUT_PREFIX [programs]\n");
    return 3;
  }
  std::vector<Form> forms = ParseForms(ReadAll(argv[1]));
  if (argc == 6) forms = RandomPrograms(forms, kPrograms, kProgramSeed);
  const Driver driver = LoadDriver();
  Must(driver.init(0), "cuInit");
  CUdevice device = 0;
  Must(driver.device_get(&device, 0), "cuDeviceGet");
  char name[256] = {};
  Must(driver.device_name(name, sizeof name, device), "cuDeviceGetName");
  int version = 0;
  Must(driver.driver_version(&version), "cuDriverGetVersion");
  CUcontext context = nullptr;
  Must(driver.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  Must(driver.context_set(context), "cuCtxSetCurrent");

  constexpr std::size_t kRegisterBytes = 8 * kMaxThreads;
  constexpr std::size_t kMaxRegisters = 64;
  CUdeviceptr in = 0;
  CUdeviceptr out = 0;
  CUdeviceptr memory = 0;
  const std::vector<std::uint8_t> probe = ProbeMemory();
  Must(driver.alloc(&in, kRegisterBytes * kMaxRegisters), "cuMemAlloc");
  Must(driver.alloc(&out, kRegisterBytes * kMaxRegisters), "cuMemAlloc");
  Must(driver.alloc(&memory, probe.size()), "cuMemAlloc");
  Must(driver.to_device(memory, probe.data(), probe.size()), "cuMemcpyHtoD");

  std::ofstream data(std::string(argv[4]) + ".bin", std::ios::binary);
  std::string rows;
  CUmodule module = nullptr;
  std::size_t written = 0;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Form& form = forms[i];
    if (i % kFormsPerModule == 0) {
      const std::string base =
          std::string(argv[2]) + "/module" + std::to_string(i / kFormsPerModule);
      std::string image = ReadAll(base + ".cubin");
      if (image.empty()) image = ReadAll(base + ".ptx");
      Must(driver.module_load(&module, image.c_str()), base.c_str());
    }
    CUfunction function = nullptr;
    Must(driver.module_function(&function, module, ("form" + std::to_string(i)).c_str()),
         form.name.c_str());
    const auto inputs = InputsOf(form);
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      Must(driver.to_device(in + r * kRegisterBytes, inputs[r].data(), inputs[r].size() * 8),
           "cuMemcpyHtoD");
    }
    Must(driver.set_bytes(out, 0, kRegisterBytes * kMaxRegisters), "cuMemset");
    void* parameters[] = {&in, &out, &memory};
    Must(driver.launch(function, 1, 1, 1, static_cast<unsigned>(form.threads), 1, 1, 0, nullptr,
                       parameters, nullptr),
         form.name.c_str());
    Must(driver.context_sync(), form.name.c_str());

    std::vector<std::uint8_t> packed;
    std::size_t r = 0;
    for (const FormOperand& destination : form.destinations) {
      const auto bytes = static_cast<std::size_t>(StoredBytes(destination.kind));
      for (int k = 0; k < destination.registers(); ++k, ++r) {
        std::vector<std::uint64_t> values(static_cast<std::size_t>(form.threads));
        Must(driver.to_host(values.data(), out + r * kRegisterBytes, values.size() * 8),
             "cuMemcpyDtoH");
        for (const std::uint64_t value : values) {
          for (std::size_t b = 0; b < bytes; ++b)
            packed.push_back(static_cast<std::uint8_t>(value >> (8 * b)));
        }
      }
    }
    data.write(reinterpret_cast<const char*>(packed.data()),
               static_cast<std::streamsize>(packed.size()));
    written += packed.size();
    rows += (i == 0 ? "" : ",\n") + std::string("    [\"") + form.name + "\", \"" +
            DigestInputs(inputs) + "\", \"" + DigestBytes(packed) + "\"]";
  }
  char date[32] = {};
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::ofstream header(std::string(argv[4]) + ".json");
  header << "{\n  \"schema\": \"assay.conformance/1\",\n  \"chip\": \"" << argv[3]
         << "\",\n  \"device\": \"" << name << "\",\n  \"cuda_driver\": " << version
         << ",\n  \"recorded\": \"" << date << "\",\n  \"bytes\": " << written
         << ",\n  \"forms\": [\n"
         << rows << "\n  ]\n}\n";
  std::printf("%zu forms, %zu bytes, %s, driver %d\n", forms.size(), written, name, version);
  return 0;
}

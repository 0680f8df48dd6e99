// Runs every form on a GPU and writes what it returned: conformance_record FORMS MODULES CHIP_NAME
// OUTPUT_PREFIX [programs]; with `programs`, the random ones made of the forms (programs.h).
//
// MODULES is a folder of module<k>.cubin (or .ptx) as conformance_ptx wrote them. OUTPUT_PREFIX.bin
// gets the outputs, forms in order, each register of a form in turn, each thread in turn,
// little-endian, in the width of the register (a predicate takes one byte). OUTPUT_PREFIX.json says
// where they come from, and holds a digest of each form's inputs and outputs.
//
// Needs the NVIDIA driver only (dlopen of libcuda.so.1), and no CUDA toolkit at run time.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"
#include "tests/conformance/forms.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/inputs.h"
#include "tests/conformance/programs.h"

namespace {

using namespace assay::conformance;

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
  const Device device = OpenDevice(driver);

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
  std::ofstream header(std::string(argv[4]) + ".json");
  header << "{\n  \"schema\": \"assay.conformance/1\",\n  \"chip\": \"" << argv[3]
         << "\",\n  \"device\": \"" << device.name
         << "\",\n  \"cuda_driver\": " << device.cuda_driver << ",\n  \"recorded\": \"" << Today()
         << "\",\n  \"bytes\": " << written << ",\n  \"forms\": [\n"
         << rows << "\n  ]\n}\n";
  std::printf("%zu forms, %zu bytes, %s, driver %d\n", forms.size(), written, device.name.c_str(),
              device.cuda_driver);
  return 0;
}

// Records what the special function unit returns for whole binades: conformance_record_mufu CHIP
// FOLDER writes FOLDER/NAME.FIRST.u32 (the results as bits, for the arguments FIRST, FIRST + 1, ...),
// of which fit_mufu.py makes coefficients, and FOLDER/mufu.json with a digest of each, which
// mufu_test holds the emulator to. The driver compiles the kernels.
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"

namespace {

using namespace assay::conformance;
constexpr unsigned kThreads = 256;
constexpr std::uint32_t kBinade = 1u << 23;

/// A function and the binades of its argument (biased exponents); without any, all of a half type.
struct Function {
  const char* name;
  int first;
  int last;
};
constexpr std::array kFunctions = {
    Function{"rcp.approx.ftz.f32", 127, 127},  Function{"rsqrt.approx.ftz.f32", 127, 128},
    Function{"sqrt.approx.ftz.f32", 127, 128}, Function{"ex2.approx.ftz.f32", 121, 130},
    Function{"lg2.approx.ftz.f32", 121, 132},  Function{"sin.approx.ftz.f32", 117, 128},
    Function{"cos.approx.ftz.f32", 123, 128},  Function{"tanh.approx.f32", 119, 129},
    Function{"ex2.approx.f16", 0, 0},          Function{"ex2.approx.ftz.bf16", 0, 0},
    Function{"tanh.approx.f16", 0, 0},         Function{"tanh.approx.bf16", 0, 0}};

/// mufu(out, first): out[i] = f(first + i), for one argument a thread.
std::string KernelOf(const std::string& name, bool half) {
  const std::string steps =
      half ? "cvt.u16.u32 %h0, %r2;\n" + name + " %h1, %h0;\ncvt.u32.u16 %r3, %h1;\n"
           : "mov.b32 %f0, %r2;\n" + name + " %f1, %f0;\nmov.b32 %r3, %f1;\n";
  return ".version 8.0\n.target sm_90\n.address_size 64\n"
         ".visible .entry mufu(.param .u64 out, .param .u32 first) {\n"
         ".reg .b16 %h<2>;\n.reg .b32 %r<5>;\n.reg .f32 %f<2>;\n.reg .b64 %rd<3>;\n"
         "ld.param.u64 %rd0, [out];\nld.param.u32 %r0, [first];\n"
         "mov.u32 %r1, %ctaid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.u32 %r1, %r1, 256, %r4;\n"
         "add.u32 %r2, %r0, %r1;\n" +
         steps +
         "mul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd2, %rd0, %rd1;\n"
         "st.global.u32 [%rd2], %r3;\nret;\n}\n";
}

std::string Hexadecimal(const char* format, unsigned long long value) {
  char text[32] = {};
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// FNV-1a, a result at a time.
std::string DigestOf(const std::vector<std::uint32_t>& results) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint32_t result : results) hash = (hash ^ result) * 0x100000001b3;
  return Hexadecimal("%016llx", hash);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: conformance_record_mufu CHIP FOLDER\n");
    return 3;
  }
  const std::string folder = argv[2];
  const Driver driver = LoadDriver();
  const Device device = OpenDevice(driver);
  CUdeviceptr out = 0;
  Must(driver.alloc(&out, std::size_t{kBinade} * 4), "cuMemAlloc");
  std::string rows;
  for (const Function& function : kFunctions) {
    const std::string name = function.name;
    const bool half = function.last == 0;
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    Must(driver.module_load(&module, KernelOf(name, half).c_str()), function.name);
    Must(driver.module_function(&kernel, module, "mufu"), function.name);
    for (int binade = function.first; binade <= function.last; ++binade) {
      std::uint32_t first = static_cast<std::uint32_t>(binade) << 23;
      std::vector<std::uint32_t> results(half ? 65536 : kBinade);
      void* parameters[] = {&out, &first};
      const auto blocks = static_cast<unsigned>(results.size() / kThreads);
      Must(driver.launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr),
           function.name);
      Must(driver.context_sync(), function.name);
      Must(driver.to_host(results.data(), out, results.size() * 4), "cuMemcpyDtoH");
      const std::string at = Hexadecimal("%08llx", first);
      std::ofstream raw(folder + "/" + name + "." + at + ".u32", std::ios::binary);
      raw.write(reinterpret_cast<const char*>(results.data()),
                static_cast<std::streamsize>(results.size() * 4));
      rows += (rows.empty() ? "    [\"" : ",\n    [\"") + name + "\", \"" + at + "\", " +
              std::to_string(results.size()) + ", \"" + DigestOf(results) + "\"]";
    }
  }
  std::ofstream header(folder + "/mufu.json");
  header << "{\n  \"schema\": \"assay.mufu/1\",\n  \"chip\": \"" << argv[1]
         << "\",\n  \"device\": \"" << device.name
         << "\",\n  \"cuda_driver\": " << device.cuda_driver << ",\n  \"recorded\": \"" << Today()
         << "\",\n  \"ranges\": [\n"
         << rows << "\n  ]\n}\n";
  return 0;
}

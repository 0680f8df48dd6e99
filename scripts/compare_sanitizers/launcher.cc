// Launches kernels of a cubin through the CUDA driver, as a plan says: what compute-sanitizer
// watches when compare.py runs it on the corpus.
//
//   launcher PLAN
//
// The plan is lines of words, written by compare.py from a launch.json:
//
//   module FILE
//   buffer BYTES FILE           FILE holds the contents; "-" leaves the memory as it was allocated
//   kernel ENTRY gx gy gz bx by bz cx cy cz SHARED COOPERATIVE
//   arg buffer NUMBER           arguments of the kernel above, in order
//   arg bytes HEX
//
// Exit codes: 0 all kernels ended, 1 the driver reported an error, 2 the plan cannot be read.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Argument {
  std::vector<unsigned char> bytes;
};
struct Kernel {
  std::string entry;
  unsigned grid[3], block[3], cluster[3];
  unsigned shared = 0;
  bool cooperative = false;
  std::vector<Argument> args;
};

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = "unknown";
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s\n", what, text);
  std::exit(1);
}

[[noreturn]] void BadPlan(const std::string& line) {
  std::fprintf(stderr, "cannot read: %s\n", line.c_str());
  std::exit(2);
}

CUdeviceptr MakeBuffer(std::size_t bytes, const std::string& file) {
  CUdeviceptr address = 0;
  if (bytes == 0) return address;
  Check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  if (file == "-") return address;
  std::ifstream stream(file, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(stream)),
                            std::istreambuf_iterator<char>());
  if (content.size() != bytes) BadPlan(file);
  Check(cuMemcpyHtoD(address, content.data(), bytes), "cuMemcpyHtoD");
  return address;
}

void Run(CUmodule module, Kernel& kernel) {
  CUfunction function;
  Check(cuModuleGetFunction(&function, module, kernel.entry.c_str()), "cuModuleGetFunction");
  if (kernel.shared > 48u << 10) {
    Check(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             static_cast<int>(kernel.shared)),
          "cuFuncSetAttribute");
  }
  std::vector<void*> pointers;
  for (Argument& argument : kernel.args) pointers.push_back(argument.bytes.data());
  CUlaunchAttribute attributes[2] = {};
  CUlaunchConfig config = {};
  config.gridDimX = kernel.grid[0];
  config.gridDimY = kernel.grid[1];
  config.gridDimZ = kernel.grid[2];
  config.blockDimX = kernel.block[0];
  config.blockDimY = kernel.block[1];
  config.blockDimZ = kernel.block[2];
  config.sharedMemBytes = kernel.shared;
  config.attrs = attributes;
  if (kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 1) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = kernel.cluster[0];
    attribute.value.clusterDim.y = kernel.cluster[1];
    attribute.value.clusterDim.z = kernel.cluster[2];
  }
  if (kernel.cooperative) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  Check(cuLaunchKernelEx(&config, function, pointers.data(), nullptr), "cuLaunchKernelEx");
  Check(cuCtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) BadPlan("usage: launcher PLAN");
  Check(cuInit(0), "cuInit");
  CUdevice device;
  CUcontext context;
  Check(cuDeviceGet(&device, 0), "cuDeviceGet");
  Check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  std::vector<CUdeviceptr> buffers;
  std::vector<Kernel> kernels;
  std::ifstream plan(argv[1]);
  for (std::string line; std::getline(plan, line);) {
    std::istringstream words(line);
    std::string word, file;
    words >> word;
    if (word == "module") {
      words >> file;
      Check(cuModuleLoad(&module, file.c_str()), "cuModuleLoad");
    } else if (word == "buffer") {
      std::size_t bytes = 0;
      words >> bytes >> file;
      buffers.push_back(MakeBuffer(bytes, file));
    } else if (word == "kernel") {
      Kernel kernel;
      words >> kernel.entry;
      for (auto* dims : {kernel.grid, kernel.block, kernel.cluster})
        words >> dims[0] >> dims[1] >> dims[2];
      words >> kernel.shared >> kernel.cooperative;
      kernels.push_back(kernel);
    } else if (word == "arg" && !kernels.empty()) {
      Argument argument;
      words >> word >> file;
      if (word == "buffer") {
        const std::size_t number = std::strtoul(file.c_str(), nullptr, 10);
        if (number >= buffers.size()) BadPlan(line);
        const auto* const bytes = reinterpret_cast<const unsigned char*>(&buffers[number]);
        argument.bytes.assign(bytes, bytes + sizeof(CUdeviceptr));
      } else {
        for (std::size_t i = 0; i + 1 < file.size(); i += 2) {
          argument.bytes.push_back(
              static_cast<unsigned char>(std::strtoul(file.substr(i, 2).c_str(), nullptr, 16)));
        }
      }
      kernels.back().args.push_back(argument);
    } else {
      BadPlan(line);
    }
    if (!words && !words.eof()) BadPlan(line);
  }
  for (Kernel& kernel : kernels) Run(module, kernel);
  return 0;
}

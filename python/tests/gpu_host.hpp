// What a C++ program needs to call a vetted kernel on its own: a context, memory, files. Driver API, opened at run time.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace gpu_host {

class Context {
 public:
  Context() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    void* context = nullptr;
    check(call<int(unsigned)>("cuInit")(0), "cuInit");
    check(call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0), "cuDevicePrimaryCtxRetain");
    check(call<int(void*)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
  }
  void* fresh(std::size_t bytes) {
    unsigned long long address = 0;
    check(call<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(&address, bytes), "cuMemAlloc");
    check(call<int(unsigned long long, unsigned char, std::size_t)>("cuMemsetD8_v2")(address, 0xff, bytes), "cuMemsetD8");
    return reinterpret_cast<void*>(address);
  }
  void* read(const char* name) {
    std::ifstream file(name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    void* memory = fresh(bytes.size());
    check(call<int(unsigned long long, const void*, std::size_t)>("cuMemcpyHtoD_v2")(
              reinterpret_cast<unsigned long long>(memory), bytes.data(), bytes.size()),
          "cuMemcpyHtoD");
    return memory;
  }
  void write(void* memory, std::size_t bytes, const char* name) {
    std::string text(bytes, '\0');
    check(call<int(void*, unsigned long long, std::size_t)>("cuMemcpyDtoH_v2")(
              text.data(), reinterpret_cast<unsigned long long>(memory), bytes),
          "cuMemcpyDtoH");
    std::ofstream(name, std::ios::binary) << text;
  }
  void synchronise() { check(call<int()>("cuCtxSynchronize")(), "cuCtxSynchronize"); }

 private:
  template <class Signature>
  Signature* call(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }
  static void check(int code, const char* what) {
    if (code == 0) return;
    std::fprintf(stderr, "%s: %d\n", what, code);
    std::exit(1);
  }
  void* library_ = nullptr;
};

}  // namespace gpu_host

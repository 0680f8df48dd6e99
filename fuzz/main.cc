// libFuzzer over one target: assay_fuzz --target=NAME [libFuzzer's options] CORPUS...
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/target.h"

namespace {
const assay::fuzz::Target* chosen = nullptr;
}  // namespace

// libFuzzer leaves arguments that begin with two dashes to the target.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kOption))
      chosen = assay::fuzz::FindTarget(argument.substr(kOption.size()));
    if (argument == "--targets") {
      for (const auto& target : assay::fuzz::Targets())
        fmt::print("{} {}\n", target.name, assay::fuzz::SeedFolder(target).string());
      std::fflush(stdout);
      std::_Exit(0);
    }
  }
  if (chosen == nullptr) {
    fmt::print(stderr, "assay_fuzz: name a target with --target=NAME; --targets lists them\n");
    std::_Exit(3);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}

#include "sandbox/toolkit.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace assay::sandbox {
namespace {

namespace fs = std::filesystem;

/// One way in which files lie under a root.
struct Layout {
  std::string_view libraries;
  std::vector<std::string_view> includes;
};

const std::vector<Layout>& Layouts() {
  static const std::vector<Layout> layouts{
      {"lib64", {"include"}},
      {"lib", {"include"}},
      {"targets/x86_64-linux/lib", {"targets/x86_64-linux/include"}},
      {"targets/sbsa-linux/lib", {"targets/sbsa-linux/include"}},
      {"nvidia/cu13/lib", {"nvidia/cu13/include"}},
      {"nvidia/cuda_nvrtc/lib",
       {"nvidia/cuda_runtime/include", "nvidia/cuda_nvrtc/include", "nvidia/cuda_cccl/include"}},
      {"lib/x86_64-linux-gnu", {"include"}},
      {"lib/aarch64-linux-gnu", {"include"}},
  };
  return layouts;
}

bool IsFolder(const Path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool IsFile(const Path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Path Resolved(const Path& path) {
  std::error_code error;
  Path real = fs::canonical(path, error);
  return error ? path : real;
}

/// libnvrtc-builtins.so.MAJOR.MINOR of the given major version; the greatest if there are several.
Path FindBuiltins(const Path& folder, std::string_view major) {
  const std::string prefix = "libnvrtc-builtins.so." + std::string(major) + ".";
  Path best;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    // "13.0", not "13.0.88": the former is the name that NVRTC asks for.
    if (name.find('.', prefix.size()) != std::string::npos) continue;
    if (best.empty() || best.filename().string() < name) best = it->path();
  }
  return best;
}

std::optional<Toolkit> ToolkitAs(const Path& root, const Layout& layout) {
  const Path folder = root / layout.libraries;
  for (const std::string_view major : {"13", "12"}) {
    const Path nvrtc = folder / ("libnvrtc.so." + std::string(major));
    if (!IsFile(nvrtc)) continue;
    const Path builtins = FindBuiltins(folder, major);
    if (builtins.empty()) continue;
    Toolkit toolkit{root, Resolved(nvrtc), Resolved(builtins), builtins.filename().string(), {}};
    for (const std::string_view include : layout.includes) {
      const Path headers = root / include;
      if (!IsFolder(headers)) continue;
      toolkit.includes.push_back(Resolved(headers));
      if (IsFolder(headers / "cccl")) toolkit.includes.push_back(Resolved(headers) / "cccl");
    }
    const auto has_bf16 = [](const Path& headers) { return IsFile(headers / "cuda_bf16.h"); };
    if (std::any_of(toolkit.includes.begin(), toolkit.includes.end(), has_bf16)) return toolkit;
  }
  return std::nullopt;
}

/// .deps/ beside the program or in one of the folders above it: build/release/bin is three below
/// the checkout.
void AddWheels(std::vector<Path>& roots) {
  Path folder = ProgramFolder();
  for (int level = 0; level < 5 && !folder.empty(); ++level) {
    const Path deps = folder / ".deps";
    if (IsFolder(deps)) {
      roots.push_back(deps);
      std::error_code error;
      std::vector<Path> below;
      for (fs::directory_iterator it(deps, error), end; !error && it != end; it.increment(error)) {
        if (IsFolder(it->path())) below.push_back(it->path());
      }
      std::sort(below.begin(), below.end());
      roots.insert(roots.end(), below.begin(), below.end());
    }
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
}

}  // namespace

ToolkitSearch ToolkitSearch::Default(const std::function<std::string(const char*)>& environment,
                                     std::string explicit_root) {
  ToolkitSearch search;
  search.explicit_root = explicit_root.empty() ? environment("ASSAY_CUDA_ROOT") : explicit_root;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string value = environment(name); !value.empty())
      search.roots.emplace_back(value);
  }
  search.roots.emplace_back("/usr/local/cuda");
  AddWheels(search.roots);
  search.roots.emplace_back("/usr");
  return search;
}

std::optional<Toolkit> ToolkitIn(const Path& root) {
  for (const Layout& layout : Layouts()) {
    if (auto toolkit = ToolkitAs(root, layout)) return toolkit;
  }
  return std::nullopt;
}

namespace {

std::vector<Path> RootsOf(const ToolkitSearch& search) {
  std::vector<Path> roots = search.roots;
  if (!search.explicit_root.empty()) roots.insert(roots.begin(), search.explicit_root);
  return roots;
}

}  // namespace

std::optional<Path> FindTensorLibrary(const ToolkitSearch& search) {
  for (const Path& root : RootsOf(search)) {
    // Below a folder of wheels, or beside the toolkit's wheel in it.
    std::vector<Path> folders = {root / "nvidia/cudnn/lib", root.parent_path() / "cudnn/lib"};
    for (const Layout& layout : Layouts()) folders.push_back(root / layout.libraries);
    for (const Path& folder : folders) {
      if (IsFile(folder / "libcudnn.so.9")) return folder / "libcudnn.so.9";
    }
  }
  return std::nullopt;
}

std::optional<Path> FindSanitizer(const ToolkitSearch& search) {
  for (const Path& root : RootsOf(search)) {
    for (const char* folder : {"compute-sanitizer", "extras/compute-sanitizer",
                               "lib/nvidia-cuda-toolkit/compute-sanitizer"}) {
      if (IsFile(root / folder / "compute-sanitizer"))
        return Resolved(root / folder / "compute-sanitizer");
    }
  }
  return std::nullopt;
}

std::optional<Path> FindMatrixLibrary(const ToolkitSearch& search) {
  for (const Path& root : RootsOf(search)) {
    std::vector<Path> folders = {root / "nvidia/cublas/lib"};
    for (const Layout& layout : Layouts()) folders.push_back(root / layout.libraries);
    for (const Path& folder : folders) {
      for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
        if (IsFile(folder / name)) return Resolved(folder / name);
      }
    }
  }
  return std::nullopt;
}

Result<Toolkit> FindToolkit(const ToolkitSearch& search) {
  if (!search.explicit_root.empty()) {
    if (auto toolkit = ToolkitIn(search.explicit_root)) return *toolkit;
    return Fail(
        ErrorKind::kEnvironment, "no NVRTC (libnvrtc.so.13 or .12, with headers) there",
        search.explicit_root,
        "name the root of a CUDA Toolkit, or of a folder with NVIDIA's wheels, in ASSAY_CUDA_ROOT");
  }
  std::string tried;
  for (const Path& root : search.roots) {
    if (auto toolkit = ToolkitIn(root)) return *toolkit;
    tried += (tried.empty() ? "" : ", ") + root.string();
  }
  return Fail(ErrorKind::kEnvironment, "no CUDA compiler library (NVRTC) was found in " + tried,
              "CUDA Toolkit",
              "install the CUDA Toolkit 12 or 13, set CUDA_HOME, or run scripts/demo.sh, which "
              "fetches NVRTC");
}

}  // namespace assay::sandbox

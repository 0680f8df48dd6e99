#include "sandbox/policies.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>

namespace assay::sandbox {
namespace {

constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kGiB = 1ull << 30;

constexpr std::array<std::string_view, 4> kKindNames{"compile", "emulate", "gpu", "gpu_tool"};

/// What every worker gets.
Policy Base(std::string name) {
  Policy policy(std::move(name));
  policy.SystemLibraries()
      .Environment("LANG", "C.UTF-8")
      .Allow(SyscallSet::kRuntime)
      .Allow(SyscallSet::kThreads)
      .Limit(Resource::kOpenFiles, 128)
      .Limit(Resource::kProcesses, 128)
      // A backstop for a worker that outlives its supervisor's attention; requests have their own
      // deadlines, and the pool replaces a worker long before it gets here.
      .Limit(Resource::kCpuSeconds, 4 * 3600);
  if (BuiltWithSanitizer()) {
    policy
        .Allow(Weakening::kSanitizerRuntime)
        // The leak checker traces the process, which no worker may do.
        .Environment("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1")
        .Environment("UBSAN_OPTIONS", "print_stacktrace=1:abort_on_error=1")
        .Environment("TSAN_OPTIONS", "halt_on_error=1:abort_on_error=1");
  }
  return policy;
}

/// NVRTC parses hostile text: endless templates must end at a limit, deep nesting at the end of the
/// stack.
Policy CompilePolicy() {
  Policy policy = Base("compile");
  policy
      .Tmpfs("/tmp", 64 * kMiB)  // The front end keeps intermediate text there.
      .Environment("TMPDIR", "/tmp")
      .Allow(SyscallSet::kTempFiles)
      .Limit(Resource::kFileBytes, 64 * kMiB)
      .Limit(Resource::kStackBytes, 64 * kMiB)
      .ResidentBytes(3 * kGiB);
  if (!BuiltWithSanitizer()) policy.Limit(Resource::kAddressSpace, 16 * kGiB);
  return policy;
}

/// Our own emulator on hostile PTX. Tensors of many gigabytes are mapped sparsely, so resident
/// memory is what counts.
Policy EmulatePolicy() {
  Policy policy = Base("emulate");
  policy.Limit(Resource::kFileBytes, 64 * kGiB).ResidentBytes(6 * kGiB);
  if (!BuiltWithSanitizer()) policy.Limit(Resource::kAddressSpace, 2048 * kGiB);
  return policy;
}

/// The driver's library, with hostile machine code on the device behind it. The device files are the
/// widest door that any worker has: they are why a GPU is used only where the user asks for it.
Policy GpuPolicy() {
  Policy policy = Base("gpu");
  policy.Devices("/dev", "nvidia")
      .Proc()
      .Tmpfs("/tmp", 256 * kMiB)
      .Environment("CUDA_CACHE_DISABLE", "1")
      .Environment("TMPDIR", "/tmp")
      .Allow(SyscallSet::kTempFiles)
      .Allow(SyscallSet::kDevice)
      .Limit(Resource::kFileBytes, 64 * kGiB)
      .Limit(Resource::kOpenFiles, 1024)
      // Sets of inputs and outputs that fill a good part of the card; what all workers hold together
      // has its own limit.
      .ResidentBytes(64 * kGiB);
  return policy;
}

/// Threads and processes of the tool count as well, and what it notes of each byte of memory.
Policy GpuToolPolicy() {
  Policy policy = GpuPolicy();
  policy.Allow(Weakening::kVendorTool)
      .Limit(Resource::kProcesses, 1024)
      .Environment("HOME", "/tmp");
  return policy;
}

}  // namespace

std::string_view Name(WorkerKind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }

std::optional<WorkerKind> ParseWorkerKind(std::string_view name) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<WorkerKind>(i);
  }
  return std::nullopt;
}

bool BuiltWithSanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

Policy PolicyFor(WorkerKind kind) {
  static constexpr std::array<Policy (*)(), 4> kPolicies{&CompilePolicy, &EmulatePolicy, &GpuPolicy,
                                                         &GpuToolPolicy};
  return kPolicies.at(static_cast<std::size_t>(kind))();
}

void BindWorker(Policy& policy, const Path& program) {
  policy.ReadOnly(program, Path("/worker") / program.filename());
}

void BindDriver(Policy& policy) {
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
        "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"}) {
    std::error_code error;
    const Path library = std::filesystem::canonical(Path(folder) / "libcuda.so.1", error);
    if (error) continue;
    const Path home = library.parent_path();
    const std::string text = home.string();
    if (!text.starts_with("/usr/lib") && !text.starts_with("/lib")) policy.ReadOnly(home, home);
    policy.Environment("LD_LIBRARY_PATH", text);
    return;
  }
}

std::vector<std::string> BindToolkit(Policy& policy, const Toolkit& toolkit) {
  const Path nvrtc = Path("/cuda/lib") / toolkit.nvrtc.filename();
  const Path builtins = Path("/cuda/lib") / toolkit.builtins_name;
  policy.ReadOnly(toolkit.nvrtc, nvrtc).ReadOnly(toolkit.builtins, builtins);
  int folders = 0;
  for (const Path& include : toolkit.includes) {
    if (policy.Inside(include) != include) continue;  // Below a folder that is bound already: cccl.
    ++folders;
    policy.ReadOnly(include,
                    folders == 1 ? "/cuda/include" : fmt::format("/cuda/include{}", folders));
  }
  std::vector<std::string> arguments{"--nvrtc", policy.Inside(toolkit.nvrtc).string(), "--builtins",
                                     policy.Inside(toolkit.builtins).string()};
  for (const Path& include : toolkit.includes) {
    arguments.insert(arguments.end(), {"--include", policy.Inside(include).string()});
  }
  return arguments;
}

}  // namespace assay::sandbox

#include "sandbox/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::sandbox {
namespace {

template <class T>
void AddOnce(std::vector<T>& values, T value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

}  // namespace

std::string_view Name(SyscallSet set) {
  static constexpr std::array<std::string_view, 5> kNames{"runtime", "threads", "temp_files",
                                                          "device", "sanitizers"};
  return kNames.at(static_cast<std::size_t>(set));
}

std::string_view Name(Resource resource) {
  static constexpr std::array<std::string_view, 6> kNames{
      "address_space", "cpu_seconds", "open_files", "processes", "file_bytes", "stack_bytes"};
  return kNames.at(static_cast<std::size_t>(resource));
}

std::string_view Name(Weakening weakening) {
  static constexpr std::array<std::string_view, 3> kNames{"no_jail", "sanitizer_runtime",
                                                          "vendor_tool"};
  return kNames.at(static_cast<std::size_t>(weakening));
}

Policy& Policy::SystemLibraries() {
  system_libraries_ = true;
  return *this;
}

Policy& Policy::ReadOnly(Path source, Path target) {
  read_only_.push_back({std::move(source), std::move(target)});
  return *this;
}

Policy& Policy::Devices(Path folder, std::string prefix) {
  devices_.push_back({std::move(folder), std::move(prefix)});
  return *this;
}

Policy& Policy::Tmpfs(Path target, std::uint64_t bytes) {
  tmpfs_.push_back({std::move(target), bytes});
  return *this;
}

Policy& Policy::Proc() {
  proc_ = true;
  return *this;
}

Policy& Policy::Environment(std::string name, std::string value) {
  environment_.emplace_back(std::move(name), std::move(value));
  return *this;
}

Policy& Policy::Limit(Resource resource, std::uint64_t value) {
  for (auto& [existing, limit] : limits_) {
    if (existing == resource) {
      limit = value;
      return *this;
    }
  }
  limits_.emplace_back(resource, value);
  return *this;
}

Policy& Policy::ResidentBytes(std::uint64_t bytes) {
  resident_bytes_ = bytes;
  return *this;
}

Policy& Policy::Allow(SyscallSet set) {
  AddOnce(syscalls_, set);
  return *this;
}

Policy& Policy::Allow(Weakening weakening) {
  AddOnce(weakenings_, weakening);
  if (weakening == Weakening::kSanitizerRuntime) {
    // A sanitizer reserves terabytes of shadow memory at start and reads /proc/self; ResidentBytes
    // still bounds what it uses.
    Proc().Allow(SyscallSet::kSanitizers);
    std::erase_if(limits_, [](const auto& item) { return item.first == Resource::kAddressSpace; });
  }
  return *this;
}

std::optional<std::uint64_t> Policy::LimitOf(Resource resource) const {
  for (const auto& [existing, limit] : limits_) {
    if (existing == resource) return limit;
  }
  return std::nullopt;
}

bool Policy::Allows(Weakening weakening) const {
  return std::find(weakenings_.begin(), weakenings_.end(), weakening) != weakenings_.end();
}

Path Policy::Inside(const Path& host) const {
  if (Allows(Weakening::kNoJail)) return host;
  const Path wanted = host.lexically_normal();
  Path best = host;
  std::size_t best_length = 0;
  for (const Bind& bind : read_only_) {
    const Path source = bind.source.lexically_normal();
    const Path rest = wanted.lexically_relative(source);
    if (rest.empty() || *rest.begin() == "..") continue;
    if (source.native().size() < best_length) continue;
    best_length = source.native().size();
    best = rest == "." ? bind.target : bind.target / rest;
  }
  return best;
}

std::string Policy::Describe() const {
  std::string text = fmt::format("policy {}\n", name_);
  const bool jailed = !Allows(Weakening::kNoJail);
  text +=
      jailed
          ? "  namespaces: user pid net mount ipc uts cgroup, all new; no network; root read-only\n"
          : "  namespaces: none, the host's\n";
  if (jailed) {
    if (system_libraries_) text += "  read-only: system libraries\n";
    for (const Bind& bind : read_only_) {
      text += fmt::format("  read-only: {} as {}\n", bind.source.string(), bind.target.string());
    }
    for (const DeviceFiles& devices : devices_) {
      text += fmt::format("  DEVICES: {}*\n", (devices.folder / devices.prefix).string());
    }
    for (const TmpfsMount& mount : tmpfs_) {
      text += fmt::format("  tmpfs: {} of {} bytes\n", mount.target.string(), mount.bytes);
    }
    if (proc_) text += "  proc: its own processes\n";
  }
  for (const auto& [name, value] : environment_) {
    text += fmt::format("  environment: {}={}\n", name, value);
  }
  for (const auto& [resource, value] : limits_) {
    text += fmt::format("  limit: {} {}\n", Name(resource), value);
  }
  if (resident_bytes_ != 0) text += fmt::format("  resident memory: {} bytes\n", resident_bytes_);
  if (Allows(Weakening::kVendorTool)) {
    text += "  system calls: all\n";
  } else {
    for (const SyscallSet set : syscalls_) text += fmt::format("  system calls: {}\n", Name(set));
  }
  for (const Weakening weakening : weakenings_) {
    text += fmt::format("  WEAKENED: {}\n", Name(weakening));
  }
  return text;
}

}  // namespace assay::sandbox

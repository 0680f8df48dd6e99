#include "base/environment.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace assay {
namespace {

/// build/PRESET/bin is three below a checkout, lib/ARCH/libassay.so three below a prefix.
constexpr int kMostLevels = 5;

bool IsFolder(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// The file that this code was loaded from: the program, or the shared library it is part of.
Path OwnFile() {
  const auto here = reinterpret_cast<std::uintptr_t>(&OwnFile);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    const char* const last = line.data() + line.size();
    const auto [dash, ignored] = std::from_chars(line.data(), last, begin, 16);
    if (dash == last || std::from_chars(dash + 1, last, end, 16).ec != std::errc()) continue;
    const std::size_t path = line.find('/');
    if (begin <= here && here < end && path != std::string::npos) return line.substr(path);
  }
  return ProgramFolder() / "assay";
}

/// The nearest installation above `file`; a checkout as well, where those count.
std::optional<Environment> Above(const Path& file, bool checkouts) {
  const Path programs = file.parent_path();
  Path folder = programs;
  for (int level = 0; level < kMostLevels && !folder.empty(); ++level) {
    if (IsFolder(folder / "share/assay/ops")) return Environment::Installed(folder);
    if (checkouts && IsFolder(folder / "ops") && IsFolder(folder / "prompts"))
      return Environment::FromSourceTree(folder, programs);
    folder = folder.parent_path();
  }
  return std::nullopt;
}

/// XDG Base Directory Specification: a relative path is as good as none.
Path CacheFolder() {
  if (const char* const chosen = std::getenv("ASSAY_CACHE"); chosen != nullptr) return chosen;
  for (const auto& [variable, folder] :
       {std::pair{"XDG_CACHE_HOME", "assay"}, std::pair{"HOME", ".cache/assay"}}) {
    const char* const root = std::getenv(variable);
    if (root != nullptr && Path(root).is_absolute()) return Path(root) / folder;
  }
  return {};
}

}  // namespace

namespace api {

Environment Environment::Installed(const std::filesystem::path& prefix) {
  const Path share = prefix / "share/assay";
  return {.ops = {share / "ops"},
          .prompts = share / "prompts",
          .scripts = share / "scripts",
          .worker = prefix / "libexec/assay/assay-worker",
          .toolkit = {},
          .bubblewrap = {}};
}

Environment Environment::Installed() { return Above(OwnFile(), false).value_or(Environment{}); }

Environment Environment::FromSourceTree(const std::filesystem::path& source,
                                        const std::filesystem::path& programs) {
  return {.ops = {source / "ops"},
          .prompts = source / "prompts",
          .scripts = source / "scripts",
          .worker = programs / "assay-worker",
          .toolkit = {},
          .bubblewrap = {}};
}

}  // namespace api

Environment OwnEnvironment() {
  const Path file = OwnFile();
  // A program that lies by itself names where it looked.
  Environment environment =
      Above(file, true)
          .value_or(Environment::FromSourceTree(file.parent_path(), file.parent_path()));
  if (const char* const extra = std::getenv("ASSAY_OPS"); extra != nullptr) {
    std::string_view rest = extra;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      const Path folder = rest.substr(0, colon);
      if (IsFolder(folder)) environment.ops.push_back(folder.lexically_normal());
      rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
    }
  }
  if (const char* const chosen = std::getenv("ASSAY_PROMPTS"); chosen != nullptr && *chosen != '\0')
    environment.prompts = chosen;
  environment.cache = CacheFolder();
  return environment;
}

}  // namespace assay

#include "validator/engine/compile_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/digest.h"

namespace assay::engine {
namespace {

constexpr std::string_view kEnding = ".compiled";
constexpr std::size_t kDigest = 64;
constexpr std::uintmax_t kMostBytes = 64u << 20;

}  // namespace

std::string StampOf(std::span<const Path> files) {
  std::string stamp;
  for (const Path& file : files) {
    struct stat status = {};
    if (::stat(file.c_str(), &status) != 0) return {};
    stamp += fmt::format("{} {} {}.{:09}\n", file.string(), status.st_size, status.st_mtim.tv_sec,
                         status.st_mtim.tv_nsec);
  }
  return stamp;
}

CompileStore::CompileStore(Path folder, std::string stamp)
    : folder_(std::move(folder)), stamp_(std::move(stamp)) {}

Path CompileStore::FileOf(std::string_view digest) const {
  return folder_ / (Sha256Hex(stamp_ + std::string(digest)) + std::string(kEnding));
}

bool CompileStore::IsOurs() const {
  struct stat status = {};
  return ::lstat(folder_.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<CompileStore::Reply> CompileStore::Find(std::string_view digest) const {
  if (!IsOurs()) return std::nullopt;
  const auto text = ReadFile(FileOf(digest), kMostBytes);
  if (!text || text->size() <= kDigest || (*text)[kDigest] != '\n') return std::nullopt;
  const std::string_view rest = std::string_view(*text).substr(kDigest + 1);
  if (Sha256Hex(rest) != std::string_view(*text).substr(0, kDigest)) return std::nullopt;
  const std::size_t line = rest.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  auto header = ParseJson(rest.substr(0, line), "a kept compilation");
  if (!header) return std::nullopt;
  return Reply{*std::move(header), std::string(rest.substr(line + 1))};
}

void CompileStore::Keep(std::string_view digest, const Json& header,
                        std::string_view payload) const {
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  if (std::filesystem::create_directories(folder_, ignored)) ::chmod(folder_.c_str(), S_IRWXU);
  if (!IsOurs()) return;
  std::string rest = CompactJson(header);
  rest += '\n';
  rest += payload;
  // What cannot be kept is compiled again next time.
  if (WriteFileAtomically(FileOf(digest), Sha256Hex(rest) + "\n" + rest)) MakeRoom();
}

void CompileStore::MakeRoom() const {
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, Path>> files;
  for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != kEnding) continue;
    const auto changed = entry->last_write_time(error);
    if (!error) files.emplace_back(changed, entry->path());
    error.clear();
  }
  if (files.size() <= kMostFiles) return;
  std::ranges::sort(files);
  for (std::size_t i = 0; i + kMostFiles < files.size(); ++i)
    std::filesystem::remove(files[i].second, error);
}

}  // namespace assay::engine

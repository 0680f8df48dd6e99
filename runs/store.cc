#include "runs/store.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/digest.h"
#include "base/json.h"

namespace assay::runs {
namespace {

constexpr std::string_view kRefsSchema = "assay.store_refs/1";
constexpr std::string_view kTemporary = ".tmp.";

std::unexpected<Error> SystemError(const std::string& what, const Path& path) {
  return Fail(ErrorKind::kEnvironment, what + ": " + std::strerror(errno), path.string(),
              "check that the store is writable and has room");
}

// No two writers of any machine have the same: a process id means little on a shared file system.
std::string FreshName() {
  std::array<unsigned char, 16> bytes{};
  ASSAY_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
              "getrandom");
  std::string name(kTemporary);
  for (const unsigned char byte : bytes) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

Status WriteFresh(const Path& file, std::string_view text) {
  UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return SystemError("cannot create", file);
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("cannot write", file);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd.get()) != 0) return SystemError("cannot sync", file);
  // NFS reports a full disk when the file is closed, and only then.
  if (::close(fd.Release()) != 0) return SystemError("cannot close", file);
  return {};
}

// A name survives a power cut once its folder has been synced.
Status SyncFolder(const Path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL)) return SystemError("cannot sync", folder);
  return {};
}

// Links `fresh` to `file`. Where another was first that is as well: blobs of one name are the same.
Status LinkIntoPlace(const Path& fresh, const Path& file) {
  if (::link(fresh.c_str(), file.c_str()) == 0 || errno == EEXIST) return {};
  const int error = errno;
  // An answer may be lost on the way: two names say that it was done.
  struct stat info{};
  if (::stat(fresh.c_str(), &info) == 0 && info.st_nlink == 2) return {};
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK) {
    if (::rename(fresh.c_str(), file.c_str()) == 0) return {};
  }
  errno = error;
  return SystemError("cannot link", file);
}

bool MakeYoung(const Path& file) {
  return ::utimensat(AT_FDCWD, file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0;
}

// Regular files and their ages; what vanishes meanwhile is not there.
std::optional<std::filesystem::file_time_type> ChangedAt(const Path& file) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(file, error);
  if (error || !std::filesystem::is_regular_file(status)) return std::nullopt;
  const auto time = std::filesystem::last_write_time(file, error);
  return error ? std::nullopt : std::optional(time);
}

std::vector<Path> Entries(const Path& folder) {
  std::vector<Path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    entries.push_back(it->path());
  }
  std::ranges::sort(entries);
  return entries;
}

// Folders ab of a store.
std::vector<Path> Shelves(const Path& root) {
  std::vector<Path> shelves = Entries(root);
  std::erase_if(shelves, [](const Path& path) { return path.filename().string().size() != 2; });
  return shelves;
}

Result<std::set<std::string>> Needed(const Path& refs) {
  std::set<std::string> needed;
  for (const Path& file : Entries(refs)) {
    if (file.extension() != ".json") continue;
    const std::string place = file.string();
    ASSAY_TRY(const Json json, ReadJsonFile(place));
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
    ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
    if (schema != kRefsSchema) {
      return Fail(ErrorKind::kMalformedInput, "the schema is '" + schema + "'", place,
                  "use the version of assay that wrote the store");
    }
    reader.Ignore("run");
    ASSAY_TRY(const auto digests, reader.Required<std::vector<std::string>>("digests"));
    ASSAY_TRY_VOID(reader.Finish());
    needed.insert(digests.begin(), digests.end());
  }
  return needed;
}

// Takes the blob away, unless somebody put it again in this very moment: then it is laid back.
bool Remove(const Path& file, std::filesystem::file_time_type before) {
  const Path aside = file.parent_path() / FreshName();
  if (::rename(file.c_str(), aside.c_str()) != 0) return false;
  const auto changed = ChangedAt(aside);
  const bool wanted = changed && *changed >= before;
  if (wanted && ::link(aside.c_str(), file.c_str()) != 0 && errno != EEXIST) {
    return ::rename(aside.c_str(), file.c_str()) != 0;
  }
  ::unlink(aside.c_str());
  return !wanted;
}

}  // namespace

bool IsDigest(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Path Store::FileOf(const std::string& digest) const {
  ASSAY_CHECK(IsDigest(digest), "a blob is named by a digest");
  return root_ / digest.substr(0, 2) / digest.substr(2);
}

Path Store::RecordFile(const std::string& key, std::string_view kind) const {
  return FileOf(key).string() + "." + std::string(kind) + ".json";
}

Result<std::string> Store::Put(std::string_view bytes) const {
  std::string digest = Sha256Hex(bytes);
  const Path file = FileOf(digest);
  if (MakeYoung(file)) {
    // One that came to harm would be kept for ever: what is there is what was asked to be kept.
    if (const Result<std::string> there = ReadFile(file); there && *there == bytes) return digest;
    ::unlink(file.c_str());
  }
  ASSAY_TRY_VOID(MakeFolders(file.parent_path()));
  const Path fresh = file.parent_path() / FreshName();
  Status status = WriteFresh(fresh, bytes);
  if (status) status = LinkIntoPlace(fresh, file);
  ::unlink(fresh.c_str());
  ASSAY_TRY_VOID(std::move(status));
  ASSAY_TRY_VOID(SyncFolder(file.parent_path()));
  return digest;
}

Result<std::string> Store::Get(const std::string& digest) const {
  const Path file = FileOf(digest);
  ASSAY_TRY(std::string bytes, ReadFile(file, 1ull << 30));
  if (Sha256Hex(bytes) == digest) return bytes;
  return Fail(ErrorKind::kMalformedInput, "the blob is not what its name says", file.string(),
              "remove it: what needs it makes it again");
}

bool Store::Has(const std::string& digest) const {
  std::error_code error;
  return std::filesystem::is_regular_file(FileOf(digest), error);
}

Status Store::PutRecord(const std::string& key, std::string_view kind,
                        std::string_view text) const {
  const Path file = RecordFile(key, kind);
  ASSAY_TRY_VOID(MakeFolders(file.parent_path()));
  const Path fresh = file.parent_path() / FreshName();
  Status status = WriteFresh(fresh, text);
  if (status && ::rename(fresh.c_str(), file.c_str()) != 0)
    status = SystemError("cannot rename", file);
  if (!status) ::unlink(fresh.c_str());
  ASSAY_TRY_VOID(std::move(status));
  return SyncFolder(file.parent_path());
}

std::optional<std::string> Store::GetRecord(const std::string& key, std::string_view kind) const {
  Result<std::string> text = ReadFile(RecordFile(key, kind));
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

std::vector<std::string> Store::Records(std::string_view kind) const {
  const std::string suffix = "." + std::string(kind) + ".json";
  std::vector<std::string> keys;
  for (const Path& shelf : Shelves(root_)) {
    for (const Path& file : Entries(shelf)) {
      const std::string name = file.filename().string();
      if (!name.ends_with(suffix)) continue;
      const std::string key =
          shelf.filename().string() + name.substr(0, name.size() - suffix.size());
      if (IsDigest(key)) keys.push_back(key);
    }
  }
  return keys;
}

Status Store::Refer(const std::string& run, const std::vector<std::string>& digests) const {
  const Path refs = root_ / "refs";
  ASSAY_TRY_VOID(MakeFolders(refs));
  const Json json = {{"schema", kRefsSchema}, {"run", run}, {"digests", digests}};
  const Path file = refs / (Sha256Hex(run) + ".json");
  const Path fresh = refs / FreshName();
  Status status = WriteFresh(fresh, PrettyJson(json));
  if (status && ::rename(fresh.c_str(), file.c_str()) != 0)
    status = SystemError("cannot rename", file);
  if (!status) ::unlink(fresh.c_str());
  ASSAY_TRY_VOID(std::move(status));
  return SyncFolder(refs);
}

Status Store::Release(const std::string& run) const {
  const Path file = root_ / "refs" / (Sha256Hex(run) + ".json");
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) return SystemError("cannot remove", file);
  return {};
}

Result<Store::Collected> Store::Collect(std::filesystem::file_time_type now,
                                        std::chrono::seconds grace, Collection how) const {
  const bool remove = how == Collection::kRemove;
  ASSAY_TRY(const std::set<std::string> needed, Needed(root_ / "refs"));
  const auto before = now - grace;
  Collected collected;
  for (const Path& shelf : Shelves(root_)) {
    for (const Path& file : Entries(shelf)) {
      const std::string name = file.filename().string();
      const auto changed = ChangedAt(file);
      if (!changed) continue;
      if (name.starts_with(kTemporary)) {
        if (remove && *changed < before) ::unlink(file.c_str());
        continue;
      }
      const std::string digest = shelf.filename().string() + name;
      if (!IsDigest(digest)) continue;
      std::error_code error;
      const std::uintmax_t bytes = std::filesystem::file_size(file, error);
      const bool garbage = !needed.contains(digest) && *changed < before;
      if (garbage && (!remove || Remove(file, before))) {
        ++collected.removed;
        collected.bytes += error ? 0 : bytes;
      } else {
        ++collected.kept;
      }
    }
  }
  return collected;
}

}  // namespace assay::runs

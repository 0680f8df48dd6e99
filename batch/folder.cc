#include "batch/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace assay::batch {
namespace {

constexpr const char* kEvents = "events.jsonl";
constexpr std::uintmax_t kMaxLogBytes = 4ull << 30;

std::unexpected<Error> SystemError(const std::string& what, const Path& path) {
  return Fail(ErrorKind::kEnvironment, what + ": " + std::strerror(errno), path.string(),
              "check that the folder is writable and has room");
}

struct Log {
  std::vector<StampedEvent> events;
  std::size_t intact_bytes = 0;
};

Result<Log> ReadLog(const Path& path) {
  ASSAY_TRY(const std::string text, ReadFile(path, kMaxLogBytes));
  Log log;
  while (log.intact_bytes < text.size()) {
    const std::size_t end = text.find('\n', log.intact_bytes);
    if (end == std::string::npos) break;
    const std::string place = path.string() + ":" + std::to_string(log.events.size() + 1);
    const Result<Json> json =
        ParseJson(std::string_view(text).substr(log.intact_bytes, end - log.intact_bytes), place);
    // After a power cut the tail may be there in length but not in content.
    if (!json && end + 1 == text.size()) break;
    if (!json) return std::unexpected(json.error());
    ASSAY_TRY(StampedEvent event, EventFromJson(*json, place));
    if (event.number != log.events.size()) {
      return Fail(ErrorKind::kMalformedInput, "events are missing or out of order", place,
                  "restore the file from a copy");
    }
    log.events.push_back(std::move(event));
    log.intact_bytes = end + 1;
  }
  return log;
}

Status HasBegun(const Log& log, const Path& path) {
  if (!log.events.empty()) return {};
  return Fail(ErrorKind::kUsage, "the batch had not begun when it ended", path.string(),
              "start it anew");
}

// What a batch asks for is derived; where a crash came between, it is written again.
Status Project(const Event& event, const Path& path) {
  const auto* const started = std::get_if<BatchStarted>(&event);
  const auto* const resumed = std::get_if<BatchResumed>(&event);
  if (started == nullptr && resumed == nullptr) return {};
  return WriteFileAtomically(path / "batch.json",
                             PrettyJson(started != nullptr ? started->batch : resumed->batch));
}

}  // namespace

BatchFolder::BatchFolder(Path path, Clock& clock)
    : path_(std::move(path)), clock_(clock), began_(clock.Now()) {}

Status BatchFolder::Lock() {
  const Path file = path_ / kEvents;
  log_ = UniqueFd(::open(file.c_str(),
                         O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!log_) return SystemError("cannot open for appending", file);
  if (::flock(log_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  return Fail(ErrorKind::kUsage, "another process works on this batch", path_.string(),
              "wait for it, or end it");
}

Result<std::unique_ptr<BatchFolder>> BatchFolder::Create(const Path& path, Clock& clock) {
  std::error_code error;
  // A log without a whole line is of a process that ended while it wrote the first.
  const Result<std::string> log = ReadFile(path / kEvents, kMaxLogBytes);
  if (std::filesystem::exists(path / kEvents, error) &&
      (!log || log->find('\n') != std::string::npos)) {
    return Fail(ErrorKind::kUsage, "the folder holds a batch already", path.string(),
                "continue it with --resume " + path.string() + ", or name another with --out");
  }
  ASSAY_TRY_VOID(MakeFolders(path / "runs"));
  std::unique_ptr<BatchFolder> folder(new BatchFolder(path, clock));
  ASSAY_TRY_VOID(folder->Lock());
  if (::ftruncate(folder->log_.get(), 0) != 0)
    return SystemError("cannot empty the log", path / kEvents);
  return folder;
}

Result<std::unique_ptr<BatchFolder>> BatchFolder::Open(const Path& path, Clock& clock) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path / kEvents, error))) {
    return Fail(ErrorKind::kUsage, "there is no batch in this folder: it has no events.jsonl",
                path.string(), "name the batch's folder, e.g. --resume batches/<id>");
  }
  std::unique_ptr<BatchFolder> folder(new BatchFolder(path, clock));
  ASSAY_TRY_VOID(folder->Lock());
  ASSAY_TRY(const Log log, ReadLog(path / kEvents));
  ASSAY_TRY_VOID(HasBegun(log, path));
  if (::ftruncate(folder->log_.get(), static_cast<off_t>(log.intact_bytes)) != 0)
    return SystemError("cannot cut off the torn last line", path / kEvents);
  for (const StampedEvent& event : log.events) {
    Apply(event, folder->state_);
    ASSAY_TRY_VOID(Project(event.event, path));
  }
  folder->next_number_ = log.events.size();
  return folder;
}

Result<std::vector<StampedEvent>> BatchFolder::ReadEvents(const Path& path) {
  ASSAY_TRY(Log log, ReadLog(path / kEvents));
  ASSAY_TRY_VOID(HasBegun(log, path));
  return std::move(log.events);
}

Result<BatchState> BatchFolder::Look(const Path& path) {
  ASSAY_TRY(const std::vector<StampedEvent> events, ReadEvents(path));
  BatchState state;
  for (const StampedEvent& event : events) Apply(event, state);
  return state;
}

Status BatchFolder::Record(Event event) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const std::lock_guard lock(mutex_);
  if (std::holds_alternative<BatchResumed>(event)) began_ = clock_.Now();
  const StampedEvent stamped{.number = next_number_,
                             .time = clock_.Timestamp(),
                             .milliseconds = static_cast<std::uint64_t>(
                                 duration_cast<milliseconds>(clock_.Now() - began_).count()),
                             .event = std::move(event)};
  const std::string line = CompactJson(ToJson(stamped)) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(log_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("cannot append", path_ / kEvents);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fdatasync(log_.get()) != 0) return SystemError("cannot sync", path_ / kEvents);
  ++next_number_;
  Apply(stamped, state_);
  return Project(stamped.event, path_);
}

BatchState BatchFolder::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace assay::batch

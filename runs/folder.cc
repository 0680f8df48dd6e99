#include "runs/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/limits.h"
#include "runs/extract.h"

namespace assay::runs {
namespace {

constexpr const char* kEvents = "events.jsonl";
constexpr std::uintmax_t kMaxLogBytes = 4ull << 30;

std::unexpected<Error> SystemError(const std::string& what, const Path& path,
                                   std::string_view cure = {}) {
  const int error = errno;
  return Fail(ErrorKind::kEnvironment, what + ": " + std::strerror(error), path.string(),
              CureOf(error, path.parent_path(), cure));
}

Status Append(int fd, std::string_view text, const Path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("cannot append", path, "make room");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// The events of a log, and the length of its intact part: a crash may have torn the last line.
struct Log {
  std::vector<StampedEvent> events;
  std::size_t intact_bytes = 0;
};

// Events above the damaged line are a run of their own, and their owner may be content with that.
std::unexpected<Error> Damaged(std::string what, const Path& path, std::size_t line) {
  return Fail(ErrorKind::kMalformedInput, std::move(what),
              path.string() + ":" + std::to_string(line),
              line == 1 ? "restore the file from a copy"
                        : fmt::format("restore the file from a copy, or keep its first {0} lines "
                                      "(head -n {0}): the run goes on from there",
                                      line - 1));
}

Result<Log> ReadLog(const Path& path) {
  ASSAY_TRY(const std::string text, ReadFile(path, kMaxLogBytes));
  Log log;
  std::size_t number = 0;
  while (log.intact_bytes < text.size()) {
    ++number;
    const std::size_t end = text.find('\n', log.intact_bytes);
    if (end == std::string::npos) break;
    const std::string place = path.string() + ":" + std::to_string(number);
    const std::string_view line =
        std::string_view(text).substr(log.intact_bytes, end - log.intact_bytes);
    const Result<Json> json = ParseJson(line, place);
    // After a power cut the tail may be there in length but not in content.
    if (!json && end + 1 == text.size()) break;
    if (!json) return Damaged(json.error().message, path, number);
    Result<StampedEvent> event = EventFromJson(*json, place);
    if (!event && !event.error().cure.empty()) return std::unexpected(std::move(event.error()));
    if (!event) {
      std::string_view at = event.error().place;
      if (at.starts_with(place)) at.remove_prefix(place.size());
      if (at.starts_with(": ")) at.remove_prefix(2);
      return Damaged(std::string(at) + " " + event.error().message, path, number);
    }
    if (event->number != log.events.size())
      return Damaged("events are missing or out of order", path, number);
    log.events.push_back(*std::move(event));
    log.intact_bytes = end + 1;
  }
  return log;
}

// Every event survives the death of the process. Those that were paid for, in money or in time,
// survive a power cut as well; what a strategy plans it plans again, and waiting for the disk is
// most of what an attempt costs us.
bool WorthSyncing(const Event& event) {
  return !std::holds_alternative<AttemptsPlanned>(event) &&
         !std::holds_alternative<TryFailed>(event);
}

// A run's folder may come from anybody, and what is derived is written again: a link in it would
// lead our writing elsewhere, a pipe would hang us.
Status OnlyFoldersAndFiles(const Path& path) {
  std::error_code error;
  for (auto entry = std::filesystem::recursive_directory_iterator(path, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    const std::filesystem::file_status status = entry->symlink_status(error);
    if (error) break;
    if (std::filesystem::is_regular_file(status) || std::filesystem::is_directory(status)) continue;
    return Fail(ErrorKind::kMalformedInput, "a run holds folders and files, no links or pipes",
                entry->path().string(), "remove it if it is yours; else do not trust this run");
  }
  if (error)
    return Fail(ErrorKind::kEnvironment, "cannot be listed: " + error.message(), path.string());
  return {};
}

Status HoldsRun(const Path& path) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path / kEvents, error))) {
    return Fail(ErrorKind::kUsage, "there is no run in this folder: it has no events.jsonl",
                path.string(), "name the run's folder, e.g. --resume runs/<id>");
  }
  return OnlyFoldersAndFiles(path);
}

}  // namespace

Status WriteDerived(const Path& path, std::string_view text) {
  const Path temporary = path.string() + ".tmp";
  {
    ::unlink(temporary.c_str());  // of a crash, or a link that somebody laid there
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return SystemError("cannot create", temporary, "check that the folder is writable");
    ASSAY_TRY_VOID(Append(fd.get(), text, temporary));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return SystemError("cannot rename", path);
  return {};
}

RunFolder::RunFolder(Path path, Clock& clock, std::string continuation)
    : path_(std::move(path)),
      clock_(&clock),
      continuation_(std::move(continuation)),
      began_(clock.Now()) {}

Status RunFolder::Lock() {
  const Path file = path_ / kEvents;
  log_ = UniqueFd(::open(file.c_str(),
                         O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!log_)
    return SystemError("cannot open for appending", file, "check that the folder is writable");
  if (::flock(log_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorKind::kUsage, "another process works on this run", path_.string(),
                "wait for it, or end it");
  }
  const Path transcript = path_ / "transcript.jsonl";
  ::unlink(transcript.c_str());
  transcript_ = UniqueFd(
      ::open(transcript.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!transcript_) return SystemError("cannot create", transcript);
  return {};
}

Result<RunFolder> RunFolder::Create(const Path& path, Clock& clock, std::string continuation) {
  std::error_code error;
  if (std::filesystem::exists(path / kEvents, error) &&
      std::filesystem::file_size(path / kEvents, error) > 0) {
    return Fail(
        ErrorKind::kUsage, "the folder holds a run already", path.string(),
        "continue it with --resume " + path.string() + ", or name another folder with --out");
  }
  ASSAY_TRY_VOID(MakeFolders(path / "attempts"));
  RunFolder run(path, clock, std::move(continuation));
  ASSAY_TRY_VOID(run.Lock());
  return run;
}

Result<RunFolder> RunFolder::Open(const Path& path, Clock& clock, std::string continuation) {
  ASSAY_TRY_VOID(HoldsRun(path));
  RunFolder run(path, clock, std::move(continuation));
  ASSAY_TRY_VOID(run.Lock());
  ASSAY_TRY(Log log, ReadLog(path / kEvents));
  if (log.events.empty()) {
    return Fail(ErrorKind::kUsage, "the run had not begun when it ended", path.string(),
                "start it anew");
  }
  if (::ftruncate(run.log_.get(), static_cast<off_t>(log.intact_bytes)) != 0) {
    return SystemError("cannot cut off the torn last line", path / kEvents);
  }
  ASSAY_TRY_VOID(MakeFolders(path / "attempts"));
  for (const StampedEvent& event : log.events) {
    ASSAY_TRY_VOID(Apply(event, run.state_));
    ASSAY_TRY_VOID(run.Project(event));
  }
  run.next_number_ = log.events.size();
  return run;
}

Result<std::vector<StampedEvent>> RunFolder::ReadEvents(const Path& path) {
  ASSAY_TRY_VOID(HoldsRun(path));
  ASSAY_TRY(Log log, ReadLog(path / kEvents));
  if (log.events.empty()) {
    return Fail(ErrorKind::kUsage, "the run had not begun when it ended", path.string(),
                "start it anew");
  }
  return std::move(log.events);
}

Result<Json> RunFolder::ReadRequest(const Path& path) {
  ASSAY_TRY(const std::vector<StampedEvent> events, ReadEvents(path));
  RunState state;
  for (const StampedEvent& event : events) ASSAY_TRY_VOID(Apply(event, state));
  return state.request;
}

Status RunFolder::Record(Event event) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  StampedEvent stamped{.number = next_number_,
                       .time = clock_->Timestamp(),
                       .milliseconds = static_cast<std::uint64_t>(
                           duration_cast<milliseconds>(clock_->Now() - began_).count()),
                       .event = std::move(event)};
  // A resumption begins a new session: time is counted from here.
  if (std::holds_alternative<RunResumed>(stamped.event)) {
    began_ = clock_->Now();
    stamped.milliseconds = 0;
  }
  ASSAY_TRY_VOID(Append(log_.get(), CompactJson(ToJson(stamped)) + "\n", path_ / kEvents));
  if (WorthSyncing(stamped.event) && ::fdatasync(log_.get()) != 0) {
    return SystemError("cannot sync", path_ / kEvents);
  }
  ++next_number_;
  ASSAY_TRY_VOID(Apply(stamped, state_));
  return Project(stamped);
}

Path RunFolder::AttemptFolder(int attempt) const {
  return path_ / "attempts" / std::to_string(attempt);
}

Status RunFolder::Transcribe(const std::string& line) {
  return Append(transcript_.get(), line + "\n", path_ / "transcript.jsonl");
}

Status RunFolder::Project(const StampedEvent& stamped) {
  if (const auto* started = std::get_if<RunStarted>(&stamped.event)) {
    ASSAY_TRY_VOID(WriteDerived(path_ / "run.json", PrettyJson(started->request)));
    const auto text = [&](const char* key) {
      const auto found = started->request.find(key);
      return found != started->request.end() && found->is_string() ? found->get<std::string>()
                                                                   : std::string();
    };
    const auto settings = started->request.find("settings");
    TranscriptHeader header;
    header.instance = text("instance");
    header.model = text("model");
    if (settings != started->request.end()) header.settings = *settings;
    return Transcribe(writer_.Header(header));
  }
  if (const auto* resumed = std::get_if<RunResumed>(&stamped.event)) {
    return WriteDerived(path_ / "run.json", PrettyJson(resumed->request));
  }
  if (const auto* planned = std::get_if<AttemptsPlanned>(&stamped.event)) {
    for (const PlannedAttempt& attempt : planned->attempts) {
      const Path folder = AttemptFolder(attempt.attempt);
      ASSAY_TRY_VOID(MakeFolders(folder));
      ASSAY_TRY_VOID(WriteDerived(folder / "prompt.md", ConversationAsText({attempt.messages})));
    }
    return {};
  }
  if (const auto* received = std::get_if<ReplyReceived>(&stamped.event)) {
    // The request as it was: the attempt before this reply.
    Attempt before = *state_.Find(received->attempt);
    before.replies.pop_back();
    Exchange exchange;
    exchange.name = RequestName(received->attempt, before.replies.size() + 1);
    exchange.conversation = ConversationFor(state_, before, continuation_);
    exchange.digest = DigestOf(exchange.conversation);
    exchange.reply = received->reply;
    ASSAY_TRY_VOID(Transcribe(writer_.Line(exchange)));
    return ProjectReply(received->attempt);
  }
  if (const auto* judged = std::get_if<AttemptJudged>(&stamped.event))
    return ProjectVerdict(*judged);
  return {};
}

Status RunFolder::ProjectReply(int number) {
  const Path folder = AttemptFolder(number);
  const ModelReply reply = state_.Find(number)->JoinedReply();
  ASSAY_TRY_VOID(WriteDerived(folder / "reply.md", reply.text));
  if (!reply.reasoning.empty())
    ASSAY_TRY_VOID(WriteDerived(folder / "reasoning.md", reply.reasoning));
  if (!state_.Find(number)->answered) return {};
  const auto candidate = ExtractCandidate(reply);
  if (!candidate) return {};
  ASSAY_TRY_VOID(WriteDerived(folder / "kernel.cu", candidate->kernel));
  return WriteDerived(folder / "launch.json", candidate->launch);
}

Status RunFolder::ProjectVerdict(const AttemptJudged& event) {
  const Path folder = AttemptFolder(event.attempt);
  ASSAY_TRY_VOID(WriteDerived(folder / "verdict.json", PrettyJson(verdict::ToJson(event.verdict))));
  std::size_t number = 0;
  for (const verdict::Counterexample* const counterexample : event.verdict.Counterexamples()) {
    ++number;
    const std::string name =
        number == 1 ? "counterexample.json" : "counterexample-" + std::to_string(number) + ".json";
    ASSAY_TRY_VOID(WriteDerived(folder / name, PrettyJson(verdict::ToJson(*counterexample))));
  }
  return Transcribe(writer_.Judged(event.attempt, event.holdout_seeds));
}

}  // namespace assay::runs

#include "runs/inventory.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>

#include "runs/folder.h"

namespace assay::runs {
namespace {

namespace fs = std::filesystem;

UniqueFd OpenLog(const Path& folder, int mode) {
  return UniqueFd(
      ::open((folder / "events.jsonl").c_str(), mode | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

bool IsRun(const Path& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(folder / "events.jsonl", error));
}

bool HoldsVetted(const Path& folder) {
  std::error_code error;
  const Path vetted = folder / "vetted";
  if (!fs::exists(fs::symlink_status(vetted, error))) return false;
  const bool empty = fs::is_empty(vetted, error);
  // What cannot be looked into may be a kernel.
  return error || !empty;
}

std::uintmax_t BytesOf(const Path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (auto walk = fs::recursive_directory_iterator(folder, error);
       !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    std::error_code ignored;
    if (fs::is_regular_file(walk->symlink_status(ignored))) {
      const std::uintmax_t size = walk->file_size(ignored);
      if (!ignored) bytes += size;
    }
  }
  return bytes;
}

std::string TextAt(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<RunState> StateOf(const std::vector<StampedEvent>& events) {
  RunState state;
  for (const StampedEvent& event : events) ASSAY_TRY_VOID(Apply(event, state));
  return state;
}

RunEntry EntryOf(const Path& folder) {
  RunEntry entry{.folder = folder};
  std::error_code error;
  entry.bytes = BytesOf(folder);
  entry.last = fs::last_write_time(folder / "events.jsonl", error);
  entry.vetted = HoldsVetted(folder);
  const UniqueFd log = OpenLog(folder, O_RDONLY);
  entry.locked = log && ::flock(log.get(), LOCK_EX | LOCK_NB) != 0;
  const auto events = RunFolder::ReadEvents(folder);
  const auto state = events ? StateOf(*events) : std::unexpected(events.error());
  if (!state) {
    entry.unreadable = state.error().message;
    entry.state = "unreadable";
    return entry;
  }
  entry.instance = TextAt(state->request, "instance");
  entry.model = TextAt(state->request, "model");
  entry.began = events->front().time;
  entry.attempts = static_cast<int>(state->attempts.size());
  entry.judged = state->JudgedCount();
  entry.vetted = entry.vetted || std::ranges::any_of(state->attempts, [](const Attempt& attempt) {
                   return !attempt.vetted.empty();
                 });
  entry.state = entry.locked     ? "running"
                : state->stopped ? std::string(verdict::Name(state->stopped->outcome))
                                 : "interrupted";
  return entry;
}

// Why a run stays whatever the policy says; empty where it may go.
std::string WhyKept(const RunEntry& run) {
  if (run.vetted) return "holds a vetted kernel";
  if (run.locked) return "a process works on it";
  if (!run.unreadable.empty()) return "cannot be read: " + run.unreadable;
  return {};
}

}  // namespace

Result<std::vector<RunEntry>> ListRuns(const Path& folder) {
  if (IsRun(folder)) return std::vector<RunEntry>{EntryOf(folder)};
  std::error_code error;
  std::vector<Path> found;
  auto walk = fs::recursive_directory_iterator(folder, error);
  if (error) {
    return Fail(ErrorKind::kUsage, "cannot be read: " + error.message(), folder.string(),
                "name a folder of runs, or a run's");
  }
  for (; walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    if (error) break;
    if (!fs::is_directory(walk->symlink_status(error)) || !IsRun(walk->path())) continue;
    // A batch keeps events as well; its runs lie below.
    if (fs::exists(walk->path() / "batch.json", error)) continue;
    walk.disable_recursion_pending();
    found.push_back(walk->path());
  }
  std::ranges::sort(found);
  std::vector<RunEntry> runs;
  for (const Path& each : found) runs.push_back(EntryOf(each));
  return runs;
}

std::vector<CleaningStep> PlanCleaning(std::vector<RunEntry> runs, const CleaningPolicy& policy,
                                       fs::file_time_type now) {
  std::vector<CleaningStep> steps;
  std::uintmax_t left = 0;
  for (RunEntry& run : runs) {
    CleaningStep step{.run = std::move(run)};
    step.why = WhyKept(step.run);
    if (step.why.empty() && policy.older_than && now - step.run.last > *policy.older_than) {
      step.remove = true;
      step.why = "older than asked for";
    }
    if (!step.remove) left += step.run.bytes;
    steps.push_back(std::move(step));
  }
  std::vector<CleaningStep*> oldest;
  for (CleaningStep& step : steps) oldest.push_back(&step);
  std::ranges::stable_sort(oldest, {}, [](const CleaningStep* step) { return step->run.last; });
  for (CleaningStep* const step : oldest) {
    if (!policy.keep_bytes || left <= *policy.keep_bytes) break;
    if (step->remove || !step->why.empty()) continue;
    step->remove = true;
    step->why = "the oldest, and more is kept than asked for";
    left -= step->run.bytes;
  }
  for (CleaningStep& step : steps) {
    if (!step.remove && step.why.empty()) step.why = "within the limits";
  }
  return steps;
}

Status RemoveRun(const Path& named) {
  // "link/" would be what the link leads to.
  const Path folder = named.has_filename() ? named : named.parent_path();
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error)) || !IsRun(folder))
    return Fail(ErrorKind::kUsage, "is no run's folder", folder.string());
  const UniqueFd log = OpenLog(folder, O_RDWR);
  if (!log || ::flock(log.get(), LOCK_EX | LOCK_NB) != 0)
    return Fail(ErrorKind::kUsage, "a process works on this run", folder.string());
  RunEntry entry{.folder = folder, .vetted = HoldsVetted(folder)};
  if (const auto events = RunFolder::ReadEvents(folder); !events) {
    entry.unreadable = events.error().message;
  } else if (const auto state = StateOf(*events); !state) {
    entry.unreadable = state.error().message;
  } else {
    entry.vetted = entry.vetted || std::ranges::any_of(state->attempts, [](const Attempt& attempt) {
                     return !attempt.vetted.empty();
                   });
  }
  if (const std::string why = WhyKept(entry); !why.empty())
    return Fail(ErrorKind::kUsage, "is kept: " + why, folder.string());
  // The log goes last: killed in between, what is left is a run still.
  for (const auto& inside : fs::directory_iterator(folder, error)) {
    if (inside.path().filename() != "events.jsonl") fs::remove_all(inside.path(), error);
    if (error) break;
  }
  if (!error) fs::remove_all(folder, error);
  if (error)
    return Fail(ErrorKind::kEnvironment, "cannot be removed: " + error.message(), folder.string(),
                "check its permissions");
  return {};
}

}  // namespace assay::runs

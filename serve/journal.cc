#include "serve/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/limits.h"

namespace assay::serve {
namespace {

constexpr std::string_view kSchema = "assay.serve_journal/1";
constexpr std::uintmax_t kMaxBytes = 4ull << 30;
constexpr std::uint64_t kGrown = 32u << 20;

std::unexpected<Error> SystemError(const std::string& what, const Path& path) {
  const int error = errno;
  return Fail(ErrorKind::kEnvironment, what + ": " + std::strerror(error), path.string(),
              CureOf(error, path.parent_path(), "check free space and permissions"));
}

Json ToJson(const Job& job) {
  return {{"number", job.number}, {"client", job.client}, {"key", job.key},
          {"group", job.group},   {"kind", job.kind},     {"request", job.request},
          {"digest", job.digest}};
}

Json EndOf(const Job& job) {
  return {{"event", "ended"},     {"number", job.number},     {"outcome", job.outcome},
          {"reason", job.reason}, {"document", job.document}, {"certificate", job.certificate}};
}

Json CancelOf(std::uint64_t number) { return {{"event", "cancelled"}, {"number", number}}; }

struct State {
  std::map<std::uint64_t, Job> jobs;
  std::uint64_t next = 1;
};

Result<Job> JobFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  Job job;
  ASSAY_TRY(job.number, reader.Required<std::uint64_t>("number"));
  ASSAY_TRY(job.client, reader.Required<std::string>("client"));
  ASSAY_TRY(job.key, reader.Required<std::string>("key"));
  ASSAY_TRY(job.group, reader.Required<std::uint64_t>("group"));
  ASSAY_TRY(job.kind, reader.Required<std::string>("kind"));
  ASSAY_TRY(job.request, reader.Required<std::string>("request"));
  ASSAY_TRY(job.digest, reader.Required<std::string>("digest"));
  ASSAY_TRY_VOID(reader.Finish());
  return job;
}

Status Apply(const Json& json, const std::string& place, State& state) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const std::string event, reader.Required<std::string>("event"));
  if (event == "began") {
    ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
    if (schema != kSchema) {
      return Fail(ErrorKind::kMalformedInput, "schema '" + schema + "' is not known", place,
                  "use the version of assay that wrote the file");
    }
    ASSAY_TRY(state.next, reader.Required<std::uint64_t>("next"));
    return reader.Finish();
  }
  if (event == "submitted") {
    ASSAY_TRY(const Json jobs, reader.Required<Json>("jobs"));
    for (const Json& one : jobs) {
      ASSAY_TRY(Job job, JobFromJson(one, place));
      state.next = std::max(state.next, job.number + 1);
      state.jobs[job.number] = std::move(job);
    }
    return reader.Finish();
  }
  ASSAY_TRY(const auto number, reader.Required<std::uint64_t>("number"));
  const auto found = state.jobs.find(number);
  if (found == state.jobs.end() || found->second.Over())
    return Fail(ErrorKind::kMalformedInput, "no job was waiting for this", place);
  Job& job = found->second;
  if (event == "cancelled") {
    job.state = Job::State::kCancelled;
  } else if (event == "ended") {
    ASSAY_TRY(job.outcome, reader.Required<std::string>("outcome"));
    ASSAY_TRY(job.reason, reader.Required<std::string>("reason"));
    ASSAY_TRY(job.document, reader.Required<std::string>("document"));
    ASSAY_TRY(job.certificate, reader.Required<std::string>("certificate"));
    job.state = Job::State::kEnded;
  } else {
    return Fail(ErrorKind::kMalformedInput, "no event is called '" + event + "'", place);
  }
  job.request.clear();
  return reader.Finish();
}

Result<State> Read(const Path& file) {
  State state;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return state;
  ASSAY_TRY(const std::string text, ReadFile(file, kMaxBytes));
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++number;
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;  // torn: acknowledged to nobody
    const std::string place = file.string() + ":" + std::to_string(number);
    const Result<Json> json = ParseJson(std::string_view(text).substr(at, end - at), place);
    // After a power cut the tail may be there in length but not in content.
    if (!json && end + 1 == text.size()) break;
    Status applied = json ? Apply(*json, place, state) : Status(std::unexpected(json.error()));
    if (!applied) {
      applied.error().cure = "restore the file from a copy, or keep the lines above (head -n " +
                             std::to_string(number - 1) + ")";
      return std::unexpected(std::move(applied.error()));
    }
    at = end + 1;
  }
  return state;
}

}  // namespace

Result<Journal::Opened> Journal::Open(const Path& folder, std::size_t keep) {
  ASSAY_TRY_VOID(MakeFolders(folder));
  const Path file = folder / "journal.jsonl";
  UniqueFd lock(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return SystemError("cannot open", folder / "lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorKind::kUsage, "another process serves from this folder", folder.string(),
                "stop it, or name another folder with --state");
  }
  ASSAY_TRY(State state, Read(file));
  std::vector<const Job*> known;
  for (const auto& [number, job] : state.jobs) known.push_back(&job);
  std::vector<std::uint64_t> forgotten = TooOld(known, keep);
  for (const std::uint64_t number : forgotten) state.jobs.erase(number);
  known.clear();
  for (const auto& [number, job] : state.jobs) known.push_back(&job);
  Journal journal(file, std::move(lock));
  ASSAY_TRY_VOID(journal.Rewrite(known, state.next));
  std::vector<Job> jobs;
  for (auto& [number, job] : state.jobs) jobs.push_back(std::move(job));
  return Opened{.journal = std::move(journal),
                .jobs = std::move(jobs),
                .forgotten = std::move(forgotten),
                .next = state.next};
}

Status Journal::Rewrite(std::span<const Job* const> jobs, std::uint64_t next) {
  std::string text = CompactJson({{"event", "began"}, {"schema", kSchema}, {"next", next}}) + "\n";
  for (const Job* const job : jobs) {
    text += CompactJson({{"event", "submitted"}, {"jobs", Json::array({ToJson(*job)})}}) + "\n";
    if (job->state == Job::State::kEnded) text += CompactJson(EndOf(*job)) + "\n";
    if (job->state == Job::State::kCancelled) text += CompactJson(CancelOf(job->number)) + "\n";
  }
  ASSAY_TRY_VOID(WriteFileAtomically(file_, text));
  // From here on the old file is nobody's: without the new one nothing can be recorded.
  fd_.Reset(::open(file_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) return SystemError("cannot open for appending", file_);
  length_ = text.size();
  grown_ = kGrown + 2 * text.size();
  const Path folder = file_.parent_path();
  const UniqueFd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return SystemError("cannot sync", folder);
  return {};
}

Status Journal::Append(const Json& event) {
  const std::string line = CompactJson(event) + "\n";
  const auto write = [&]() -> Status {
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return SystemError("cannot append", file_);
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fdatasync(fd_.get()) != 0) return SystemError("cannot sync", file_);
    return {};
  };
  Status written = write();
  if (written) {
    length_ += line.size();
    return {};
  }
  // What was refused is not half there: the next line would be glued to it.
  if (::ftruncate(fd_.get(), static_cast<off_t>(length_)) != 0) fd_.Reset();
  return written;
}

Status Journal::Submitted(std::span<const Job> jobs) {
  Json list = Json::array();
  for (const Job& job : jobs) list.push_back(ToJson(job));
  return Append({{"event", "submitted"}, {"jobs", std::move(list)}});
}

Status Journal::Ended(const Job& job) { return Append(EndOf(job)); }

Status Journal::Cancelled(std::uint64_t number) { return Append(CancelOf(number)); }

std::vector<std::uint64_t> TooOld(std::span<const Job* const> jobs, std::size_t keep) {
  auto over = static_cast<std::size_t>(
      std::ranges::count_if(jobs, [](const Job* job) { return job->Over(); }));
  std::vector<std::uint64_t> old;
  for (auto at = jobs.begin(); at != jobs.end() && over > keep;) {
    const std::uint64_t group = (*at)->group;
    auto end = std::next(at);
    while (group != 0 && end != jobs.end() && (*end)->group == group) ++end;
    if (std::all_of(at, end, [](const Job* job) { return job->Over(); })) {
      over -= static_cast<std::size_t>(end - at);
      for (auto one = at; one != end; ++one) old.push_back((*one)->number);
    }
    at = end;
  }
  return old;
}

}  // namespace assay::serve

#include "serve/desk.h"

#include <algorithm>

#include "base/digest.h"
#include "base/text.h"
#include "runs/emit.h"

namespace assay::serve {
namespace {

constexpr std::size_t kMostEvents = 64;
constexpr std::size_t kEventsKept = 8;  // of a job that is over

Json StateOf(const Job& job) { return {{"state", Name(job.state)}}; }
Json EndOf(const Job& job) { return {{"outcome", job.outcome}, {"reason", job.reason}}; }

}  // namespace

Result<std::unique_ptr<Desk>> Desk::Open(const Path& folder, const DeskOptions& options,
                                         JudgeFunction judge) {
  ASSAY_TRY(Journal::Opened opened, Journal::Open(folder, options.keep));
  ASSAY_TRY_VOID(MakeFolders(folder / "jobs"));
  ASSAY_TRY_VOID(MakeFolders(folder / "vetted"));
  std::unique_ptr<Desk> desk(new Desk(folder, options, std::move(judge), std::move(opened)));
  for (const auto& [number, live] : desk->jobs_) {
    // Killed between the record and the move: the folder is moved now.
    const Path vetted = desk->VettedOf(number);
    std::error_code error;
    if (!live->job.certificate.empty() && std::filesystem::exists(vetted.string() + ".new", error))
      ASSAY_TRY_VOID(runs::Publish(vetted, live->job.certificate));
  }
  const auto work = [raw = desk.get()](FairQueue& queue) {
    const auto thread = static_cast<unsigned>(raw->threads_.size());
    raw->threads_.emplace_back([raw, thread, &queue] { raw->Work(thread, queue); });
  };
  for (unsigned i = 0; i < options.judges; ++i) work(desk->queue_);
  for (unsigned i = 0; i < options.generations; ++i) work(desk->generations_);
  return desk;
}

Desk::Desk(Path folder, const DeskOptions& options, JudgeFunction judge, Journal::Opened opened)
    : folder_(std::move(folder)),
      options_(options),
      judge_(std::move(judge)),
      journal_(std::move(opened.journal)),
      next_(opened.next) {
  for (const std::uint64_t number : opened.forgotten) RemoveFilesOf(number);
  for (Job& job : opened.jobs) Take(std::move(job));
}

Desk::Live& Desk::Take(Job job) {
  if (!job.key.empty()) keys_[{job.client, job.key}] = job.number;
  if (!job.Over()) {
    QueueOf(job).Push(job.client, job.number);
    Waiting& waiting = waiting_[job.client];
    ++waiting.jobs;
    waiting.bytes += job.request.size();
    bytes_ += job.request.size();
  }
  const std::uint64_t number = job.number;
  next_ = std::max(next_, number + 1);
  return *(jobs_[number] = std::make_shared<Live>(Live{.job = std::move(job)}));
}

void Desk::RemoveFilesOf(std::uint64_t number) const {
  std::error_code error;
  std::filesystem::remove(FileOf(number), error);
  std::filesystem::remove_all(VettedOf(number), error);
  std::filesystem::remove_all(RunOf(number), error);
}

Desk::~Desk() {
  Stop();
  for (std::thread& thread : threads_) thread.join();
}

void Desk::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [number, live] : jobs_) {
      if (live->job.state == Job::State::kRunning) live->stop.request_stop();
    }
  }
  changed_.notify_all();
}

std::string Desk::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

Path Desk::FileOf(std::uint64_t number) const {
  return folder_ / "jobs" / (std::to_string(number) + ".json");
}

Path Desk::VettedOf(std::uint64_t number) const {
  return folder_ / "vetted" / std::to_string(number);
}

Path Desk::RunOf(std::uint64_t number) const { return folder_ / "runs" / std::to_string(number); }

std::shared_ptr<Desk::Live> Desk::At(const std::string& client, std::uint64_t number) const {
  const auto found = jobs_.find(number);
  return found == jobs_.end() || found->second->job.client != client ? nullptr : found->second;
}

void Desk::Tell(Live& live, std::string name, Json data) {
  // Whoever reads slowly misses progress, never the end: that is told from the state.
  if (live.events.size() >= kMostEvents) live.events.pop_front();
  live.events.push_back({++live.told, std::move(name), std::move(data)});
  changed_.notify_all();
}

void Desk::Close(Live& live, Json end) {
  Waiting& waiting = waiting_[live.job.client];
  --waiting.jobs;
  waiting.bytes -= live.job.request.size();
  bytes_ -= live.job.request.size();
  if (waiting.jobs == 0) waiting_.erase(live.job.client);
  live.job.request = {};
  while (live.events.size() >= kEventsKept) live.events.pop_front();
  Tell(live, "ended", std::move(end));
  Tidy();
}

// In the journal stands what was asked, for ever; here stands what is over. Neither may grow without end.
void Desk::Tidy() {
  if (!journal_.Grown()) return;
  std::vector<const Job*> known;
  for (const auto& [number, live] : jobs_) known.push_back(&live->job);
  const std::vector<std::uint64_t> old = TooOld(known, options_.keep);
  std::erase_if(known,
                [&](const Job* job) { return std::ranges::binary_search(old, job->number); });
  // What could not be written is there as it was; whether more can be is seen at the next event.
  if (!journal_.Rewrite(known, next_)) return;
  for (const std::uint64_t number : old) {
    const Job& job = jobs_.at(number)->job;
    if (!job.key.empty()) keys_.erase({job.client, job.key});
    RemoveFilesOf(number);
    jobs_.erase(number);
  }
}

void Desk::Break(const Error& error) {
  fault_ = ToString(error);
  changed_.notify_all();
}

Result<std::vector<Job>> Desk::Submit(const std::string& client, std::vector<Asked> asked) {
  const std::lock_guard lock(mutex_);
  if (!fault_.empty()) return Fail(ErrorKind::kEnvironment, "the service cannot write: " + fault_);
  if (stopping_) return Fail(ErrorKind::kEnvironment, "the service is ending", "", "ask again");
  if (asked.empty() || asked.size() > options_.together) {
    return Fail(ErrorKind::kUsage,
                "one submission holds 1 to " + std::to_string(options_.together) + " candidates");
  }
  std::vector<Job> jobs;
  std::vector<Job> fresh;
  std::set<std::string> own;
  for (Asked& one : asked) {
    Job job{.number = next_ + fresh.size(),
            .client = client,
            .key = std::move(one.key),
            .kind = std::move(one.kind),
            .request = std::move(one.request),
            .digest = {}};
    job.digest = Sha256Hex(job.kind + "\n" + job.request);
    const auto known = job.key.empty() ? keys_.end() : keys_.find({client, job.key});
    if (known != keys_.end()) {
      jobs.push_back(jobs_.at(known->second)->job);
      if (jobs.back().digest != job.digest) {
        return Fail(ErrorKind::kUsage, "the key '" + job.key + "' stands for another candidate", "",
                    "choose a key of its own for each");
      }
      continue;
    }
    if (!job.key.empty() && !own.insert(job.key).second)
      return Fail(ErrorKind::kUsage, "the key '" + job.key + "' stands for two candidates");
    fresh.push_back(job);
    jobs.push_back(std::move(job));
  }
  const auto counted = waiting_.find(client);
  const Waiting waiting = counted == waiting_.end() ? Waiting() : counted->second;
  if (waiting.jobs + fresh.size() > options_.waiting) {
    return Fail(ErrorKind::kLimit,
                "you have " + std::to_string(waiting.jobs) + " jobs waiting; at most " +
                    std::to_string(options_.waiting) + " may be",
                "", "wait for some of them to end");
  }
  std::size_t bytes = 0;
  for (const Job& job : fresh) bytes += job.request.size();
  if (waiting.bytes + bytes > options_.waiting_bytes || bytes_ + bytes > options_.all_bytes) {
    return Fail(ErrorKind::kLimit, "what waits to be judged is too large together", "",
                "wait for some jobs to end");
  }
  if (fresh.empty()) return jobs;
  if (asked.size() > 1) {
    if (fresh.size() < jobs.size()) {
      return Fail(ErrorKind::kUsage, "some of these candidates were submitted before, and some not",
                  "", "submit a batch again as it was, or the new ones by themselves");
    }
    for (Job& job : fresh) job.group = fresh.front().number;
    jobs = fresh;
  }
  if (const Status written = journal_.Submitted(fresh); !written)
    return std::unexpected(written.error());
  for (Job& job : fresh) {
    Live& live = Take(std::move(job));
    Tell(live, "state", StateOf(live.job));
  }
  changed_.notify_all();
  return jobs;
}

std::optional<Job> Desk::Find(const std::string& client, std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Live> live = At(client, number);
  return live == nullptr ? std::nullopt : std::optional(live->job);
}

std::vector<Job> Desk::Group(const std::string& client, std::uint64_t group) const {
  const std::lock_guard lock(mutex_);
  std::vector<Job> jobs;
  if (group == 0) return jobs;  // of those that are in none
  for (auto at = jobs_.lower_bound(group); at != jobs_.end(); ++at) {
    const Job& job = at->second->job;
    if (job.group != group) break;  // they were submitted in one
    if (job.client == client) jobs.push_back(job);
  }
  return jobs;
}

std::vector<Job> Desk::List(const std::string& client, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  std::vector<Job> jobs;
  for (auto at = jobs_.rbegin(); at != jobs_.rend() && jobs.size() < most; ++at) {
    if (at->second->job.client == client) jobs.push_back(at->second->job);
  }
  return jobs;
}

Result<std::string> Desk::Document(const std::string& client, std::uint64_t number) const {
  const std::optional<Job> job = Find(client, number);
  if (!job || job->state != Job::State::kEnded)
    return Fail(ErrorKind::kUsage, "there is no verdict of this job", std::to_string(number));
  ASSAY_TRY(std::string text, ReadFile(FileOf(number)));
  if (Sha256Hex(text) != job->document) {
    return Fail(ErrorKind::kEnvironment, "the verdict is not the one that was recorded",
                FileOf(number).string(), "restore the folder from a copy");
  }
  return text;
}

std::optional<Path> Desk::Vetted(const std::string& client, std::uint64_t number) const {
  const std::optional<Job> job = Find(client, number);
  if (!job || job->certificate.empty()) return std::nullopt;
  return VettedOf(number);
}

Result<bool> Desk::Cancel(const std::string& client, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Live> found = At(client, number);
  if (found == nullptr)
    return Fail(ErrorKind::kUsage, "there is no such job", std::to_string(number));
  Live& live = *found;
  if (live.job.Over()) return false;
  ASSAY_TRY_VOID(journal_.Cancelled(number));
  QueueOf(live.job).Remove(client, number);
  live.stop.request_stop();
  live.job.state = Job::State::kCancelled;
  Close(live, {{"outcome", "cancelled"}, {"reason", "cancelled by the client"}});
  return true;
}

Desk::News Desk::Wait(const std::string& client, std::uint64_t number, std::uint64_t seen,
                      std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Live> live = At(client, number);
  if (live == nullptr) return {.events = {}, .over = true};
  if (seen > live->told) seen = 0;  // counted by an earlier process
  changed_.wait_for(lock, most, [&] { return stopping_ || live->told > seen || live->job.Over(); });
  News news{.events = {}, .over = live->job.Over() || stopping_};
  for (const Event& event : live->events) {
    if (event.number > seen) news.events.push_back(event);
  }
  // Of a job that was over before this process began there are no events.
  if (live->job.Over() && live->told == 0)
    news.events.push_back({1, "ended",
                           live->job.state == Job::State::kCancelled
                               ? Json{{"outcome", "cancelled"}, {"reason", ""}}
                               : EndOf(live->job)});
  return news;
}

Answer Desk::Judge(Live& live, const Job& job, unsigned thread) {
  const Call call{.job = job,
                  .vetted = VettedOf(job.number),
                  .run = RunOf(job.number),
                  .progress =
                      [this, &live](const gates::Progress& progress) {
                        const std::lock_guard lock(mutex_);
                        Tell(live, "progress",
                             {{"gate", progress.gate},
                              {"detail", progress.detail},
                              {"fraction", progress.fraction}});
                      },
                  .tell =
                      [this, &live](std::string name, Json data) {
                        const std::lock_guard lock(mutex_);
                        Tell(live, std::move(name), std::move(data));
                      },
                  .stop = live.stop.get_token()};
  try {
    return judge_(call, thread);
  } catch (const std::exception& exception) {
    return {.outcome = "internal_error",
            .reason = std::string("the judge failed: ") + exception.what(),
            .document = {{"outcome", "internal_error"}},
            .certificate = {}};
  }
}

void Desk::End(Live& live, Answer answer) {
  Job ended = live.job;
  const std::string text = PrettyJson(answer.document);
  ended.state = Job::State::kEnded;
  ended.outcome = std::move(answer.outcome);
  ended.reason = ValidUtf8(answer.reason);
  ended.document = Sha256Hex(text);
  ended.certificate = std::move(answer.certificate);
  // In this order: what the record names is there before it, and is shown after it.
  Status written = WriteFileAtomically(FileOf(ended.number), text);
  if (written) written = journal_.Ended(ended);
  if (written && !ended.certificate.empty())
    written = runs::Publish(VettedOf(ended.number), ended.certificate);
  if (!written) return Break(written.error());
  live.job = std::move(ended);
  Close(live, serve::EndOf(live.job));
}

void Desk::Work(unsigned thread, FairQueue& queue) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (fault_.empty() && queue.size() > 0); });
    if (stopping_) return;
    const std::optional<std::uint64_t> number = queue.Pop();
    if (!number) continue;
    const std::shared_ptr<Live> held = jobs_.at(*number);
    Live& live = *held;
    live.job.state = Job::State::kRunning;
    Tell(live, "state", StateOf(live.job));
    const Job job = live.job;
    lock.unlock();
    Answer answer = Judge(live, job, thread);
    lock.lock();
    // Cancelled meanwhile: that has been said. Ending: the next start judges it.
    if (live.job.Over() || stopping_) continue;
    End(live, std::move(answer));
  }
}

}  // namespace assay::serve

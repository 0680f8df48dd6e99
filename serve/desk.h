// The desk: takes jobs, has them judged in fair turns, and never loses one.
//
//   ASSAY_TRY(auto desk, Desk::Open("state", options, judge));
//   ASSAY_TRY(const auto jobs, desk->Submit("ann", {{.kind = "check", .request = text}}));
//   const Desk::News news = desk->Wait("ann", jobs.front().number, 0, 10s);
//
// A job is in the journal before Submit returns it, and its document (the verdict) and its vetted
// kernel are on the disk before it is said to have ended. A job that was being judged when the
// process died is judged again; a job that has ended is not. So a client that names its job by a key
// of its own, and asks again until it is answered, gets one verdict.
//
// What judges is injected and runs on threads of the desk: some for jobs that judge, some for those
// that mostly wait for a model ("generate"), so that neither kind waits for the other. A client sees
// its own jobs alone. Where the journal can no longer be written the desk stops: nothing is
// acknowledged that could be lost.
//
// What is kept is bounded: jobs of a client that are not over, by number and by bytes, and jobs that
// are over, of which the oldest are forgotten as the journal grows.
//
//   <folder>/journal.jsonl  jobs/<number>.json  vetted/<number>/  runs/<number>/
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "serve/fair_queue.h"
#include "serve/journal.h"
#include "validator/gates/gatekeeper.h"

namespace assay::serve {

/// What a judge is asked. `progress` and `stop` live as long as the call.
struct Call {
  const Job& job;
  Path vetted;  ///< Where a vetted kernel is emitted to (runs::Emit); the desk publishes it.
  Path run;     ///< A folder of the job's own, which is there again when the job is begun again.
  std::function<void(const gates::Progress&)> progress;
  std::function<void(std::string name, Json data)> tell;  ///< An event of another kind.
  std::stop_token stop;                                   ///< Nobody waits for the answer any more.
};
struct Answer {
  std::string outcome;
  std::string reason;
  Json document;            ///< The verdict, or the reward.
  std::string certificate;  ///< Of what was emitted; empty: nothing was.
};
/// Called by several threads, `thread` from 0. What it throws is an internal error of this job.
using JudgeFunction = std::function<Answer(const Call& call, unsigned thread)>;

struct DeskOptions {
  unsigned judges = 1;
  unsigned generations = 1;               ///< Jobs of the kind "generate" at a time.
  std::size_t waiting = 256;              ///< Jobs of a client that are not over.
  std::size_t keep = 10'000;              ///< Jobs that are over.
  std::size_t together = 256;             ///< Of one submission.
  std::size_t waiting_bytes = 64u << 20;  ///< Of a client's requests that are not over,
  std::size_t all_bytes = 512u << 20;     ///< and of everybody's.
};

struct Asked {
  std::string kind;
  std::string request;
  std::string key = {};
};

class Desk {
 public:
  static Result<std::unique_ptr<Desk>> Open(const Path& folder, const DeskOptions& options,
                                            JudgeFunction judge);
  /// Jobs under way are left to the next start.
  ~Desk();

  /// Several are a group: all or none. Fails with kLimit where the client has too many, with kUsage
  /// where a key stands for another request.
  Result<std::vector<Job>> Submit(const std::string& client, std::vector<Asked> asked);
  std::optional<Job> Find(const std::string& client, std::uint64_t number) const;
  /// The jobs of a group, by number; empty where there is none.
  std::vector<Job> Group(const std::string& client, std::uint64_t group) const;
  /// The latest `most` of a client.
  std::vector<Job> List(const std::string& client, std::size_t most) const;
  /// The document of a job that has ended.
  Result<std::string> Document(const std::string& client, std::uint64_t number) const;
  /// Its vetted folder; nothing where there is none.
  std::optional<Path> Vetted(const std::string& client, std::uint64_t number) const;
  /// False where the job was over.
  Result<bool> Cancel(const std::string& client, std::uint64_t number);

  struct Event {
    std::uint64_t number = 0;  ///< From 1, of this job and process.
    std::string name;          ///< "state", "progress", "ended"
    Json data;
  };
  struct News {
    std::vector<Event> events;  ///< After `seen`; old ones may be gone.
    bool over = false;          ///< There will be no more.
  };
  /// Waits until something happens to the job, or for `most`.
  News Wait(const std::string& client, std::uint64_t number, std::uint64_t seen,
            std::chrono::milliseconds most) const;

  /// No answer will come any more; waits end.
  void Stop();
  /// Why nothing can be taken; empty: all is well.
  std::string fault() const;

 private:
  // Shared: whoever waits for a job or judges it keeps it, though it be forgotten meanwhile.
  struct Live {
    Job job;
    std::deque<Event> events = {};
    std::uint64_t told = 0;
    std::stop_source stop = {};
  };
  Desk(Path folder, const DeskOptions& options, JudgeFunction judge, Journal::Opened opened);
  void Work(unsigned thread, FairQueue& queue);
  Answer Judge(Live& live, const Job& job, unsigned thread);
  void End(Live& live, Answer answer);
  Live& Take(Job job);
  void Tell(Live& live, std::string name, Json data);
  /// A job is over: what it held is given back, and the end is told.
  void Close(Live& live, Json end);
  void Tidy();
  void RemoveFilesOf(std::uint64_t number) const;
  std::shared_ptr<Live> At(const std::string& client, std::uint64_t number) const;
  FairQueue& QueueOf(const Job& job) { return job.kind == "generate" ? generations_ : queue_; }
  Path FileOf(std::uint64_t number) const;
  Path VettedOf(std::uint64_t number) const;
  Path RunOf(std::uint64_t number) const;
  void Break(const Error& error);

  const Path folder_;
  const DeskOptions options_;
  const JudgeFunction judge_;
  Journal journal_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<Live>> jobs_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> keys_;
  struct Waiting {
    std::size_t jobs = 0;
    std::size_t bytes = 0;
  };
  std::map<std::string, Waiting> waiting_;
  std::size_t bytes_ = 0;  ///< Of all requests that are not over.
  FairQueue queue_;
  FairQueue generations_;
  std::uint64_t next_ = 1;
  bool stopping_ = false;
  std::string fault_;
  std::vector<std::thread> threads_;
};

}  // namespace assay::serve

// The service killed while clients use it: what was acknowledged is there, and ends once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <set>
#include <thread>

#include "base/text.h"
#include "runs/testing/fakes.h"
#include "serve/journal.h"

namespace assay::serve {
namespace {

constexpr int kClients = 16;
constexpr int kChecks = 200;

// A service that can be killed and begun again; clients wait for the next one.
class Killable {
 public:
  explicit Killable(Path folder) : folder_(std::move(folder)) {}
  ~Killable() { Kill(); }

  void Begin() {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string program = (Path(ASSAY_BINARY_DIR) / "bin" / "fake_service").string();
    std::string state = (folder_ / "state").string();
    std::string tokens = (folder_ / "tokens").string();
    std::string name = program;
    char* const argv[] = {name.data(), state.data(), tokens.data(), nullptr};
    ASSERT_EQ(::posix_spawn(&child_, program.c_str(), &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string line;
    for (char byte = 0; ::read(ends[0], &byte, 1) == 1 && byte != '\n';) line += byte;
    ::close(ends[0]);
    ASSERT_FALSE(line.empty()) << "the service did not begin";
    const std::lock_guard lock(mutex_);
    port_ = std::stoi(line);
    changed_.notify_all();
  }
  void Kill() {
    if (child_ <= 0) return;
    {
      const std::lock_guard lock(mutex_);
      port_ = 0;
    }
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  /// Of the service that runs; waits for one.
  int Port() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return port_ != 0; });
    return port_;
  }

 private:
  const Path folder_;
  pid_t child_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  int port_ = 0;
};

TEST(Kill, EveryVerdictOnceAndNoneLost) {
  const testing::TemporaryFolder folder;
  std::string tokens;
  for (int i = 0; i < kClients; ++i)
    tokens += "client" + std::to_string(i) + " token-of-client-" + std::to_string(i) + "\n";
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "tokens", tokens));
  ::chmod((folder.path() / "tokens").c_str(), 0600);
  Killable service(folder.path());
  service.Begin();

  std::mutex mutex;
  std::condition_variable changed;
  int acknowledged = 0;
  std::map<int, std::uint64_t> jobs;  // check -> job
  std::vector<std::string> wrong;
  // Asks until it is answered; a connection that breaks waits for the next service.
  const auto ask = [&](int client, const std::function<httplib::Result(httplib::Client&)>& send) {
    while (true) {
      httplib::Client http("127.0.0.1", service.Port());
      http.set_read_timeout(60);
      http.set_default_headers(
          {{"Authorization", "Bearer token-of-client-" + std::to_string(client)}});
      httplib::Result result = send(http);
      if (result) return result;
    }
  };
  std::vector<std::thread> threads;
  for (int client = 0; client < kClients; ++client) {
    threads.emplace_back([&, client] {
      for (int check = client; check < kChecks; check += kClients) {
        const std::string body =
            CompactJson({{"key", "k" + std::to_string(check)}, {"value", check}});
        const httplib::Result result = ask(client, [&](httplib::Client& http) {
          return http.Post("/v1/checks", body, "application/json");
        });
        const std::lock_guard lock(mutex);
        if (result->status != 202) wrong.push_back(result->body);
        const auto json = ParseJson(result->body, "answer");
        jobs[check] = json ? json->value("job", std::uint64_t{0}) : 0;
        ++acknowledged;
        changed.notify_all();
      }
    });
  }
  for (const int until : {50, 100, 150}) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return acknowledged >= until; });
    }
    service.Kill();
    service.Begin();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(wrong.empty()) << wrong.front();

  std::set<std::uint64_t> numbers;
  for (const auto& [check, job] : jobs) {
    const std::string at = "/v1/jobs/" + std::to_string(job);
    const int client = check % kClients;
    // The stream ends when the job is over.
    const httplib::Result events =
        ask(client, [&](httplib::Client& http) { return http.Get((at + "/events").c_str()); });
    EXPECT_NE(events->body.find("event: ended"), std::string::npos) << events->body;
    const httplib::Result verdict =
        ask(client, [&](httplib::Client& http) { return http.Get((at + "/verdict").c_str()); });
    ASSERT_EQ(verdict->status, 200) << verdict->body;
    EXPECT_EQ(ParseJson(verdict->body, "verdict")->at("of").at("value"), check);
    numbers.insert(job);
  }
  EXPECT_EQ(numbers.size(), static_cast<std::size_t>(kChecks));

  service.Kill();
  std::map<std::uint64_t, int> ends;
  const std::string journal = testing::Slurp(folder.path() / "state" / "journal.jsonl");
  for (const std::string_view line : SplitLines(journal)) {
    const Json event = *ParseJson(line, "journal");
    if (event.at("event") == "ended") ++ends[event.at("number").get<std::uint64_t>()];
  }
  EXPECT_EQ(ends.size(), static_cast<std::size_t>(kChecks));
  for (const auto& [job, times] : ends) EXPECT_EQ(times, 1) << job;
}

}  // namespace
}  // namespace assay::serve

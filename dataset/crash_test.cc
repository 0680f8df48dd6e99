// Killed at any point, a corpus is whole, and the next ingest completes it.
//
// A child process ingests; the system call by which SQLite writes is replaced, for that process, by
// one that writes half of what it is given and dies, the nth time it is called. So the deaths lie
// where they hurt, inside of commits and checkpoints, and are the same in every run of the test.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "dataset/corpus.h"
#include "dataset/testing/synthetic.h"
#include "runs/testing/fakes.h"

namespace assay::dataset {
namespace {

constexpr std::size_t kAttempts = 120;
constexpr int kDeaths = 20;

std::uint64_t calls = 0;
std::uint64_t last_call = 0;

ssize_t Counted(int fd, const void* bytes, size_t size, off_t offset) {
  if (++calls == last_call) {
    [[maybe_unused]] const ssize_t half = ::pwrite(fd, bytes, size / 2, offset);
    ::kill(::getpid(), SIGKILL);
  }
  return ::pwrite(fd, bytes, size, offset);
}

// In place of both names under which SQLite may have it.
void CountWrites() {
  sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  for (const char* const name : {"pwrite", "pwrite64"})
    vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(&Counted));
}

int Ingest(const Path& file, const std::vector<RunRecord>& runs) {
  auto corpus = Corpus::Open(file, Database::Access::kWrite);
  if (!corpus) return 3;
  // Small enough for checkpoints to come in between.
  if (!corpus->db().Script("PRAGMA wal_autocheckpoint = 20")) return 3;
  for (const RunRecord& run : runs) {
    if (!corpus->Ingest(run)) return 4;
  }
  return 0;
}

// Runs `work` in a child; its exit code, or minus the signal that ended it.
int InChild(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Crash, AtAnyWriteTheCorpusStaysWholeAndTheNextIngestCompletesIt) {
  testing::TemporaryFolder folder;
  const auto runs = testing::SyntheticRuns(7, kAttempts);
  const Path whole = folder.path() / "whole.sqlite";
  // How many writes an undisturbed ingest makes comes back by a pipe.
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  ASSERT_EQ(InChild([&] {
              CountWrites();
              const int exit = Ingest(whole, runs);
              return ::write(pipe_ends[1], &calls, sizeof calls) == sizeof calls ? exit : 5;
            }),
            0);
  std::uint64_t writes = 0;
  ASSERT_EQ(::read(pipe_ends[0], &writes, sizeof writes), static_cast<ssize_t>(sizeof writes));
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  ASSERT_GT(writes, 10u * kDeaths);
  auto reference = Corpus::Open(whole, Database::Access::kWrite);
  ASSERT_TRUE(reference);
  const std::string print = *reference->Fingerprint();

  Rng rng(11);
  int partial = 0;
  for (int death = 0; death < kDeaths; ++death) {
    const Path file = folder.path() / ("c" + std::to_string(death) + ".sqlite");
    const std::uint64_t at = 1 + rng.Below(writes);
    ASSERT_EQ(InChild([&] {
                CountWrites();
                last_call = at;
                return Ingest(file, runs);
              }),
              -SIGKILL)
        << "write " << at;
    auto corpus = Corpus::Open(file, Database::Access::kWrite);
    ASSERT_TRUE(corpus) << "write " << at << ": " << ToString(corpus.error());
    const Status checked = corpus->Check();
    EXPECT_TRUE(checked) << "write " << at << ": " << (checked ? "" : ToString(checked.error()));
    // Each run is there with all of its attempts, or not at all.
    std::size_t have = 0;
    ASSERT_TRUE(corpus->EachRun([&](const RunRecord& read) -> Status {
      const auto wrote = std::ranges::find(runs, read.identity, &RunRecord::identity);
      EXPECT_EQ(read.attempts.size(), wrote->attempts.size());
      ++have;
      return {};
    }));
    if (have > 0 && have < runs.size()) ++partial;
    for (const RunRecord& run : runs) ASSERT_TRUE(corpus->Ingest(run));
    EXPECT_EQ(*corpus->Fingerprint(), print) << "write " << at;
    EXPECT_TRUE(corpus->Check());
  }
  EXPECT_GT(partial, kDeaths / 2);
}

}  // namespace
}  // namespace assay::dataset

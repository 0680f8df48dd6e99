#include "agent/models/guarded_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace assay::models {
namespace {

using ::testing::HasSubstr;

constexpr int kSoon = 20'000;  // milliseconds: a wait that ends at once unless something is broken

bool Readable(int fd, int milliseconds) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, milliseconds) == 1;
}

// All that is written to `fd` until its end, which is waited for.
std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  while (Readable(fd, kSoon)) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

GuardedProgram Shell(const std::string& script) {
  auto program = GuardedProgram::Start({"sh", "-c", script}, {});
  EXPECT_TRUE(program) << ToString(program.error());
  return program ? *std::move(program) : GuardedProgram();
}

// A process seen through a descriptor: its number may be taken by another meanwhile.
UniqueFd Watch(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// A child in the program's own group and one in a session of its own; writes their numbers and waits.
constexpr const char* kFamily =
    "sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & wait";

std::vector<UniqueFd> WatchFamily(int out) {
  std::vector<UniqueFd> watched;
  std::string text;
  char byte = 0;
  while (watched.size() < 2 && Readable(out, kSoon) && ::read(out, &byte, 1) == 1) {
    if (byte != '\n') {
      text += byte;
      continue;
    }
    watched.push_back(Watch(std::stoi(text)));
    EXPECT_TRUE(watched.back()) << text;
    text.clear();
  }
  return watched;
}

TEST(GuardedProgramTest, TellsHowTheProgramEnded) {
  const auto status_of = [](const std::string& script) {
    GuardedProgram program = Shell(script);
    ReadAll(program.out.get());
    while (!program.Ended()) ::sched_yield();
    return program.status();
  };
  EXPECT_EQ(WEXITSTATUS(status_of("exit 0")), 0);
  EXPECT_EQ(WEXITSTATUS(status_of("exit 7")), 7);
  const int status = status_of("kill -SEGV $$");
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

TEST(GuardedProgramTest, AProgramThatCannotBeExecutedIsAnError) {
  const auto program = GuardedProgram::Start({"/nonexistent/program"}, {});
  ASSERT_FALSE(program);
  EXPECT_THAT(ToString(program.error()), HasSubstr("/nonexistent/program: cannot start"));
}

TEST(GuardedProgramTest, KillTakesAllThatItStarted) {
  GuardedProgram program = Shell(kFamily);
  const std::vector<UniqueFd> family = WatchFamily(program.out.get());
  ASSERT_EQ(family.size(), 2u);
  for (const UniqueFd& member : family) EXPECT_FALSE(Readable(member.get(), 0));  // they live
  program.Kill();
  for (const UniqueFd& member : family) EXPECT_TRUE(Readable(member.get(), 0));
}

TEST(GuardedProgramTest, WhatAProgramLeavesBehindEndsWithIt) {
  GuardedProgram program = Shell("setsid sh -c 'echo $$; exec sleep 1000' & read line; exit 3");
  char text[32] = {};
  ASSERT_TRUE(Readable(program.out.get(), kSoon));
  ASSERT_GT(::read(program.out.get(), text, sizeof text - 1), 0);
  const UniqueFd left = Watch(std::stoi(text));
  ASSERT_TRUE(left);
  program.in.Reset();
  EXPECT_TRUE(Readable(left.get(), kSoon));
  while (!program.Ended()) ::sched_yield();
  EXPECT_EQ(WEXITSTATUS(program.status()), 3);
}

// The parent of the program is a child of the test, which is killed.
class OutlivingTest : public ::testing::TestWithParam<int> {};

TEST_P(OutlivingTest, NothingOutlivesUs) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    GuardedProgram program = Shell(kFamily);
    std::string told;
    for (char byte = 0; std::ranges::count(told, '\n') < 2;) {
      if (!Readable(program.out.get(), kSoon) || ::read(program.out.get(), &byte, 1) != 1) break;
      told += byte;
    }
    [[maybe_unused]] const ssize_t written = ::write(write_end.get(), told.data(), told.size());
    while (true) ::pause();
  }
  write_end.Reset();
  const std::vector<UniqueFd> family = WatchFamily(read_end.get());
  EXPECT_EQ(family.size(), 2u);
  ::kill(parent, GetParam());
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(WTERMSIG(status), GetParam());
  for (const UniqueFd& member : family) EXPECT_TRUE(Readable(member.get(), kSoon));
}

INSTANTIATE_TEST_SUITE_P(Signals, OutlivingTest, ::testing::Values(SIGKILL, SIGTERM, SIGABRT));

// A lock that we hold must be free once we are gone, though the guard is still about.
TEST(GuardedProgramTest, NeitherGuardNorProgramHoldsOurDescriptors) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // inheritable, as a careless library makes it
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  GuardedProgram program = Shell("exec sleep 1000");
  write_end.Reset();
  EXPECT_TRUE(Readable(read_end.get(), kSoon));  // its end
  EXPECT_FALSE(program.Ended());
}

TEST(GuardedProgramTest, ManyAtOnceEndOneByOne) {
  std::vector<GuardedProgram> programs;
  for (int i = 0; i < 5; ++i) programs.push_back(Shell("cat"));
  for (GuardedProgram& program : programs) {
    EXPECT_FALSE(program.Ended());
    program.in.Reset();
    EXPECT_EQ(ReadAll(program.out.get()), "");
    while (!program.Ended()) ::sched_yield();
    EXPECT_EQ(WEXITSTATUS(program.status()), 0);
  }
}

}  // namespace
}  // namespace assay::models

#include "sandbox/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace assay::sandbox {
namespace {

using testing::HasSubstr;

Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

Command Misbehave(std::string action) {
  Command command;
  command.argv = {(ProgramFolder() / "sandbox_misbehave").string(), "--run", std::move(action)};
  command.environment = {"ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_abort=0",
                         "TSAN_OPTIONS=handle_segv=0:handle_abort=0"};
  return command;
}

Exit RunToEnd(const Command& command) {
  auto process = Process::Start(command);
  EXPECT_TRUE(process) << ToString(process.error());
  auto exit = process->Wait(Soon());
  EXPECT_TRUE(exit) << ToString(exit.error());
  return *exit;
}

TEST(Process, DescribesHowItEnded) {
  EXPECT_EQ(RunToEnd(Misbehave("pid")).Describe(), "exit 0");
  EXPECT_EQ(RunToEnd(Misbehave("exit")).Describe(), "exit 3");
  EXPECT_EQ(RunToEnd(Misbehave("crash")).Describe(), "killed by signal 11 (Segmentation fault)");
  EXPECT_EQ(RunToEnd(Misbehave("abort")).Describe(), "killed by signal 6 (Aborted)");
}

TEST(Process, AMissingProgramIsNamed) {
  Command command;
  command.argv = {"/nonexistent/program"};
  const auto process = Process::Start(command);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(process.error().place, "/nonexistent/program");
}

TEST(Process, KeepsABoundedTailOfTheOutput) {
  auto process = Process::Start(Misbehave("chatter"));
  ASSERT_TRUE(process);
  ASSERT_TRUE(process->Wait(Soon()));
  while (process->DrainOutput()) {
  }
  const std::string tail = process->OutputTail();
  EXPECT_GT(tail.size(), 1000u);
  EXPECT_LE(tail.size(), 4096u);
}

TEST(Process, OutputIsMadePrintable) {
  auto process = Process::Start(Misbehave("exit"));
  ASSERT_TRUE(process);
  ASSERT_TRUE(process->Wait(Soon()));
  process->DrainOutput();
  EXPECT_EQ(process->OutputTail(), "giving ?[31mup");
}

TEST(Process, WaitEndsAtTheDeadlineAndKillEndsTheProcess) {
  auto process = Process::Start(Misbehave("loop"));
  ASSERT_TRUE(process);
  const auto exit = process->Wait(std::chrono::steady_clock::now());
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().kind, ErrorKind::kLimit);
  EXPECT_EQ(process->Kill().Describe(), "killed by signal 9 (Killed)");
}

TEST(Process, KillReachesTheWholeGroup) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  Command command = Misbehave("family");
  command.fds = {{write_end.get(), 3}};
  auto process = Process::Start(command);
  ASSERT_TRUE(process);
  write_end.Reset();
  char byte = 0;
  ASSERT_EQ(::read(read_end.get(), &byte, 1), 1);  // The grandchild is there.
  process->Kill();
  // The pipe ends only when the last holder of its write end is gone.
  pollfd watched{read_end.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 60000), 1);
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);
}

TEST(Process, OnlyMappedDescriptorsAreInherited) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);  // Without close-on-exec, as a careless library would.
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  auto process = Process::Start(Misbehave("loop"));
  ASSERT_TRUE(process);
  write_end.Reset();
  pollfd watched{read_end.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 60000), 1);
  EXPECT_NE(watched.revents & POLLHUP, 0);
}

TEST(Process, MappingsMaySwapNumbers) {
  // The source of one is the target of the other.
  UniqueFd a(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      b(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  Command command = Misbehave("pid");
  command.fds = {{a.get(), b.get()}, {b.get(), a.get()}};
  EXPECT_EQ(RunToEnd(command).Describe(), "exit 0");
}

TEST(Process, DiesWithTheThreadThatStartedIt) {
  Result<Process> process = Fail(ErrorKind::kInternal, "not started");
  std::thread([&] { process = Process::Start(Misbehave("loop")); }).join();
  ASSERT_TRUE(process);
  const auto exit = process->Wait(Soon());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->Describe(), "killed by signal 9 (Killed)");
}

TEST(Process, DestructionKills) {
  UniqueFd pidfd;
  {
    auto process = Process::Start(Misbehave("loop"));
    ASSERT_TRUE(process);
    pidfd.Reset(::dup(process->pidfd()));
  }
  pollfd watched{pidfd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, 60000), 1);
}

TEST(FindProgram, LooksInAbsoluteFoldersOnly) {
  EXPECT_EQ(FindProgram("true", "/nonexistent:/usr/bin"), Path("/usr/bin/true"));
  EXPECT_EQ(FindProgram("true", "usr/bin::."), Path());
  EXPECT_EQ(FindProgram("true", ""), Path());
}

}  // namespace
}  // namespace assay::sandbox

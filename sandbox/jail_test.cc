// What code inside of the jail can reach. Each check has a twin without the jail, so that it is the
// jail that is tested.
#include "sandbox/jail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sandbox/misbehave_pool.h"

namespace assay::sandbox {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

class Jail : public testing::TestWithParam<WorkerKind> {
 protected:
  Json Answer(std::string action, Json more = Json::object()) {
    return Answered(*pool_, Asking(std::move(action), std::move(more)), GetParam());
  }
  Reply Outcome(std::string action, Json more = Json::object()) {
    return sandbox::Ask(*pool_, Asking(std::move(action), std::move(more)), kPatience, GetParam());
  }

  std::unique_ptr<WorkerPool> pool_ = MisbehavePool();
};

INSTANTIATE_TEST_SUITE_P(Kinds, Jail, testing::Values(WorkerKind::kCompile, WorkerKind::kEmulate),
                         [](const auto& kind) { return std::string(Name(kind.param)); });

TEST_P(Jail, HidesTheFilesOfTheHost) {
  const Path secret = Path(testing::TempDir()) / ("assay-secret-" + std::to_string(::getpid()));
  std::ofstream(secret) << "secret";
  for (const std::string& path :
       {std::string("/etc/passwd"), std::string("/etc/shadow"), std::string("/etc/hostname"),
        secret.string(), std::string("/root/.bashrc"), std::string("/var/log/dpkg.log"),
        std::string("/usr/bin/env"), std::string("/sys/kernel/notes"), std::string("/dev/zero"),
        std::string(ASSAY_SOURCE_DIR "/LICENSE")}) {
    EXPECT_NE(Answer("read", {{"path", path}})["errno"], 0) << path;
  }
  EXPECT_EQ(Answer("read", {{"path", "/worker/sandbox_misbehave"}})["errno"],
            0);  // Reading as such works.
  std::filesystem::remove(secret);
}

TEST_P(Jail, HasAnAlmostEmptyRoot) {
  const Json answer = Answer("list", {{"path", "/"}});
  for (const Json& name : answer["names"]) {
    EXPECT_THAT((std::vector<std::string>{".", "..", "usr", "lib", "lib64", "lib32", "worker",
                                          "tmp", "proc"}),
                Contains(name.get<std::string>()));
  }
}

TEST_P(Jail, InheritsNoEnvironment) {
  ::setenv("ASSAY_TEST_SECRET", "sesame", 1);
  EXPECT_THAT(CompactJson(Answer("environment")), Not(HasSubstr("sesame")));
  EXPECT_THAT(CompactJson(Answer("environment")), Not(HasSubstr("HOME")));
}

TEST_P(Jail, LetsNothingBeWrittenOutsideOfItsTmpfs) {
  for (const char* path : {"/x", "/usr/lib/x", "/worker/x", "/worker/sandbox_misbehave", "/proc/x",
                           "/proc/self/oom_score_adj", "/lib/x", "/home/x"}) {
    EXPECT_NE(Answer("write", {{"path", path}})["errno"], 0) << path;
  }
}

TEST_P(Jail, TemporaryFilesAreBoundedAndOnlyForTheCompiler) {
  const Json answer = Answer("write", {{"path", "/tmp/x"}});
  if (GetParam() == WorkerKind::kCompile) {
    EXPECT_EQ(answer["errno"], 0);
    EXPECT_LE(answer["bytes"].get<std::uint64_t>(), 64u << 20);
  } else {
    EXPECT_NE(answer["errno"], 0);
  }
}

TEST_P(Jail, HasNoNetwork) { EXPECT_NE(Answer("connect")["errno"], 0); }

TEST_P(Jail, MakesNoProcesses) {
  const Json answer = Answer("fork");
  EXPECT_EQ(answer["children"], 0);
  EXPECT_EQ(answer["errno"], EPERM);
}

TEST_P(Jail, BoundsThreads) {
  // Refused at the limit of the namespace, or ended at that of memory (root is exempt from the
  // former).
  const Reply reply = Outcome("threads");
  if (reply.outcome == CallOutcome::kReplied) {
    EXPECT_NE(reply.message.header["errno"], 0);
    if (::geteuid() != 0) {
      EXPECT_LT(reply.message.header["threads"].get<int>(), 128);
    }
  } else {
    EXPECT_EQ(reply.outcome, CallOutcome::kCrashed);
  }
}

TEST_P(Jail, EndsAtItsMemoryLimit) {
  const Reply reply = Outcome("allocate");
  ASSERT_EQ(reply.outcome, CallOutcome::kOverLimit) << reply.detail;
  EXPECT_THAT(reply.detail, HasSubstr("memory limit"));
}

TEST_P(Jail, MakesNoMemoryThatNobodyCounts) {
  if (BuiltWithSanitizer()) GTEST_SKIP() << "sanitizers map what they like";
  EXPECT_NE(Answer("shared")["errno"], 0);
  EXPECT_EQ(Answer("hold", {{"bytes", 4096}})["bytes"], 4096);  // The twin: private memory.
}

TEST_P(Jail, BoundsAddressSpace) {
  if (BuiltWithSanitizer()) GTEST_SKIP() << "sanitizers reserve address space without end";
  const Json answer = Answer("allocate", {{"touch", false}});
  EXPECT_EQ(answer["errno"], ENOMEM);
  EXPECT_LE(answer["bytes"].get<std::uint64_t>(), 2048ull << 30);
}

TEST_P(Jail, DeadlyCallsEndTheWorker) {
  for (const int number :
       {SYS_ptrace, SYS_mount, SYS_umount2, SYS_keyctl, SYS_bpf, SYS_unshare, SYS_setns,
        SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_process_vm_readv,
        SYS_init_module, SYS_kexec_load, SYS_pivot_root, SYS_setuid}) {
    const Reply reply = Outcome("syscall", {{"number", number}});
    EXPECT_EQ(reply.outcome, CallOutcome::kCrashed) << number << ": " << reply.detail;
    EXPECT_THAT(reply.detail, HasSubstr("signal 31 (Bad system call)")) << number;
  }
}

TEST_P(Jail, OtherCallsDoNotExist) {
  for (const int number : {SYS_execve, SYS_socket, SYS_clone3, SYS_chmod, SYS_mknod, SYS_setsid,
                           SYS_shmget, SYS_inotify_init1, SYS_fanotify_init, SYS_pidfd_open,
                           SYS_setrlimit, SYS_seccomp, SYS_memfd_create, SYS_memfd_secret, 9999}) {
    EXPECT_EQ(Answer("syscall", {{"number", number}})["errno"], ENOSYS) << number;
  }
}

TEST_P(Jail, SignalsReachNobodyElse) {
  EXPECT_EQ(Answer("signal", {{"pid", 1}})["errno"], ENOSYS);
  EXPECT_EQ(Answer("signal", {{"pid", -1}})["errno"], ENOSYS);
  EXPECT_NE(Answer("limit")["errno"], 0);
}

TEST(NoJail, IsReportedAndStillFiltered) {
  const auto pool = MisbehavePool({.unsafe_no_jail = true});
  ASSERT_NE(pool, nullptr);
  EXPECT_FALSE(pool->isolation().jailed);
  EXPECT_THAT(pool->isolation().description, HasSubstr("--unsafe-no-jail"));
  // The twin of the jail's test: without it the host's files are there.
  EXPECT_EQ(Answered(*pool, Asking("read", {{"path", "/etc/passwd"}}))["errno"], 0);
  // What does not need namespaces holds.
  EXPECT_EQ(Answered(*pool, Asking("fork"))["children"], 0);
  EXPECT_NE(Answered(*pool, Asking("connect"))["errno"], 0);
  EXPECT_EQ(Answered(*pool, Asking("signal", {{"pid", ::getpid()}}))["errno"], ENOSYS);
  EXPECT_NE(Answered(*pool, Asking("write", {{"path", "/tmp/assay-no-jail"}}))["errno"], 0);
  EXPECT_THAT(CompactJson(Answered(*pool, Asking("environment"))), Not(HasSubstr("HOME")));
  EXPECT_EQ(Ask(*pool, Asking("syscall", {{"number", SYS_ptrace}})).outcome, CallOutcome::kCrashed);
  EXPECT_EQ(Ask(*pool, Asking("allocate")).outcome, CallOutcome::kOverLimit);
}

TEST(JailOfAPool, IsReported) {
  const auto pool = MisbehavePool();
  ASSERT_NE(pool, nullptr);
  EXPECT_TRUE(pool->isolation().jailed);
  EXPECT_THAT(pool->isolation().description, HasSubstr("bubblewrap"));
}

TEST(JailOfAPool, RefusesToStartWithoutBubblewrap) {
  PoolOptions options;
  options.jail.search_path = "/nonexistent";
  const auto pool = WorkerPool::Create(std::move(options));
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(pool.error().cure, HasSubstr("install bubblewrap"));
  EXPECT_THAT(pool.error().cure, HasSubstr("--unsafe-no-jail"));
}

}  // namespace
}  // namespace assay::sandbox

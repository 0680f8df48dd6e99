// Hostile problem files with the real torch and the real package: contained, each with a message that says what happened. What no torch
// is needed for is in import_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "importers/import.h"
#include "importers/python.h"
#include "sandbox/jail.h"

namespace assay::importers {
namespace {

using ::testing::HasSubstr;

class HostileTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto python = FindPython("", [](const char* name) {
      const char* const value = std::getenv(name);
      return std::string(value == nullptr ? "" : value);
    });
    if (!python) GTEST_SKIP() << "there is no torch: " << python.error().cure;
    python_ = *python;
    const auto jail = sandbox::ProbeJail();
    ASSERT_TRUE(jail);
    if (!jail->works) GTEST_SKIP() << "no jail on this machine: assay doctor";
    folder_ = std::filesystem::temp_directory_path() /
              ("assay_torch_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Result<Imported> Take(const std::string& text, int seconds = 300) {
    std::ofstream(folder_ / "problem.py") << "import torch\n" << text;
    Problem problem{
        .kind = "torch", .source = folder_ / "problem.py", .function = "f", .name = "f"};
    return Import(
        problem, python_,
        {.time = std::chrono::seconds(seconds), .package = Path(ASSAY_SOURCE_DIR) / "importers"});
  }

  Path folder_;
  Python python_;
};

constexpr const char* kSum = "def f(x: 'f32[n]'):\n    return x.sum()\n";

TEST_F(HostileTorch, AnHonestProblemIsImported) {
  const auto imported = Take(kSum);
  ASSERT_TRUE(imported) << ToString(imported.error());
  EXPECT_EQ(imported->name, "f");
  EXPECT_TRUE(imported->files.contains("reference.cu"));
}

TEST_F(HostileTorch, ReadsAndSendsNothing) {
  const auto imported = Take(
      "import os, socket, sys\n"
      "seen = [p for p in ('/etc/passwd', '/run', '/var') if os.path.exists(p)]\n"
      // A Python that a user has installed lies in a home folder: the way to it is there, and nothing beside it.
      "own = sys.prefix.split('/') + sys.base_prefix.split('/')\n"
      "homes = [h for h in ('/root', '/home') if os.path.isdir(h)]\n"
      "seen += [h + '/' + f for h in homes for f in os.listdir(h) if f not in own]\n"
      "try:\n"
      "    socket.create_connection(('127.0.0.1', 22), 1)\n"
      "    seen.append('network')\n"
      "except OSError:\n"
      "    pass\n"
      "if seen:\n"
      "    raise ValueError(str(seen))\n" +
      std::string(kSum));
  EXPECT_TRUE(imported) << ToString(imported.error());
}

TEST_F(HostileTorch, StartsNoProgram) {
  const auto imported =
      Take("import subprocess\nsubprocess.run(['/bin/sh', '-c', 'true'], check=True)\n" +
           std::string(kSum));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("the problem file cannot be loaded"));
}

TEST_F(HostileTorch, LoopsForEverWhileItIsExported) {
  const auto imported = Take("def f(x: 'f32[n]'):\n    while True: x = x + 1\n", 15);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().kind, ErrorKind::kLimit);
  EXPECT_THAT(imported.error().message, HasSubstr("within 15 seconds"));
}

TEST_F(HostileTorch, AllocatesWithoutEnd) {
  const auto imported =
      Take("kept = [torch.empty(1 << 34) for _ in range(100)]\n" + std::string(kSum));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("memory"));
}

TEST_F(HostileTorch, PatchesTorch) {
  const auto imported =
      Take("torch.export.export = lambda *a, **k: 'nothing'\n" + std::string(kSum));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message,
              ::testing::AnyOf(HasSubstr("ended the process"), HasSubstr("cannot be imported")));
}

TEST_F(HostileTorch, PatchesThePackageToWriteElsewhere) {
  const auto imported = Take(
      "from assay_import import opfile\n"
      "opfile.make = lambda *a, **k: ({'../../evil': 'x', 'op.json': '{}'}, {})\n" +
      std::string(kSum));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("which no op has"));
}

TEST_F(HostileTorch, EndsTheProcessAsIfAllWereWell) {
  const auto imported = Take("import os\ndef f(x: 'f32[n]'):\n    os._exit(0)\n");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("before there was an answer"));
}

TEST_F(HostileTorch, AnswersInThePackagesPlace) {
  const auto imported = Take(
      "import json, os\n"
      "os.write(4, json.dumps({'files': {'op.json': '{}'}, 'told': {}}).encode())\n"
      "os._exit(0)\n" +
      std::string(kSum));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("has no reference"));
}

TEST_F(HostileTorch, FillsItsScratch) {
  const auto imported =
      Take("with open('/tmp/big', 'wb') as big:\n    while True: big.write(b'x' * (1 << 24))\n" +
           std::string(kSum));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("the problem file cannot be loaded: OSError"));
}

TEST_F(HostileTorch, CallsItselfWithoutEnd) {
  const auto imported = Take("def f(x: 'f32[n]'):\n    return f(x)\n");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("RecursionError"));
}

TEST_F(HostileTorch, KillsWhatItSees) {
  const auto imported = Take(
      "import os\n"
      "for process in range(1, 400):\n"
      "    try: os.kill(process, 9)\n"
      "    except OSError: pass\n" +
      std::string(kSum));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("ended the process that imports it (killed"));
}

TEST_F(HostileTorch, StartsThreadsWithoutEnd) {
  const auto imported = Take(
      "import threading, time\n"
      "while True:\n"
      "    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n" +
          std::string(kSum),
      30);
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message,
              ::testing::AnyOf(HasSubstr("thread"), HasSubstr("memory"), HasSubstr("within")));
}

}  // namespace
}  // namespace assay::importers

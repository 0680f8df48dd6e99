// Limits that a shell, a container or a full disk sets: each ends in a message that names the limit and the cure, and in the exit code
// of the environment, never in a signal. A table of scripts; each row has a twin that leaves enough.
//
// What no program can say: with fewer than four descriptors, or a stack of 16 KiB or less, the system's loader fails before main (/bin/true
// included). With 16 KiB now and then only: Linux leaves up to 8 of them unused, at random, and the environment lies there as well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kAssay = (Path(ASSAY_BINARY_DIR) / "bin" / "assay").string();
const std::string kNaive = (Path(ASSAY_SOURCE_DIR) / "ops/rms_norm/naive").string();

Ran Script(const std::string& script, const Path& scratch) {
  return RunProgram("/bin/bash", {"-c", script},
                    {"ASSAY=" + kAssay, "NAIVE=" + kNaive, "SCRATCH=" + scratch.string()});
}

/// "ulimit -n 16; judge": a command that would judge, and one that only looks.
const std::string kCheck = R"("$ASSAY" check "$NAIVE" --op rms_norm)";
const std::string kLook = R"("$ASSAY" ops list)";
const std::string kDoctor = R"("$ASSAY" doctor)";
const std::string kGenerate =
    R"("$ASSAY" generate rms_norm --model exec/false --attempts 1 --out )";

struct LimitCase {
  std::string name;
  std::string script;
  int exit;
  std::vector<std::string> said;  ///< Each stands in what was said.
};

void PrintTo(const LimitCase& limit, std::ostream* out) { *out << limit.name; }

std::vector<LimitCase> Cases() {
  std::vector<LimitCase> cases;
  for (const char* const n : {"5", "6", "8", "12", "16", "24", "32", "48", "63"}) {
    const std::string limit = std::string("ulimit -n ") + n;
    cases.push_back({std::string("files_") + n,
                     limit + "; " + kCheck,
                     3,
                     {"(" + limit + ")", "raise it: ulimit -n 1024"}});
  }
  for (const char* const n : {"64", "100", "128", "256"})
    cases.push_back({std::string("files_") + n,
                     std::string("ulimit -n ") + n + "; " + kDoctor,
                     0,
                     {"ok   jail", "ok   NVRTC"}});
  for (const char* const n : {"6", "16"})
    cases.push_back(
        {std::string("files_look_") + n, std::string("ulimit -n ") + n + "; " + kLook, 0, {}});
  for (const char* const kib : {"32", "64", "128", "256", "512", "1000"}) {
    const std::string limit = std::string("ulimit -s ") + kib;
    cases.push_back({std::string("stack_") + kib,
                     limit + "; " + kLook,
                     3,
                     {"(" + limit + ")", "raise it: ulimit -s 8192"}});
  }
  for (const char* const kib : {"1024", "2048", "8192"})
    cases.push_back({std::string("stack_") + kib,
                     std::string("ulimit -s ") + kib + "; " + kDoctor,
                     0,
                     {"ok   NVRTC"}});
  // A soft limit is no limit to one who may raise it.
  cases.push_back({"stack_soft", "ulimit -Ss 64; " + kLook, 0, {}});
  cases.push_back({"files_soft", "ulimit -Sn 16; " + kDoctor, 0, {"ok   jail"}});
  for (const char* const kib : {"1000000", "2000000", "4000000"}) {
    const std::string limit = std::string("ulimit -v ") + kib;
    cases.push_back({std::string("address_space_") + kib,
                     limit + "; " + kCheck,
                     3,
                     {"(" + limit + ")", "ulimit -v unlimited"}});
  }
  for (const char* const kib : {"0", "8", "1000", "65535"}) {
    const std::string limit = std::string("ulimit -f ") + kib;
    // What is said goes through a pipe, which has no size.
    cases.push_back({std::string("file_size_") + kib,
                     "{ " + limit + "; " + kCheck + " --json 2>&1; } | cat; exit ${PIPESTATUS[0]}",
                     3,
                     {"(" + limit + ")"}});
  }
  cases.push_back(
      {"several",
       "ulimit -n 20; ulimit -v 2000000; " + kCheck,
       3,
       {"ulimit -n 20", "ulimit -v 2000000", "raise it: ulimit -n 1024; ulimit -v unlimited"}});
  cases.push_back({"oversized_kernel",
                   "cp -r \"$NAIVE\" $SCRATCH/c; truncate -s 17M $SCRATCH/c/kernel.cu; \"$ASSAY\" "
                   "check $SCRATCH/c --op rms_norm",
                   3,
                   {"kernel.cu: the file has 17825792 bytes; at most 16777216 are read", "fix: "}});
  cases.push_back({"oversized_launch",
                   "cp -r \"$NAIVE\" $SCRATCH/c; truncate -s 17M $SCRATCH/c/launch.json; "
                   "\"$ASSAY\" check $SCRATCH/c --op rms_norm",
                   3,
                   {"launch.json: the file has", "fix: "}});
  cases.push_back({"oversized_transcript",
                   "truncate -s 300M $SCRATCH/t.jsonl; \"$ASSAY\" generate rms_norm --model "
                   "replay/$SCRATCH/t.jsonl --out $SCRATCH/r",
                   3,
                   {"t.jsonl: the file has", "fix: "}});
  cases.push_back({"oversized_counterexample",
                   "truncate -s 300M $SCRATCH/x.json; \"$ASSAY\" replay $SCRATCH/x.json",
                   3,
                   {"x.json: the file has"}});
  return cases;
}

class Limits : public ::testing::TestWithParam<LimitCase> {};

TEST_P(Limits, AreNamedWithTheCure) {
  const LimitCase& limit = GetParam();
  const Scratch scratch;
  const Ran ran = Script(limit.script, scratch.path());
  EXPECT_EQ(ran.exit, limit.exit) << ran.err << ran.out;
  for (const std::string& said : limit.said) EXPECT_THAT(ran.err + ran.out, HasSubstr(said));
  if (limit.exit == 3) {
    EXPECT_THAT(ran.err + ran.out, HasSubstr("fix"));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Limits, ::testing::ValuesIn(Cases()),
                         [](const auto& limit) { return limit.param.name; });

/// File systems of a size, or read-only, need a mount of one's own.
class FileSystems : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Mounted("none", "true").exit != 0) GTEST_SKIP() << "no mount namespaces here";
  }
  /// Runs `script` where $SCRATCH/disk is a file system with these options.
  Ran Mounted(const std::string& options, const std::string& script) {
    const std::string mount =
        options == "none" ? "true" : "mount -t tmpfs -o " + options + " none \"$SCRATCH/disk\"";
    return Script(
        "mkdir -p \"$SCRATCH/disk\"; exec unshare --user --map-root-user --mount bash -c '" +
            mount + " && " + script + "'",
        scratch_.path());
  }
  Scratch scratch_;
};

TEST_F(FileSystems, OneThatIsFullIsNamed) {
  const Ran ran = Mounted("size=16k", kGenerate + "\"$SCRATCH/disk/run\"");
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("No space left on device"), HasSubstr("the file system of"),
                             HasSubstr("is full"), HasSubstr("free space there")));
}

TEST_F(FileSystems, OneThatIsReadOnlyIsNamed) {
  const Ran ran = Mounted("ro", kGenerate + "\"$SCRATCH/disk/run\"");
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("Read-only file system"), HasSubstr("use another folder")));
}

TEST_F(FileSystems, OneWithRoomHoldsTheRun) {
  const Ran ran = Mounted(
      "size=16m",
      kGenerate + "\"$SCRATCH/disk/run\"; test -s $SCRATCH/disk/run/events.jsonl && echo kept");
  EXPECT_THAT(ran.out, HasSubstr("kept")) << ran.err;
}

TEST_F(FileSystems, CounterexamplesThatDoNotFitAreAnError) {
  const Ran ran = Mounted(
      "ro", "\"$ASSAY\" check \"$NAIVE\" --op rms_norm --counterexamples \"$SCRATCH/disk/c\"");
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("Read-only file system"));
}

/// The limit on processes does not bind root, so another user tries.
TEST(Processes, TooFewAreNamed) {
  const std::string nobody =
      ::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  const Scratch scratch;
  std::filesystem::permissions(scratch.path(), std::filesystem::perms::all);
  const auto with = [&](const std::string& limit) {
    return Script("cd /; exec " + nobody + "bash -c '" + limit + " " + kDoctor + "'",
                  scratch.path());
  };
  if (with("").exit != 0) GTEST_SKIP() << "this user cannot run assay";
  for (const char* const n : {"1", "2", "5", "10", "20", "50"}) {
    const std::string limit = std::string("ulimit -u ") + n;
    const Ran ran = with(limit + ";");
    // Shell, program and jail fit into more than a few; a user who has others running fits into none.
    EXPECT_TRUE(ran.exit == 0 || ran.exit == 3) << n << ": " << ran.exit << "\n" << ran.err;
    if (ran.exit == 3) {
      EXPECT_THAT(ran.err, HasSubstr("(" + limit + ")")) << n;
    }
  }
  EXPECT_EQ(with("ulimit -u 1;").exit, 3);
}

}  // namespace
}  // namespace assay::tests

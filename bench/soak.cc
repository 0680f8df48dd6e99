// What stays behind when judging goes on for long: N judgements in one process, then M rounds of five requests to its workers. Prints a line at the
// start, at each tenth, and at the end: resident memory and open files of this process, memory of all workers, files that are named
// after Assay in the temporary folder and in /dev/shm. Level is right; a number that grows with the work is a leak.
//
//   build/release/bin/soak 5000 20000 [OP]
//
// Half of the judgements are of the op's known-good candidate (quick effort), half of one that the compiler refuses; each has a text of
// its own, so that no verdict is answered from a cache; seeds come again after sixteen, so that the truths that the oracle keeps, up to 576 MiB,
// are all there before the middle. Ends with status 1 where the second half of the work left more than it may:
// 64 MiB, or one open file.
#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "validator/engine/known_answers.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gatekeeper.h"

namespace assay::gates {
namespace {

struct Level {
  std::uint64_t resident_kib = 0;
  std::uint64_t files = 0;
  std::uint64_t workers = 0;
  std::uint64_t workers_kib = 0;
  std::uint64_t left = 0;    ///< In the temporary folder, which is this program's own.
  std::uint64_t shared = 0;  ///< In /dev/shm, named after Assay; others may put such there too.
};

std::uint64_t ResidentKib(const std::string& process) {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

std::uint64_t Entries(const Path& folder, const std::string& begin) {
  std::uint64_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    count += entry.path().filename().string().starts_with(begin) ? 1 : 0;
  return count;
}

/// All processes below this one.
void AddWorkers(const std::string& process, Level& level) {
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + process + "/task", error)) {
    std::ifstream children(task.path() / "children");
    for (std::string child; children >> child;) {
      ++level.workers;
      level.workers_kib += ResidentKib(child);
      AddWorkers(child, level);
    }
  }
}

Level Look() {
  Level level;
  level.resident_kib = ResidentKib("self");
  level.files = Entries("/proc/self/fd", "");
  level.left = Entries(std::filesystem::temp_directory_path(), "");
  level.shared = Entries("/dev/shm", "assay");
  AddWorkers("self", level);
  return level;
}

void Print(const char* what, std::uint64_t done, const Level& level, double seconds) {
  fmt::print(
      "{:12} {:8}  {:7.1f} s  resident {:7} KiB  files {:4}  processes {:3} with {:8} KiB  left "
      "behind {}\n",
      what, done, seconds, level.resident_kib, level.files, level.workers, level.workers_kib,
      level.left);
  std::fflush(stdout);
}

/// Does `once` so often, looks at each tenth; whether the second half kept the level.
template <class Once>
bool Soak(const char* what, std::uint64_t times, Once once) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Level middle;
  Print(what, 0, Look(), 0);
  for (std::uint64_t i = 1; i <= times; ++i) {
    once(i);
    if (i == (times + 1) / 2) middle = Look();
    if (i % std::max<std::uint64_t>(1, times / 10) == 0) Print(what, i, Look(), seconds());
  }
  const Level end = Look();
  return end.resident_kib < middle.resident_kib + (64 << 10) && end.files <= middle.files + 1 &&
         end.left <= middle.left;
}

Result<bool> Run(std::uint64_t judgements, std::uint64_t requests, const std::string& name) {
  ASSAY_TRY(const auto toolbox, engine::Toolbox::Create({}));
  const ops::Library library{{Path(ASSAY_SOURCE_DIR) / "ops"}};
  ASSAY_TRY(const ops::OpSpec op, library.Find(name));
  ASSAY_TRY(const ops::Instance instance, ops::MakeInstance(op, {}, "sm_90"));
  if (!op.naive) return Fail(ErrorKind::kUsage, "the op has no known-good candidate", name);
  ASSAY_TRY(const std::string kernel, ReadFile(*op.naive / "kernel.cu"));
  ASSAY_TRY(const std::string launch, ReadFile(*op.naive / "launch.json"));
  oracle::Oracle oracle(toolbox->compiler(), toolbox->emulator());
  SystemClock clock;
  std::uint64_t unexpected = 0;
  bool level = Soak("judgements", judgements, [&](std::uint64_t i) {
    constexpr std::uint64_t kSeeds = 16;
    const std::uint64_t seed = i % kSeeds;
    const bool right = i % 2 == 0;
    const std::string text = fmt::format("{}{}// {}\n", kernel, right ? "" : "#error no\n", i);
    Gatekeeper gatekeeper({toolbox->compiler(), toolbox->emulator(), oracle, clock, {}},
                          {.effort = campaign::Effort::kQuick,
                           .seed = seed,
                           .holdout_seed = [seed] { return seed; },
                           .regressions = {}});
    const Judgement judged = gatekeeper.Judge(instance, {.kernel = text, .launch = launch});
    unexpected +=
        judged.verdict.outcome != (right ? verdict::Outcome::kAccepted : verdict::Outcome::kRefuted)
            ? 1
            : 0;
  });
  level = Soak("rounds of 5", requests,
               [&](std::uint64_t i) {
                 unexpected += engine::CheckKnownAnswers(toolbox->emulator(), i) ? 0 : 1;
               }) &&
          level;
  fmt::print("{} verdicts or answers were not as expected\n", unexpected);
  return level && unexpected == 0;
}

}  // namespace
}  // namespace assay::gates

int main(int argc, char** argv) {
  std::string own = (std::filesystem::temp_directory_path() / "assay-soak-XXXXXX").string();
  if (::mkdtemp(own.data()) == nullptr || ::setenv("TMPDIR", own.c_str(), 1) != 0) return 3;
  const auto number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const auto kept =
      assay::gates::Run(number(1, 100), number(2, 1000), argc > 3 ? argv[3] : "rms_norm");
  std::error_code ignored;
  std::filesystem::remove_all(own, ignored);
  if (!kept) {
    fmt::print(stderr, "{}\n", assay::ToString(kept.error()));
    return 3;
  }
  fmt::print("{}\n", *kept ? "level" : "NOT LEVEL");
  return *kept ? 0 : 1;
}

// corpus/buggy and corpus/patterns through what `assay sanitize` runs: the real compiler, the real
// emulator. Each bug.cu must give the finding of its expect.json on the line marked // BUG (and,
// for races, // OTHER), and nothing of a kind that expect.json does not name; each fixed.cu must be
// clean, and each pattern under 50 schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "validator/engine/toolbox.h"
#include "validator/findings/render.h"
#include "validator/sanitize/sanitize.h"

namespace assay::sanitize {
namespace {

constexpr int kPatternSchedules = 50;
/// Many times what any kernel of the corpus needs.
constexpr std::uint64_t kMostSteps = 50'000'000;

struct Expectation {
  std::string kind;               ///< Empty: clean.
  std::vector<std::string> also;  ///< Kinds that may come with it.
  int schedules = 0;
  std::string arch;  ///< Empty: the default.
};

Result<Expectation> ReadExpectation(const Path& path) {
  ASSAY_TRY(const Json json, ReadJsonFile(path.string()));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, path.string()));
  Expectation expectation;
  reader.Ignore("schema");
  reader.Ignore("about");
  ASSAY_TRY(expectation.kind, reader.Optional<std::string>("kind", ""));
  ASSAY_TRY(expectation.also, reader.Optional<std::vector<std::string>>("also", {}));
  ASSAY_TRY(const auto schedules, reader.Optional<std::int64_t>("schedules", 0));
  expectation.schedules = static_cast<int>(schedules);
  ASSAY_TRY(expectation.arch, reader.Optional<std::string>("arch", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return expectation;
}

/// The line that carries `mark` behind code; 0 when the mark stands alone, as for findings that are
/// about no line.
std::uint32_t MarkedLine(const std::string& source, std::string_view mark) {
  std::istringstream lines(source);
  std::string line;
  for (std::uint32_t number = 1; std::getline(lines, line); ++number) {
    const auto at = line.find(mark);
    if (at == std::string::npos) continue;
    return line.find_first_not_of(" \t") == at ? 0 : number;
  }
  return 0;
}

bool Touches(const Finding& finding, std::uint32_t line) {
  return line == 0 || std::ranges::any_of(finding.accesses, [&](const Access& access) {
           return access.site.line == line;
         });
}

class CorpusTest : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    auto toolbox = engine::Toolbox::Create({});
    if (toolbox) {
      toolbox_ = toolbox->release();
    } else {
      fault_ = ToString(toolbox.error());
    }
  }
  static void TearDownTestSuite() {
    delete toolbox_;
    toolbox_ = nullptr;
  }
  void SetUp() override { ASSERT_EQ(fault_, ""); }

  static Path Folder(const std::string& part) {
    return Path(ASSAY_SOURCE_DIR) / "corpus" / part / GetParam();
  }

  static Result<Outcome> Run(const Path& folder, const std::string& name, int schedules,
                             const std::string& arch) {
    const Path launch = folder / "launch.json";
    Job job;
    job.file = (folder / name).string();
    job.schedules = schedules;
    if (!arch.empty()) job.arch = arch;
    job.max_steps = kMostSteps;
    job.shrink = false;
    ASSAY_TRY(job.text, ReadFile(folder / name));
    ASSAY_TRY(const Json document, ReadJsonFile(launch.string()));
    ASSAY_TRY(job.plan, ops::ParseSanitizePlan(document, launch.string(), folder));
    return Sanitize(job, toolbox_->compiler(), toolbox_->emulator());
  }

  static std::string Text(const Outcome& outcome) {
    std::string text = std::string(Name(outcome.stop)) + " " + outcome.reason + "\n";
    for (const Finding& finding : outcome.findings) text += RenderText(finding, {});
    return text;
  }

  static void ExpectClean(const Path& folder, const std::string& name, int schedules,
                          const std::string& arch) {
    const auto outcome = Run(folder, name, schedules, arch);
    ASSERT_TRUE(outcome) << ToString(outcome.error());
    EXPECT_TRUE(outcome->findings.empty()) << Text(*outcome);
    EXPECT_EQ(outcome->stop, Stop::kCompleted) << Text(*outcome);
    EXPECT_GE(outcome->schedules, schedules);
  }

  static engine::Toolbox* toolbox_;
  static std::string fault_;
};
engine::Toolbox* CorpusTest::toolbox_ = nullptr;
std::string CorpusTest::fault_;

using BuggyTest = CorpusTest;

TEST_P(BuggyTest, IsFound) {
  const Path folder = Folder("buggy");
  const auto expectation = ReadExpectation(folder / "expect.json");
  ASSERT_TRUE(expectation) << ToString(expectation.error());
  const std::string source = ReadFile(folder / "bug.cu").value();
  ASSERT_NE(source.find("// BUG"), std::string::npos);
  const auto outcome = Run(folder, "bug.cu", expectation->schedules, expectation->arch);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  const std::uint32_t guilty = MarkedLine(source, "// BUG");
  const std::uint32_t other = MarkedLine(source, "// OTHER");
  bool found = false;
  for (const Finding& finding : outcome->findings) {
    const std::string kind(Name(finding.kind));
    if (kind == expectation->kind)
      found = found || (Touches(finding, guilty) && Touches(finding, other));
    else
      EXPECT_THAT(expectation->also, testing::Contains(kind)) << RenderText(finding, {});
  }
  EXPECT_TRUE(found) << "expected " << expectation->kind << " at line " << guilty
                     << (other == 0 ? "" : " and line " + std::to_string(other)) << "\n"
                     << Text(*outcome);
}

TEST_P(BuggyTest, TwinIsClean) {
  const Path folder = Folder("buggy");
  const auto expectation = ReadExpectation(folder / "expect.json");
  ASSERT_TRUE(expectation) << ToString(expectation.error());
  ExpectClean(folder, "fixed.cu", expectation->schedules, expectation->arch);
}

using PatternTest = CorpusTest;

TEST_P(PatternTest, IsCleanUnderManySchedules) {
  const Path folder = Folder("patterns");
  const auto expectation = ReadExpectation(folder / "expect.json");
  ASSERT_TRUE(expectation) << ToString(expectation.error());
  EXPECT_EQ(expectation->kind, "");
  ExpectClean(folder, "kernel.cu", kPatternSchedules, expectation->arch);
}

/// Folders with an expect.json below `part`, relative to it.
std::vector<std::string> Folders(const std::string& part) {
  const Path root = Path(ASSAY_SOURCE_DIR) / "corpus" / part;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (std::filesystem::exists(entry.path() / "expect.json"))
      names.push_back(std::filesystem::relative(entry.path(), root));
  }
  std::ranges::sort(names);
  return names;
}

std::string TestName(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Corpus, BuggyTest, testing::ValuesIn(Folders("buggy")), TestName);
INSTANTIATE_TEST_SUITE_P(Corpus, PatternTest, testing::ValuesIn(Folders("patterns")), TestName);

TEST(SanitizerCorpus, IsAsLargeAsPromised) {
  const auto count = [](std::string_view family) {
    return std::ranges::count_if(
        Folders("buggy"), [&](const std::string& folder) { return folder.starts_with(family); });
  };
  EXPECT_GE(count("memory/"), 20);
  EXPECT_GE(count("initialisation/"), 10);
  EXPECT_GE(count("race/"), 20);
  EXPECT_GE(count("schedule/"), 10);
  EXPECT_GE(Folders("patterns").size(), 30u);
}

}  // namespace
}  // namespace assay::sanitize

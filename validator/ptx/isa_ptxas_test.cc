// The ISA table against NVIDIA's assembler: ptxas must accept every example, and the plainest one
// at the version and architecture that the row names, no lower. Skipped where there is no ptxas.
// Run it after any change of isa*.def.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "validator/ptx/isa.h"
#include "validator/ptx/isa_examples.h"

namespace assay::ptx {
namespace {

namespace fs = std::filesystem;

/// ASSAY_PTXAS is a path, or "1" for the toolkit's.
std::optional<std::string> FindPtxas() {
  const char* const named = std::getenv("ASSAY_PTXAS");
  if (named == nullptr || *named == '\0') return std::nullopt;
  const char* const home = std::getenv("CUDA_HOME");
  for (const std::string& path :
       {std::string(named), std::string(home != nullptr ? home : "") + "/bin/ptxas",
        std::string("/usr/local/cuda/bin/ptxas")}) {
    if (access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path)) return path;
  }
  return std::nullopt;
}

/// PTX versions that first took an architecture, for those that ptxas 13 still knows.
int VersionFor(int sm) {
  constexpr std::array<std::pair<int, int>, 8> kRows = {
      {{75, 63}, {80, 70}, {86, 71}, {89, 78}, {90, 78}, {901, 80}, {100, 86}, {1001, 86}}};
  for (const auto& [known, version] : kRows) {
    if (known == sm) return version;
  }
  return 90;
}

class PtxasTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto found = FindPtxas();
    if (!found) GTEST_SKIP() << "takes minutes: set ASSAY_PTXAS=1 to run it";
    ptxas_ = *found;
    std::string pattern = (fs::temp_directory_path() / "assay-ptxas-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  bool Accepts(const std::string& text, int sm) {
    const fs::path file = folder_ / "example.ptx";
    std::ofstream(file) << text;
    const pid_t child = fork();
    if (child == 0) {
      const std::string arch = "-arch=" + ArchitectureText(sm);
      const std::string log = (folder_ / "log").string();
      if (std::freopen(log.c_str(), "w", stdout) == nullptr || dup2(1, 2) < 0) _exit(126);
      execl(ptxas_.c_str(), "ptxas", "-O0", arch.c_str(), "-o", "/dev/null", file.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::string Log() const {
    std::ifstream log(folder_ / "log");
    std::string line, text;
    for (int i = 0; i < 3 && std::getline(log, line); ++i) text += line + "\n";
    return text;
  }

  std::string ptxas_;
  fs::path folder_;
};

TEST_F(PtxasTest, AcceptsEveryExample) {
  for (const Form& form : Forms().subspan(1)) {
    const int sm = form.sm == 100 || form.sm > 901 ? form.sm : 901;
    const std::vector<std::string> examples = Examples(form);
    if (Accepts(ExampleModule(form, examples, sm, 90), sm)) continue;
    // Large accumulators do not fit the registers together.
    for (const std::string& example : examples) {
      EXPECT_TRUE(Accepts(ExampleModule(form, {example}, sm, 90), sm)) << example << "\n" << Log();
    }
  }
}

TEST_F(PtxasTest, AgreesOnVersionAndArchitecture) {
  constexpr std::array kArchitectures = {75, 80, 86, 89, 90};
  for (const Form& form : Forms().subspan(1)) {
    const int sm = std::max(form.sm, 75);
    const int version = std::max(form.ptx_version, VersionFor(sm));
    const std::vector<std::string> plainest = {Examples(form).front()};
    EXPECT_TRUE(Accepts(ExampleModule(form, plainest, sm, version), sm))
        << ArchitectureText(sm) << " " << version << " " << plainest[0] << "\n"
        << Log();
    if (version > VersionFor(sm)) {
      EXPECT_FALSE(Accepts(ExampleModule(form, plainest, sm, version - 1), sm))
          << "an older PTX version takes " << plainest[0];
    }
    const int base = form.sm > 200 ? form.sm / 10 : form.sm;
    const auto lower = std::find_if(kArchitectures.rbegin(), kArchitectures.rend(),
                                    [&](int known) { return known < base; });
    if (lower == kArchitectures.rend()) continue;
    EXPECT_FALSE(Accepts(
        ExampleModule(form, plainest, *lower, std::max(version, VersionFor(*lower))), *lower))
        << ArchitectureText(*lower) << " takes " << plainest[0];
  }
}

}  // namespace
}  // namespace assay::ptx

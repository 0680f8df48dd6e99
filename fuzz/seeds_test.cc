// Every target over its seeds, and over what simple mutations make of them: in every build, without a fuzzer. A crash is a failed check
// or a signal, and ends the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "fuzz/target.h"

namespace assay::fuzz {
namespace {

constexpr int kMutationsOfASeed = 40;
constexpr std::size_t kMostSeeds = 60;  // golden files of PTX are many
constexpr std::size_t kMostBytes = 64 << 10;

std::vector<std::string> SeedsOf(const Target& target) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(SeedFolder(target))) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  // Evenly over all of them.
  std::vector<std::string> seeds;
  const std::size_t step = std::max<std::size_t>(1, files.size() / kMostSeeds);
  for (std::size_t i = 0; i < files.size(); i += step) {
    auto text = ReadFile(files[i]);
    if (text && text->size() <= kMostBytes) seeds.push_back(*std::move(text));
  }
  return seeds;
}

/// Cuts, repeats, overwrites, or takes from another seed; a few times.
std::string Mutated(std::string text, const std::vector<std::string>& seeds, Rng& rng) {
  for (std::uint64_t i = 1 + rng.Below(4); i > 0; --i) {
    const std::size_t at = rng.Below(text.size() + 1);
    const std::size_t length = rng.Below(std::min<std::size_t>(text.size() - at, 24) + 1);
    const std::string& other = seeds[rng.Below(seeds.size())];
    const std::size_t from = rng.Below(other.size() + 1);
    switch (rng.Below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2:
        text.replace(at, length, other.substr(from, length));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(rng.Below(256));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

class Seeds : public ::testing::TestWithParam<Target> {};

TEST_P(Seeds, AndTheirMutationsAreRead) {
  const std::vector<std::string> seeds = SeedsOf(GetParam());
  ASSERT_FALSE(seeds.empty()) << SeedFolder(GetParam());
  GetParam().run("");
  Rng rng(20'261'122);
  for (const std::string& seed : seeds) {
    GetParam().run(seed);
    for (int i = 0; i < kMutationsOfASeed; ++i) GetParam().run(Mutated(seed, seeds, rng));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Seeds, ::testing::ValuesIn(Targets().begin(), Targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(FuzzTargets, EveryFolderOfSeedsHasATarget) {
  for (const auto& entry :
       std::filesystem::directory_iterator(Path(ASSAY_SOURCE_DIR) / "fuzz/seeds"))
    EXPECT_NE(FindTarget(entry.path().filename().string()), nullptr) << entry.path();
}

}  // namespace
}  // namespace assay::fuzz

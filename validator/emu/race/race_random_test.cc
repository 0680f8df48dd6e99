// The detector against the reference (race_reference.h), on seeded random traces (race_trace.h):
// every pair of accesses that it reports is a race of the same class there, and each byte with a
// race there has one reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/rng.h"
#include "validator/emu/race/race_trace.h"

namespace assay::emu {
namespace {

constexpr Mix kMixes[] = {
    {.name = "barriers",
     .weak = 6,
     .block_barrier = 3,
     .named_barrier = 1,
     .warp_barrier = 2,
     .exit = 1},
    {.name = "warp_wide",
     .events = 20,
     .weak = 4,
     .block_barrier = 4,
     .named_barrier = 1,
     .warp_barrier = 2,
     .whole_warps = true},
    {.name = "tiles",
     .events = 24,
     .weak = 6,
     .block_barrier = 5,
     .warp_barrier = 1,
     .whole_warps = true,
     .scattered = true},
    {.name = "own_tiles",
     .events = 30,
     .weak = 8,
     .block_barrier = 5,
     .warp_barrier = 1,
     .exit = 1,
     .whole_warps = true,
     .scattered = true,
     .own_memory = true},
    {.name = "own_copies",
     .events = 40,
     .weak = 8,
     .strong = 1,
     .atomic = 1,
     .fence = 1,
     .block_barrier = 5,
     .named_barrier = 1,
     .warp_barrier = 1,
     .copy = 4,
     .copy_wait = 4,
     .own_memory = true},
    {.name = "histogram",
     .events = 16,
     .weak = 1,
     .atomic = 6,
     .block_barrier = 3,
     .whole_warps = true,
     .scattered = true,
     .device_scopes = true},
    {.name = "device_atomics",
     .events = 40,
     .weak = 2,
     .strong = 2,
     .atomic = 8,
     .fence = 3,
     .block_barrier = 3,
     .exit = 1,
     .device_scopes = true},
    {.name = "flags", .weak = 4, .strong = 6, .fence = 4, .block_barrier = 1, .warp_barrier = 1},
    {.name = "atomics",
     .weak = 3,
     .strong = 2,
     .atomic = 6,
     .fence = 4,
     .block_barrier = 2,
     .exit = 1},
    {.name = "one_location",
     .events = 14,
     .weak = 2,
     .strong = 4,
     .atomic = 4,
     .fence = 3,
     .block_barrier = 1},
    {.name = "copies",
     .weak = 4,
     .block_barrier = 3,
     .warp_barrier = 1,
     .copy = 4,
     .copy_wait = 4,
     .mbarrier = 3},
    {.name = "clusters",
     .weak = 5,
     .strong = 1,
     .atomic = 1,
     .fence = 1,
     .block_barrier = 1,
     .mbarrier = 3,
     .cluster = 6},
    {.name = "everything",
     .events = 50,
     .weak = 8,
     .strong = 3,
     .atomic = 3,
     .fence = 4,
     .block_barrier = 3,
     .named_barrier = 1,
     .warp_barrier = 2,
     .exit = 1,
     .copy = 1,
     .copy_wait = 2,
     .mbarrier = 2,
     .cluster = 1,
     .read_only = 1},
    {.name = "locks",
     .events = 40,
     .weak = 1,
     .strong = 4,
     .atomic = 6,
     .fence = 6,
     .block_barrier = 1,
     .stays = true},
    {.name = "device_locks",
     .events = 60,
     .weak = 1,
     .strong = 4,
     .atomic = 6,
     .fence = 6,
     .block_barrier = 1,
     .exit = 1,
     .device_scopes = true,
     .stays = true},
};

class RaceRandom : public testing::TestWithParam<Mix> {};

TEST_P(RaceRandom, AgreesWithTheReference) {
  const Mix& mix = GetParam();
  // ASSAY_SOAK=100 tries a hundred times as many.
  const char* soak = std::getenv("ASSAY_SOAK");
  const std::uint64_t times = soak != nullptr ? std::max(1ul, std::strtoul(soak, nullptr, 10)) : 1;
  const std::uint64_t traces = (mix.whole_warps ? 600 : 3000) * times;
  std::uint64_t racy = 0;
  std::uint64_t wrong_pairs = 0;
  std::string worst;  // The shortest disagreement is the one to read.
  for (std::uint64_t seed = 0; seed < traces; ++seed) {
    Trace trace(mix, DeriveSeed(seed, mix.name));
    trace.Run();
    const std::string wrong = trace.Compare();
    if (!wrong.empty() && (worst.empty() || wrong.size() < worst.size())) worst = wrong;
    racy += trace.racy() ? 1u : 0u;
    wrong_pairs += trace.wrong_pairs;
  }
  EXPECT_TRUE(worst.empty()) << worst;
  EXPECT_LE(wrong_pairs, traces / 1000);
  // Both answers must have been tried often, or the comparison says little.
  EXPECT_GT(racy, traces / 25);
  EXPECT_GT(traces - racy, traces / 25);
}

INSTANTIATE_TEST_SUITE_P(Mixes, RaceRandom, testing::ValuesIn(kMixes),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace assay::emu

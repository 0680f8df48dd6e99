#include "validator/ptx/facts/control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/rng.h"
#include "validator/ptx/facts/facts_of.h"
#include "validator/ptx/facts/flow.h"

namespace assay::facts {
namespace {

/// An entry of `count` instructions: ways through it at random, back or forth.
std::string RandomWays(Rng& rng, std::uint64_t count) {
  std::string text = std::string(kHead) + ".visible .entry k()\n{\n" + std::string(kRegisters);
  for (std::uint64_t i = 0; i < count; ++i) {
    text += "l" + std::to_string(i) + ": ";
    const std::string target = "l" + std::to_string(rng.Below(count));
    switch (rng.Below(4)) {
      case 0:
        text += "@%p1 bra " + target + ";\n";
        break;
      case 1:
        text += rng.Below(3) == 0 ? "bra " + target + ";\n" : "@%p2 ret;\n";
        break;
      default:
        text += "mov.u32 %r1, 1;\n";
    }
  }
  return text + "}\n";
}

/// Can the end be come to from `from` without coming by `without`?
bool Ends(const std::vector<std::vector<std::uint32_t>>& next, std::uint32_t from,
          std::uint32_t without) {
  std::vector<bool> seen(next.size(), false);
  std::vector<std::uint32_t> open = {from};
  while (!open.empty()) {
    const std::uint32_t i = open.back();
    open.pop_back();
    if (i == without || seen[i]) continue;
    if (i + 1 == next.size()) return true;
    seen[i] = true;
    for (const std::uint32_t to : next[i]) open.push_back(to);
  }
  return false;
}

TEST(Control, AgreesWithTheDefinition) {
  Rng rng(11);
  int seen = 0;
  for (int round = 0; round < 300; ++round) {
    const std::string text = RandomWays(rng, 1 + rng.Below(10));
    const auto module = ptx::Parse(text, "test.ptx");
    ASSERT_TRUE(module) << ToString(module.error());
    const ptx::Function& function = module->functions.front();
    const auto end = static_cast<std::uint32_t>(function.body.size());
    std::vector<std::vector<std::uint32_t>> next = ptx::ControlFlow(function);
    next.emplace_back();
    for (std::uint32_t i = 0; i < end; ++i) {
      const bool returns = function.body[i].opcode == ptx::Opcode::kRet;
      const bool runs_off = i + 1 == end && !(function.body[i].opcode == ptx::Opcode::kBra &&
                                              !function.body[i].guard.present);
      if (returns || runs_off) next[i].push_back(end);
    }
    const bool all_end = std::ranges::all_of(next, [&](const auto& to) {
      return Ends(next, static_cast<std::uint32_t>(&to - next.data()), end + 1);
    });
    const auto control = ControlOf(function);
    ASSERT_EQ(control.has_value(), all_end) << text;
    if (!control) continue;
    ++seen;
    // Whoever comes by here comes by there as well.
    const auto always = [&](std::uint32_t here, std::uint32_t there) {
      return here == there || !Ends(next, here, there);
    };
    for (std::uint32_t i = 0; i < end; ++i) {
      const std::uint32_t join = control->joins_at[i];
      EXPECT_TRUE(join != i && (join == end || always(i, join))) << text << i;
      for (std::uint32_t other = 0; other < end; ++other) {
        if (other != i && other != join && always(i, other)) {
          EXPECT_TRUE(always(join, other)) << text << i << " " << other;
        }
        const bool decides = next[i].size() > 1 && (other == i || !always(i, other)) &&
                             std::ranges::any_of(next[i], [&](std::uint32_t to) {
                               return to != end && always(to, other);
                             });
        EXPECT_EQ(std::ranges::count(control->decided_by[other], i) > 0, decides)
            << text << i << " decides " << other;
      }
    }
  }
  EXPECT_GT(seen, 100);
}

}  // namespace
}  // namespace assay::facts

#include "validator/ptx/facts/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace assay::facts {
namespace {

using Graph = std::vector<std::vector<std::uint32_t>>;

/// By the definition: on a common cycle are two nodes that reach each other.
std::vector<std::vector<bool>> Reach(const Graph& graph) {
  std::vector<std::vector<bool>> reach(graph.size(), std::vector<bool>(graph.size(), false));
  for (std::size_t i = 0; i < graph.size(); ++i) {
    for (const std::uint32_t j : graph[i]) reach[i][j] = true;
  }
  for (std::size_t k = 0; k < graph.size(); ++k) {
    for (std::size_t i = 0; i < graph.size(); ++i) {
      for (std::size_t j = 0; j < graph.size(); ++j)
        reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
    }
  }
  return reach;
}

TEST(CyclesTest, AgreeWithTheDefinition) {
  Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    Graph graph(1 + rng.Below(9));
    for (auto& next : graph) {
      for (std::uint64_t edges = rng.Below(3); edges > 0; --edges)
        next.push_back(static_cast<std::uint32_t>(rng.Below(graph.size())));
    }
    const auto reach = Reach(graph);
    const auto cycle = Cycles(graph);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      EXPECT_EQ(cycle[i] != 0, reach[i][i]);
      for (std::size_t j = 0; j < graph.size(); ++j) {
        if (i == j || cycle[i] == 0) continue;
        EXPECT_EQ(cycle[i] == cycle[j], reach[i][j] && reach[j][i]);
      }
    }
  }
}

TEST(CyclesTest, AsDeepAsItLikes) {
  Graph chain(200'000);
  for (std::uint32_t i = 0; i + 1 < chain.size(); ++i) chain[i].push_back(i + 1);
  EXPECT_THAT(Cycles(chain), testing::Each(0u));
  chain.back().push_back(0);
  EXPECT_THAT(Cycles(chain), testing::Each(1u));
}

}  // namespace
}  // namespace assay::facts

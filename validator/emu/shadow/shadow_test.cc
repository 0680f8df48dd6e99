// The parts of shadow values: formulas and their derivatives, the ledger, pieces.
#include <gtest/gtest.h>

#include <cmath>

#include "validator/emu/shadow/formula.h"
#include "validator/emu/shadow/ledger.h"
#include "validator/emu/shadow/pieces.h"

namespace assay::emu {
namespace {

TEST(Formula, DerivativesAreSlopes) {
  constexpr double kStep = 1e-6;
  for (const Operands& x : {Operands{0.7, 1.3, -0.4}, Operands{2.5, -0.6, 3.0}}) {
    for (std::size_t operation = 0; operation < ptx::kOperationCount; ++operation) {
      const FormulaRow* const row = FindFormula(static_cast<ptx::Operation>(operation));
      if (row == nullptr) continue;
      const Formula at = row->evaluate(x);
      for (int i = 0; i < row->operands; ++i) {
        Operands up = x, down = x;
        up[static_cast<std::size_t>(i)] += kStep;
        down[static_cast<std::size_t>(i)] -= kStep;
        const double slope = (row->evaluate(up).value - row->evaluate(down).value) / (2 * kStep);
        EXPECT_NEAR(at.derivative[static_cast<std::size_t>(i)], slope,
                    1e-6 * std::max(1.0, std::fabs(slope)))
            << "operation " << operation << ", operand " << i;
      }
    }
  }
}

TEST(Ledger, ErrorsComeThroughByTheDerivative) {
  Ledger ledger(1 << 20);
  ledger.Begin();
  ledger.Charge(3, 0.5);
  const ValueId a = ledger.End(1.5, 1, NumberFormat::kF32);
  ledger.Begin();
  ledger.AddScaled(a, 4);
  ledger.Charge(2, -1);
  const ValueId b = ledger.End(5, 4, NumberFormat::kF32);
  ASSERT_EQ(ledger.ContributionsOf(b).size(), 2u);
  EXPECT_EQ(ledger.ContributionsOf(b)[0].site, 3u);
  EXPECT_EQ(ledger.ContributionsOf(b)[0].error, 2);
  EXPECT_EQ(ledger.ContributionsOf(b)[1].error, -1);
}

TEST(Ledger, WhatCancelsIsExact) {
  Ledger ledger(1 << 20);
  ledger.Begin();
  ledger.Charge(3, 0.5);
  const ValueId a = ledger.End(1.5, 1, NumberFormat::kF32);
  ledger.Begin();
  ledger.AddScaled(a, 1);
  ledger.AddScaled(a, -1);
  EXPECT_EQ(ledger.End(7, 7, NumberFormat::kF32), kExact);
}

TEST(Ledger, AnOverflowOutweighsRoundings) {
  Ledger ledger(1 << 20);
  ledger.Begin();
  ledger.Charge(3, 0.5);
  ledger.Charge(4, HUGE_VAL);
  const ValueId a = ledger.End(HUGE_VAL, 1e6, NumberFormat::kF16);
  ASSERT_EQ(ledger.ContributionsOf(a).size(), 1u);
  EXPECT_EQ(ledger.ContributionsOf(a)[0].site, 4u);
  // 1 / infinity is nearly what it should be: the overflow has healed.
  ledger.Begin();
  ledger.AddScaled(a, -1e-12);
  EXPECT_EQ(ledger.End(0, 0, NumberFormat::kF32), kExact);
}

TEST(Ledger, TooManySitesAreMergedSmallestFirst) {
  Ledger ledger(1 << 20);
  ledger.Begin();
  for (SiteId site = 1; site <= 100; ++site) ledger.Charge(site, site);
  const ValueId a = ledger.End(0, 1, NumberFormat::kF32);
  EXPECT_LE(ledger.ContributionsOf(a).size(), Ledger::kMostContributions);
  double total = 0, other = 0;
  for (const Contribution& part : ledger.ContributionsOf(a)) {
    total += part.error;
    if (part.site == kOtherSite) other = part.error;
    EXPECT_TRUE(part.site == kOtherSite || part.site > 77) << part.site;
  }
  EXPECT_EQ(total, 5050);
  EXPECT_EQ(other, 77 * 78 / 2);
}

TEST(Ledger, CollectKeepsWhatIsHeld) {
  Ledger ledger(1 << 20);
  std::vector<ValueId> held;
  for (int i = 0; i < 1000; ++i) {
    ledger.Begin();
    ledger.Charge(1, i + 1);
    const ValueId id = ledger.End(i + 1, 0, NumberFormat::kF32);
    if (i % 10 == 0) held.push_back(id);
  }
  ledger.Collect([&](auto visit) {
    for (ValueId& id : held) visit(id);
  });
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(ledger.At(held[i]).actual, static_cast<double>(10 * i + 1));
    ASSERT_EQ(ledger.ContributionsOf(held[i]).size(), 1u);
    EXPECT_EQ(ledger.ContributionsOf(held[i])[0].error, static_cast<double>(10 * i + 1));
  }
  EXPECT_FALSE(ledger.exhausted());
}

TEST(PieceMap, FindsWhatWasSetAndForgets) {
  PieceMap map;
  for (std::uint64_t key = 1; key <= 5000; ++key)
    map.Set(key * 7, {.value = static_cast<ValueId>(key), .bits = 1});
  for (std::uint64_t key = 1; key <= 5000; key += 2) map.Set(key * 7, {});
  for (std::uint64_t key = 1; key <= 5000; ++key) {
    const Piece* const piece = map.Find(key * 7);
    if (key % 2 == 1) {
      EXPECT_EQ(piece, nullptr);
    } else {
      ASSERT_NE(piece, nullptr);
      EXPECT_EQ(piece->value, key);
    }
  }
  EXPECT_EQ(map.Find(8), nullptr);
}

}  // namespace
}  // namespace assay::emu

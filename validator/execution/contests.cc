#include "validator/execution/contests.h"

#include <algorithm>
#include <string_view>

namespace assay {
namespace {

double StatisticOf(const Finding& finding, std::string_view name) {
  const auto found = std::ranges::find(finding.statistics, name, &Statistic::name);
  return found == finding.statistics.end() ? 0 : found->value;
}

std::size_t OrdersOf(const Finding& contest, std::size_t most) {
  const double kept = StatisticOf(contest, kContestOrders);
  return kept > 0 ? static_cast<std::size_t>(std::min(kept, static_cast<double>(most))) : 0;
}

}  // namespace

const Finding* ContestOf(const OrderReport& report, std::size_t order) {
  if (order >= report.orders.size()) return nullptr;
  for (const Finding& contest : report.contests) {
    const std::size_t kept = OrdersOf(contest, report.orders.size());
    if (order < kept) return &contest;
    order -= kept;
  }
  return nullptr;
}

std::vector<std::size_t> OrdersToBlame(const OrderReport& report) {
  std::vector<std::size_t> looking;
  std::vector<std::size_t> others;
  std::size_t first = 0;
  for (const Finding& contest : report.contests) {
    const std::size_t kept = OrdersOf(contest, report.orders.size());
    if (kept > 0 && first < report.orders.size())
      (StatisticOf(contest, kContestLooks) != 0 ? looking : others).push_back(first);
    first += kept;
  }
  looking.insert(looking.end(), others.begin(), others.end());
  return looking;
}

}  // namespace assay

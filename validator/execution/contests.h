// Who is to blame where results depend on the order of threads: of the pairs of accesses that see who
// came first (OrderReport::contests), the one whose order picks the value.
//
// Most are harmless: a ticket that says which block does which part, a poll that comes again. To know,
// one runs a pair of theirs the other way round, everything else as before. Holding a block up for
// that moves all that comes later; so pairs that only look (a flag that is read) are tried before
// those that write as well, whose turn moves the flags behind them.
#pragma once

#include <cstddef>
#include <vector>

#include "validator/execution/execution.h"

namespace assay {

/// What an engine says of a contest, as statistics of its finding.
inline constexpr const char* kContestPairs = "pairs";  ///< Seen in the run.
inline constexpr const char* kContestOrders =
    "orders";                                          ///< Kept in OrderReport::orders, contest by
                                                       ///< contest.
inline constexpr const char* kContestLooks = "looks";  ///< 1: the later access only reads.

/// The contest that number `order` of OrderReport::orders is of; null where that is not known.
const Finding* ContestOf(const OrderReport& report, std::size_t order);

/// One order of each contest, by number, those first that only look.
std::vector<std::size_t> OrdersToBlame(const OrderReport& report);

}  // namespace assay

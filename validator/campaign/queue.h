// Work that the blocks of a launch draw from a counter, one ticket after the other: which counter that is, and how many
// tickets there are (queue.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "validator/campaign/runner.h"

namespace assay::campaign {

struct Runner::Queue {
  BufferRange word;           ///< The counter.
  std::uint64_t step = 1;     ///< What it grows by with each ticket.
  std::uint64_t tickets = 0;  ///< Draws that find work, of all blocks together.
  std::uint64_t ticket_steps =
      0;  ///< What the first of them take each, by the skeleton where there is one.

  std::optional<std::uint64_t>
      writes_the_end;  ///< The ticket whose work that is, as far as is known.

  /// These alone are left to draw, and then that nothing is left.
  Tickets Deal(const std::set<std::uint64_t>& numbers) const {
    Tickets dealt{.word = word, .held = {}};
    for (const std::uint64_t number : numbers) dealt.held.push_back(number * step);
    dealt.held.push_back(tickets * step);
    return dealt;
  }
};

/// May blocks of a single launch meet in memory that is zero before it? So may those that draw from a counter there.
bool MayMeet(const Execution& execution);

}  // namespace assay::campaign

// What may have run in the context before the judged call: other calls, whose module-scope state and
// addresses the judged one finds.
//
// A kernel may count its calls, keep results and give them out again for what it takes to be the
// same input (the same shape, address, scalar, some of the values), or trust state that another call
// left. Each row of the table is a past in which one of these shows. Addresses come back where an
// allocator gives freed memory out again, as caching allocators do.
//
// Deterministic: what is drawn comes from the caller's generator.
//
//   probe = ProbeAfter(instance, Repetitions()[i % Repetitions().size()], judged, other, rng);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/rng.h"
#include "ops/op.h"
#include "validator/campaign/guidance.h"
#include "validator/cases/probe.h"

namespace assay::campaign {

struct Repetition {
  enum class Before : std::uint8_t {
    kSame,         ///< The judged call itself.
    kOtherValues,  ///< Its shape, other values.
    kOtherShape,   ///< Another case of the campaign.
    kSomeValues,   ///< Its values, but for a part of each tensor.
  } before = Before::kSame;
  std::size_t calls = 1;
  bool same_addresses = false;
  std::string_view shows;
};

std::span<const Repetition> Repetitions();

/// `judged` after the calls of a row. `other` is what kOtherShape takes.
cases::Probe ProbeAfter(const ops::Instance& instance, const Repetition& repetition,
                        const cases::Case& judged, const cases::Case& other, Rng& rng);

}  // namespace assay::campaign

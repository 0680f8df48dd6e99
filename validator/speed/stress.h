// The same call again and again on a GPU, under conditions that change which thread comes first: alone,
// replayed from a graph, beside a copy of itself, beside something that takes the memory's bandwidth,
// with half of the processors taken away, and at other addresses. An op that promises determinism has the
// same bits every time.
#pragma once

#include "validator/speed/meter.h"

namespace assay::speed {

/// kLimit where a condition did not run to its end: nothing is known then.
Result<Stressed> RunStressed(engine::Stopwatch& stopwatch, const Subject& subject,
                             const cases::Materialised& inputs, std::uint32_t repetitions);

}  // namespace assay::speed

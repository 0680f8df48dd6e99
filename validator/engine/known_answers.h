// Known answers: an engine is asked what everybody knows before it is believed.
//
// Four tiny programs run on the engine that is about to judge: a right one, whose results must be
// right to the bit, and three wrong ones (an access out of bounds, a race, an output left unwritten),
// which must be found out. An emulator that is broken, or a worker that answers what one wants to
// hear, cannot pass them, and so cannot accept anything. The values change with `seed`.
//
// Cost: five runs of two warps, about a millisecond each once the programs are loaded. As thread-safe
// as the engine.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "validator/engine/engine.h"

namespace assay::engine {

/// An error names the answer that was wrong; kInternal.
Status CheckKnownAnswers(Engine& engine, std::uint64_t seed);

}  // namespace assay::engine

// Runs made from a seed: kernels of several shapes, verdicts of all kinds, repairs. For tests and
// benchmarks of the corpus; nothing was judged.
#pragma once

#include "dataset/corpus.h"

namespace assay::testing {

/// A kernel whose flow and calls `shape` chooses, with names and layout chosen by `dress`: two of the
/// same shape and size are the same kernel, written otherwise.
std::string SyntheticKernel(int shape, std::uint64_t dress, int size = 64);

/// Run `number` of `op`: a first attempt and repairs, each refuted but for the last, which is
/// accepted more often than not. About five attempts. Deterministic.
dataset::RunRecord SyntheticRun(std::uint64_t seed, int number, const std::string& op);

/// `attempts` attempts at least, over twelve ops.
std::vector<dataset::RunRecord> SyntheticRuns(std::uint64_t seed, std::size_t attempts);

}  // namespace assay::testing

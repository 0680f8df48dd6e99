// The second half of race_bench: whole kernels (bench/kernels/{sync,pipeline}.cu) in the emulator, with race
// checking and without it, for sizes that double.
#pragma once

#include <string_view>

#include "base/json.h"

namespace assay {

/// A row for each kernel and size: processor seconds without and with race checking (everything
/// else as gates run it), their quotient, and the growth of the time with race checking over the
/// size before. All kernels when `only` is empty.
Json RaceKernelRows(std::string_view only);

}  // namespace assay

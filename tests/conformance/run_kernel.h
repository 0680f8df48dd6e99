// The very kernel that was recorded for a form, run by the whole emulator with all monitors.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "tests/conformance/forms.h"
#include "validator/execution/execution.h"

namespace assay::conformance {

inline constexpr std::size_t kRegisterBytes = 8 * kMaxThreads;

struct KernelRun {
  Report report;
  /// Register r of thread t at r * kRegisterBytes + 8 t, predicates as words of 32 bits.
  std::vector<std::byte> out;
};

Result<KernelRun> RunKernel(const Form& form,
                            const std::vector<std::vector<std::uint64_t>>& inputs);

}  // namespace assay::conformance

// Limits of the targets, as the CUDA programming guide's table of compute capabilities states them.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::policy {

struct Target {
  std::string_view arch;
  std::uint64_t shared_bytes_per_block;  ///< With the opt-in that launches make.
  std::uint64_t static_shared_bytes;     ///< What a kernel may declare statically.
  std::uint32_t registers_per_block;
  std::uint32_t registers_per_thread;
};

/// The row of `arch` ("sm_90", "sm_90a"); an unknown one gets the smallest limits of all.
const Target& TargetOf(std::string_view arch);

}  // namespace assay::policy

// Runs a form's instructions through the emulator's handlers: resolver, Decoded, a Warp with filled
// slots, and nothing else of the emulator's core.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/conformance/forms.h"

namespace assay::conformance {

struct Outputs {
  /// values[register][thread], registers of destinations flattened.
  std::vector<std::vector<std::uint64_t>> values;
  bool covered = false;   ///< Every instruction had a handler in the tables given.
  std::string uncovered;  ///< Its mnemonic, where not.
};

struct RunOptions {
  std::uint64_t seed = 0;            ///< Of the perturbation.
  std::uint32_t exec = 0xffffffffu;  ///< Lanes that run; the others keep the pattern `background`.
  std::uint8_t background = 0;       ///< Every byte of every destination, before.
  int level = -1;                    ///< Of the processor (levels.h); -1: the best.
};

/// Inputs as InputsOf returns them.
Result<Outputs> RunForm(const Form& form, const std::vector<std::vector<std::uint64_t>>& inputs,
                        const RunOptions& options = {});

}  // namespace assay::conformance

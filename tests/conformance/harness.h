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

/// Inputs as InputsOf returns them. `seed` is the perturbation seed. `exec` masks the lanes that
/// run: the others keep 0.
Result<Outputs> RunForm(const Form& form, const std::vector<std::vector<std::uint64_t>>& inputs,
                        std::uint64_t seed = 0, std::uint32_t exec = 0xffffffffu);

}  // namespace assay::conformance

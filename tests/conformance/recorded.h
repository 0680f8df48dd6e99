// What an H200 returned for every form, read from h200.json and h200.bin, and when a result counts
// as the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/conformance/forms.h"

namespace assay::conformance {

struct Recorded {
  Form form;
  std::vector<std::vector<std::uint64_t>> inputs;   ///< By register, then by thread.
  std::vector<std::vector<std::uint64_t>> outputs;  ///< Likewise; narrow registers in the low bits.
};

/// The recording in `folder` (with a slash at its end), forms in the order of the recording. An
/// error when a form, its inputs or the data are not those that were recorded.
Result<std::vector<Recorded>> ReadRecorded(const std::string& folder);

/// Where the emulator does not compute as the chip does (approximate f64 forms, tensor-core sums):
/// is what the hardware returned within the documented bound of the emulator's result? False for
/// all other forms, whose bits must agree.
bool Within(const Form& form, const std::string& kind, std::uint64_t emulated,
            std::uint64_t hardware, std::uint64_t input);

/// The kind of each register of operands, vectors flattened.
std::vector<std::string> FlatKinds(const std::vector<FormOperand>& operands);

}  // namespace assay::conformance

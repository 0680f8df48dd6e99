// Random straight-line programs of the exact forms of forms.txt, some instructions guarded: what forms
// do to each other's results. A program is itself a form, of several statements: every step writes
// registers of its own, all of which are destinations, so that a difference names its step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/conformance/forms.h"

namespace assay::conformance {

/// How many are recorded, and of which seed (h200_programs.json).
inline constexpr int kPrograms = 400;
inline constexpr std::uint64_t kProgramSeed = 20251120;

/// A pure function of its arguments.
std::vector<Form> RandomPrograms(std::span<const Form> forms, int count, std::uint64_t seed);

}  // namespace assay::conformance

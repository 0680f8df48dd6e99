#include "validator/emu/watch/coverage.h"

#include <algorithm>

#include "validator/emu/emulator.h"
#include "validator/ptx/isa_coverage.h"
#include "validator/ptx/isa_examples.h"

namespace assay::emu {

std::vector<std::string> RefusedSpellings(const ptx::Form& form) {
  constexpr int kPtxVersion = 90;
  std::vector<std::string> refused;
  for (const std::string& example : ptx::Examples(form)) {
    const auto program = Program::Load(
        ptx::ExampleModule(form, {example}, form.sm, std::max(kPtxVersion, form.ptx_version)));
    if (!program) refused.push_back(example + " " + ToString(program.error()));
  }
  return refused;
}

std::string PtxCoverage() {
  return ptx::CoverageDocument([](const ptx::Form& form) {
    const std::size_t tried = ptx::Examples(form).size();
    return ptx::Taken{tried - RefusedSpellings(form).size(), tried};
  });
}

}  // namespace assay::emu

// Prints docs/ptx-coverage.md: ptx_coverage > docs/ptx-coverage.md
// With --refused, the spellings that the emulator does not execute, one a line, each with the
// reason.
#include <cstdio>
#include <string>
#include <string_view>

#include "validator/emu/watch/coverage.h"

int main(int argc, char** argv) {
  std::string text;
  if (argc > 1 && std::string_view(argv[1]) == "--refused") {
    for (const assay::ptx::Form& form : assay::ptx::Forms().subspan(1)) {
      for (const std::string& line : assay::emu::RefusedSpellings(form)) text += line + "\n";
    }
  } else {
    text = assay::emu::PtxCoverage();
  }
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}

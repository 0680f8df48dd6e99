// Prints docs/ptx-coverage.md: ptx_coverage > docs/ptx-coverage.md
#include <cstdio>

#include "validator/ptx/isa_coverage.h"

int main() {
  const std::string document = assay::ptx::CoverageDocument();
  return std::fwrite(document.data(), 1, document.size(), stdout) == document.size() ? 0 : 1;
}

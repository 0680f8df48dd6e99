// Prints the table of docs/litmus.md.
#include <cstdio>

#include "tests/litmus/table.h"

int main() {
  const auto tests = assay::litmus::LoadAll();
  const auto recordings = assay::litmus::LoadRecordings();
  if (!tests || !recordings) {
    std::fprintf(stderr, "%s\n", ToString(!tests ? tests.error() : recordings.error()).c_str());
    return 3;
  }
  std::fputs(assay::litmus::Table(*tests, *recordings).c_str(), stdout);
  return 0;
}

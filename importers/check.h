// Does an imported reference compute what the function computes? Both in f64, on random cases.
//
// The reference runs as the oracle runs it, torch runs the exported graph with f64 for all floats, in the
// jail. They must agree to 1e-12 relative to the largest element of an output's row of values; integers
// and truth values exactly. Not thread-safe: one Agreement at a time for one oracle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "importers/import.h"
#include "importers/python.h"
#include "validator/cases/case.h"
#include "validator/oracle/oracle.h"

namespace assay::importers {

struct Agreement {
  std::size_t cases = 0;
  double worst = 0;    ///< Largest |reference - torch| / max(|torch|, scale of the output).
  std::string output;  ///< Where it was.
  std::string where;   ///< The case, as text.
  bool agrees = false;
};

inline constexpr double kAgreement = 1e-12;

/// `count` cases of small shapes and mixed values.
std::vector<cases::Case> CheckCases(const ops::Instance& instance, std::size_t count,
                                    std::uint64_t seed);

/// Runs them on both sides.
Result<Agreement> CheckImport(const Problem& problem, const ops::Instance& instance,
                              oracle::Oracle& oracle, const Python& python,
                              const RunOptions& options, std::size_t count, std::uint64_t seed);

}  // namespace assay::importers

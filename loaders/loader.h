// Loaders: how a vetted kernel is called. One generator writes, from the launch plan, the op and what
// the judge tried, kernel.py (PyTorch: a custom operator) and kernel.hpp (C++17, header only); both
// bring the machine code to the driver themselves, and refuse what the kernel was not vetted for.
//
//   ASSAY_TRY(const loaders::Loader loader, loaders::MakeLoader({.instance = ..., .plan = ...}));
//   WriteFileAtomically(folder / "kernel.py", loader.python);
//
// What is the same for all kernels stands in runtime/, as files of those languages, and goes into
// every loader as it is; what is written here is the part that differs: tables, and functions made of
// the plan's expressions. Names are C identifiers that are no word of the language, expressions are
// printed step by step from what was parsed, and texts are quoted: nothing of an op or a plan is
// pasted (docs/python.md).
//
// Pure functions of their arguments; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ops/launch_plan.h"
#include "ops/op.h"

namespace assay::loaders {

/// How long the judge tried an axis (validator/verdict/ledger.h).
struct Reach {
  std::int64_t whole = 0;      ///< Of a case all of which ran.
  std::int64_t in_slices = 0;  ///< Of one of which some blocks ran.
  std::int64_t at_ends = 0;    ///< Of one of which the ends ran.
};

struct LoaderInput {
  const ops::Instance& instance;
  const ops::LaunchPlan& plan;
  const std::map<std::string, std::string>& symbols;  ///< Entry -> name in the machine code.
  std::map<std::string, Reach> reach;                 ///< By axis; missing: not tried.
  /// Files beside the loader that hold the program, the preferred one first, and their SHA-256.
  std::vector<std::pair<std::string, std::string>> images;
};

struct Loader {
  std::string python;  ///< kernel.py
  std::string cpp;     ///< kernel.hpp
};

/// kUnsupported where a kernel is called in a way that loaders do not know; kMalformedInput where a
/// name could not stand in a program, which no plan that was read has.
Result<Loader> MakeLoader(const LoaderInput& input);

}  // namespace assay::loaders

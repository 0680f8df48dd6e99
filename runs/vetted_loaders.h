// The loaders of a vetted folder (loaders/loader.h) as they follow from what was judged: for emission,
// which writes them, and for verification, which makes them again and compares.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "loaders/loader.h"
#include "validator/verdict/ledger.h"

namespace assay::runs {

struct LoaderSources {
  const ops::Instance& instance;
  const std::string& launch;                          ///< Text of launch.json.
  const std::map<std::string, std::string>& symbols;  ///< Entry -> name in the machine code.
  const verdict::Ledger& ledger;
  const std::string& cubin;
  const std::string& ptx;
};

/// kernel.py and kernel.hpp by name. Fails where a kernel is called in a way that loaders do not know.
Result<std::map<std::string, std::string>> LoadersOf(const LoaderSources& sources);

}  // namespace assay::runs

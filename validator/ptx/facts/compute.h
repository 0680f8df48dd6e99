// Facts of a parsed module: one pass for what is used, a data-flow solution for where addresses and
// values come from (origins.h), the control-flow graph for loops and calls (flow.h).
//
// Cost: linear in the module for what compilers write (a few milliseconds for 5,000 instructions).
// What would take longer is given up and comes out as unknown. Thread-safety: a pure function.
#pragma once

#include <string>

#include "validator/ptx/facts/facts.h"
#include "validator/ptx/module.h"

namespace assay::facts {

struct FactsOptions {
  std::string own_file = "kernel.cu";  ///< Name of the author's file, without folders.
};

/// Any parsed module, verified or not.
Facts FactsOf(const ptx::Module& module, const FactsOptions& options);

}  // namespace assay::facts

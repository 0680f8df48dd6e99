// Options that name an instance: op, dtype binding; and the effort.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/op.h"
#include "validator/campaign/effort.h"

namespace assay::cli {

struct InstanceOptions {
  std::string op;
  std::vector<std::string> dtypes;  ///< "T=bf16"
};

enum class OpArgument { kPositionalOptional, kOption };
/// The op as first argument or as --op, and --dtype.
void AddInstanceOptions(CLI::App& command, InstanceOptions& options, OpArgument how);
Result<ops::Instance> MakeInstance(const InstanceOptions& options, const std::string& arch);

/// --effort, limited to quick, standard, thorough.
void AddEffortOption(CLI::App& command, std::string& effort);
campaign::Effort ParseEffort(const std::string& effort);

}  // namespace assay::cli

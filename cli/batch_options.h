// What the command line of `assay batch` says.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/models/limited_model.h"
#include "batch/plan.h"
#include "cli/generate_options.h"
#include "cli/workbench.h"

namespace assay::cli {

struct BatchRequest {
  std::vector<std::string> ops;
  bool all = false;
  std::string plan;
  std::vector<std::string> dtypes;
  bool all_dtypes = false;
  std::vector<std::string> archs = {"sm_90"};
  ModelOptions model;
  StrategyWords strategy;
  std::string feedback = "full";
  std::string effort = "standard";
  std::uint64_t seed = 1;
  loop::Budget budget;
  loop::Budget each;
  std::string prices;
  models::RequestLimits limits;
  bool alone = false;
  unsigned jobs = 0;  // 0: one here, as many as a cluster gives
  std::string executor = "local";
  batch::Resources resources;
  std::string out;
  std::string resume;
  bool recheck = false;
  std::string store = "store";
  std::string sign_key;
  WorkbenchOptions tools;  // its `jobs` are worker processes
  // Of a task of a cluster: written by the submitting shell.
  std::string task;
  std::string array;
  std::string digest;
};

void AddBatchOptions(CLI::App& command, BatchRequest& request);

}  // namespace assay::cli

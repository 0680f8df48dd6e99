// What the judging subcommands share: workers, compiler, engine, oracle, made from the common options.
//
// One Toolbox serves one invocation. Making it starts nothing: workers start on first use. Not thread-safe to make; its parts are as
// their own headers say.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "sandbox/worker_pool.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/oracle/oracle.h"

namespace assay::cli {

struct ToolboxOptions {
  std::string engine = "emulator";
  std::string arch = "sm_90";
  bool unsafe_no_jail = false;
  unsigned jobs = 0;             ///< Workers a kind; 0: as many as there are cores.
};

/// --engine, --arch, --jobs, --unsafe-no-jail.
void AddToolboxOptions(CLI::App& command, ToolboxOptions& options);

class Toolbox {
 public:
  /// Fails when the jail cannot be had (naming what to enable) and `unsafe_no_jail` was not given.
  static Result<std::unique_ptr<Toolbox>> Make(const ToolboxOptions& options);

  sandbox::WorkerPool& pool() { return *pool_; }
  engine::Compiler& compiler() { return *compiler_; }
  engine::Engine& engine() { return *engine_; }
  oracle::Oracle& oracle() { return *oracle_; }
  Clock& clock() { return clock_; }

 private:
  SystemClock clock_;
  std::unique_ptr<sandbox::WorkerPool> pool_;
  std::unique_ptr<engine::Compiler> compiler_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<oracle::Oracle> oracle_;
};

}  // namespace assay::cli

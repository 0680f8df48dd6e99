// Compiler and engine over one pool of workers: what the command line and tests build first.
//
//   ASSAY_TRY(auto toolbox, Toolbox::Create({.jail = true}));
//   oracle::Oracle oracle(toolbox->compiler(), toolbox->emulator());
#pragma once

#include <memory>

#include "sandbox/worker_pool.h"
#include "validator/engine/emulator_engine.h"
#include "validator/engine/gpu_engine.h"
#include "validator/engine/jailed_compiler.h"

namespace assay::engine {

class Toolbox {
 public:
  struct Options {
    bool jail = true;           ///< false is --unsafe-no-jail.
    sandbox::PoolOptions pool;  ///< `unsafe_no_jail` is taken from `jail`.
    JailedCompiler::Options compiler;
    Path compilations;  ///< Folder in which compiled references are kept; empty: none are.
    Path turns;         ///< Folder of what processes take turns at GPUs with; empty: they do not.
    EmulatorEngine::Options emulator;
    GpuEngine::Options gpu;
  };

  /// Fails where no jail can be had, with the cure, unless the jail was turned off.
  static Result<std::unique_ptr<Toolbox>> Create(Options options);

  Compiler& compiler() { return compiler_; }
  Engine& emulator() { return emulator_; }
  /// Starts nothing until it is asked for something.
  GpuEngine& gpu() { return gpu_; }
  sandbox::Workers& workers() { return *pool_; }
  sandbox::Isolation isolation() const { return pool_->isolation(); }

 private:
  Toolbox(std::unique_ptr<sandbox::Workers> pool, const Options& options)
      : pool_(std::move(pool)),
        compiler_(*pool_, options.compiler),
        emulator_(*pool_, options.emulator),
        gpu_(*pool_, options.gpu) {}

  std::unique_ptr<sandbox::Workers> pool_;
  JailedCompiler compiler_;
  EmulatorEngine emulator_;
  GpuEngine gpu_;
};

}  // namespace assay::engine

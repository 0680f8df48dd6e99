// For tests: the emulator in this process, the jailed compiler, the oracle, and one call that
// judges the numbers of a candidate. Only sources of this repository are run here; everything else
// goes through workers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "sandbox/worker_pool.h"
#include "validator/emu/emulator.h"
#include "validator/engine/engine.h"
#include "validator/engine/jailed_compiler.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

class LocalEngine final : public engine::Engine {
 public:
  std::string_view name() const override { return "emulator"; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust trust) override;

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const emu::Program>> programs_;
};

class LocalBench {
 public:
  /// Fails where no compiler can be had.
  static Result<std::unique_ptr<LocalBench>> Create();

  Oracle& oracle() { return oracle_; }
  engine::Compiler& compiler() { return compiler_; }

  /// A candidate, given as texts, on a case: compiled, run, compared. Findings of the run itself
  /// are errors here.
  Result<Comparison> Judge(const ops::Instance& instance, const std::string& kernel,
                           const std::string& launch, const cases::Case& value);
  /// Its outputs alone.
  Result<TensorMap> Outputs(const ops::Instance& instance, const std::string& kernel,
                            const std::string& launch, const cases::Materialised& inputs);

 private:
  explicit LocalBench(std::unique_ptr<sandbox::WorkerPool> pool)
      : pool_(std::move(pool)), compiler_(*pool_), oracle_(compiler_, engine_) {}

  std::unique_ptr<sandbox::WorkerPool> pool_;
  engine::JailedCompiler compiler_;
  LocalEngine engine_;
  Oracle oracle_;
};

}  // namespace assay::oracle

// What judging needs, made from an Environment: workers, compiler, engine, oracle, clock.
#pragma once

#include <memory>

#include "assay/judge.h"
#include "base/clock.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gatekeeper.h"
#include "validator/oracle/oracle.h"

namespace assay::api {

class Bench {
 public:
  static assay::Result<std::unique_ptr<Bench>> Make(const Environment& environment,
                                                    const JudgeOptions& options);

  oracle::Oracle& oracle() { return oracle_; }
  Clock& clock() { return clock_; }
  std::string isolation() const { return toolbox_->isolation().description; }
  gates::Tools MakeTools(const std::function<void(const Progress&)>& progress);

 private:
  explicit Bench(std::unique_ptr<engine::Toolbox> toolbox)
      : toolbox_(std::move(toolbox)), oracle_(toolbox_->compiler(), toolbox_->emulator()) {}

  SystemClock clock_;
  std::unique_ptr<engine::Toolbox> toolbox_;
  oracle::Oracle oracle_;
};

campaign::Effort EffortOf(Effort effort);

}  // namespace assay::api

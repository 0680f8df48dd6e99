// A compiler and an engine that can be told to stop: once they are, whatever they are asked is an
// error, so that a judgement nobody waits for ends with the run that is under way, inconclusive.
//
// They only stand before others, which must outlive them. Thread-safe as those are.
#pragma once

#include <stop_token>

#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"

namespace assay::serve {

inline std::unexpected<Error> Stopped() {
  return Fail(ErrorKind::kLimit, "cancelled: nobody waits for this judgement");
}

class StoppableCompiler final : public engine::Compiler {
 public:
  StoppableCompiler(engine::Compiler& compiler, std::stop_token stop)
      : compiler_(compiler), stop_(std::move(stop)) {}
  Result<engine::CompileOutcome> Compile(const engine::CompileRequest& request) override {
    if (stop_.stop_requested()) return Stopped();
    return compiler_.Compile(request);
  }

 private:
  engine::Compiler& compiler_;
  const std::stop_token stop_;
};

class StoppableEngine final : public engine::Engine {
 public:
  StoppableEngine(engine::Engine& engine, std::stop_token stop)
      : engine_(engine), stop_(std::move(stop)) {}
  std::string_view name() const override { return engine_.name(); }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust trust) override {
    if (stop_.stop_requested()) return Stopped();
    return engine_.Run(execution, buffers, trust);
  }

 private:
  engine::Engine& engine_;
  const std::stop_token stop_;
};

}  // namespace assay::serve

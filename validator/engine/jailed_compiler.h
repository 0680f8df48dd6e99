// The compiler that everything uses: NVRTC in a jailed worker, reached through sandbox::Workers,
// with results kept by digest.
//
// A source that does not compile is an outcome, and so are a worker that runs out of time or dies:
// they say something about the source. Errors are about the machine (no NVRTC, no jail). Outcomes
// of time-outs and crashes are not kept.
//
// Thread-safe. Cost: 0.1 to 1 s a compilation, microseconds when kept.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "base/lru.h"
#include "sandbox/workers.h"
#include "validator/engine/compiler.h"

namespace assay::engine {

class JailedCompiler final : public Compiler {
 public:
  struct Options {
    std::chrono::milliseconds deadline = std::chrono::seconds(60);
    std::size_t kept = 64;  ///< Most recent outcomes kept.
  };

  explicit JailedCompiler(sandbox::Workers& workers);
  JailedCompiler(sandbox::Workers& workers, Options options);

  Result<CompileOutcome> Compile(const CompileRequest& request) override;

 private:
  Result<CompileOutcome> Ask(const CompileRequest& request);

  sandbox::Workers& workers_;
  Options options_;
  std::mutex mutex_;
  Lru<CompileOutcome> kept_;  ///< By digest.
};

/// Digest of all that goes into a compilation.
std::string DigestOf(const CompileRequest& request);

/// Reads a reply of the compile service (workers/compile_service.h); nothing in it is believed.
Result<CompileOutcome> ReadCompileReply(const Json& header, std::string_view payload);

}  // namespace assay::engine

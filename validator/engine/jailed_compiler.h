// The compiler that everything uses: NVRTC in a jailed worker, reached through sandbox::Workers,
// with results kept by digest.
//
// A source that does not compile is an outcome, and so are a worker that runs out of time or dies:
// they say something about the source. Errors are about the machine (no NVRTC, no jail). Outcomes
// of time-outs and crashes are not kept. References may be kept beyond the process (compile_store.h).
// Whoever asks for what is being compiled waits for that.
//
// Thread-safe. Cost: 0.1 to 1 s a compilation, microseconds when kept, milliseconds when stored.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/lru.h"
#include "sandbox/workers.h"
#include "validator/engine/compile_store.h"
#include "validator/engine/compiler.h"

namespace assay::engine {

class JailedCompiler final : public Compiler {
 public:
  struct Options {
    std::chrono::milliseconds deadline = std::chrono::seconds(60);  ///< Of a candidate's.
    /// Of what the op brings along: that a machine is busy is no fault of it.
    std::chrono::milliseconds reference_deadline = std::chrono::minutes(5);
    std::size_t kept = 64;                           ///< Most recent outcomes kept.
    std::shared_ptr<const CompileStore> store = {};  ///< Of references; may be null.
  };

  explicit JailedCompiler(sandbox::Workers& workers);
  JailedCompiler(sandbox::Workers& workers, Options options);

  Result<CompileOutcome> Compile(const CompileRequest& request) override;

 private:
  class Turn;
  /// From the store, or by a worker.
  Result<CompileOutcome> Make(const CompileRequest& request, const std::string& digest);
  Result<CompileOutcome> Ask(const CompileRequest& request, const CompileStore* store,
                             const std::string& digest);

  sandbox::Workers& workers_;
  Options options_;
  std::mutex mutex_;
  std::condition_variable made_;
  std::set<std::string> making_;  ///< By digest.
  Lru<CompileOutcome> kept_;      ///< By digest.
};

/// Digest of all that goes into a compilation.
std::string DigestOf(const CompileRequest& request);

/// Reads a reply of the compile service (workers/compile_service.h); nothing in it is believed.
Result<CompileOutcome> ReadCompileReply(const Json& header, std::string_view payload);

}  // namespace assay::engine

// The engine that every machine has: the PTX emulator in a jailed worker.
//
// Request to the `emulate` worker: header {"action": "run", "program": <digest of the PTX>, "execution":
// <Execution without ptx>}, one descriptor a buffer, in order; inputs as read-only views, which the
// worker maps copy-on-write. Reply: header {"report": <Report>}; or {"unknown_program": true}, and the
// same is asked again with the PTX as payload. A reference's PTX has hundreds of kilobytes, and most of
// its runs take less time than sending that.
//
// Candidates and reference runs go to workers of different roles and never meet in one process.
// What the worker says is checked against the request (one entry a buffer), never believed beyond
// it.
//
// Thread-safe. Cost: a round trip of about 0.1 ms and the run.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "sandbox/workers.h"
#include "validator/engine/engine.h"

namespace assay::engine {

class EmulatorEngine final : public Engine {
 public:
  struct Options {
    // Budgets are steps. The clock only ends what hangs, so it allows some twenty times of what the
    // emulator needs on a machine that is busy with other work.
    std::chrono::milliseconds base_deadline = std::chrono::seconds(60);
    std::chrono::milliseconds per_million_steps = std::chrono::seconds(4);  ///< Of the limit.
    std::chrono::milliseconds longest = std::chrono::minutes(30);
  };

  explicit EmulatorEngine(sandbox::Workers& workers);
  EmulatorEngine(sandbox::Workers& workers, Options options);

  std::string_view name() const override { return "emulator"; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     Trust trust) override;

 private:
  struct Digest {
    std::string ptx;
    std::string hex;
  };

  std::string DigestOf(const std::string& ptx);

  sandbox::Workers& workers_;
  Options options_;
  std::mutex mutex_;
  std::vector<Digest> digests_;  ///< Of the programs that ran last, the last one first.
};

}  // namespace assay::engine

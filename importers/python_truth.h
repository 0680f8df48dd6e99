// Truths of an op whose reference is a Python function: torch in f64, in the jail. For functions that no
// graph can be made of, such as those whose control flow hangs on values.
//
//   "reference": {"kind": "python", "source": "reference.py", "launch": "reference.json"}
//   reference.json: {"schema": "assay.python/1", "function": "run"}
//
// The function takes the op's inputs by name, in f64 where they are floats (numbers that are passed by
// value as Python's own), and whatever axes it names as whole numbers; it returns the outputs in order.
//
// Such a truth is weaker: it comes as values, and what error is honest cannot be derived from values. So
// the errors are estimated (docs/precision.md): the function is run again with every rounding operation
// disturbed as the contract's accumulator might round it, and casts to 16 bits made or left out, and an
// element may be off by kFactor times the largest deviation. Its standing is kEstimated, which verdict
// and certificate say. There is no truth of single elements, of slices, or in a reference's own order.
//
// One process serves all truths of an op, since torch takes seconds to start; it is started again where
// it ended. Thread-safe: calls wait for each other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "importers/python.h"
#include "validator/oracle/truth_source.h"

namespace assay::importers {

class PythonTruth final : public oracle::TruthSource {
 public:
  /// How far an honest kernel may be off, in deviations of disturbed runs: the largest of kRuns
  /// underestimates what all kernels may do, as they round more often than torch's operators end.
  static constexpr double kFactor = 8;
  static constexpr int kRuns = 12;

  /// `find` says which Python to use, and is asked at the first truth, not before.
  PythonTruth(std::function<Result<Python>()> find, RunOptions options);
  ~PythonTruth() override;

  std::string_view kind() const override { return "python"; }
  oracle::Standing standing() const override { return oracle::Standing::kEstimated; }

  /// Loads the file and looks for the function.
  Status Check(const ops::Instance& instance) override;
  Result<oracle::Cells> Run(const ops::Instance& instance, const oracle::NumberType& type,
                            const ops::AxisValues& axes, const TensorMap& inputs) override;
  Result<oracle::Cells> RunAt(const ops::Instance& instance, const oracle::NumberType& type,
                              const ops::AxisValues& axes, const TensorMap& inputs,
                              const oracle::Wanted& wanted) override;
  Result<oracle::Cells> RunSlice(const ops::Instance& instance, const oracle::NumberType& type,
                                 const ops::AxisValues& axes, const TensorMap& inputs,
                                 std::uint64_t seed, const oracle::PartEffort& effort,
                                 oracle::Wanted& wanted) override;

 private:
  struct Server;
  struct Answer;
  /// Runs `work` on the thread that owns the process, and waits for it.
  void OnOwner(std::function<void()> work);
  Result<Answer> Ask(const ops::Instance& instance, const Json& request, std::string_view data);
  Result<Answer> AskOnce(const ops::Instance& instance, const Json& request, std::string_view data);

  std::function<Result<Python>()> find_;
  RunOptions options_;
  std::unique_ptr<Server> server_;  // touched by owner_ alone
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool stopping_ = false;
  // Linux ends a child that is to die with its parent when the thread that started it ends: so one
  // thread starts it, and lives as long as this does.
  std::thread owner_;
};

}  // namespace assay::importers

// Makes the inputs that an op declares as generated: those that belong to others, such as the rstd
// that a forward pass saved for its x.
//
// A generator is written like a reference (docs/ops.md) and runs as one: its inputs are the op's
// plain inputs, its outputs the generated ones. What it computes in FP64 is rounded to their dtypes.
//
// Beyond kMostWhole elements of a case, a generator runs for both ends and some places between them, and
// what it makes must be one and the same everywhere between: so it is where inputs are zero but for their
// ends.
//
//   ASSAY_TRY(cases::Materialised filled, cases::MaterialisePlain(instance, value));
//   ASSAY_TRY_VOID(generator.Fill(instance, value, filled));
//
// Deterministic. Results are kept by case, the oldest go first. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/lru.h"
#include "validator/cases/case.h"
#include "validator/oracle/reference_run.h"

namespace assay::oracle {

class Generator {
 public:
  /// `whole`: its machine runs grids of any size, and no parts of them (a GPU).
  explicit Generator(ReferenceRunner& runner, bool whole = false)
      : runner_(runner), whole_(whole) {}

  /// Elements of all tensors of a case for which it runs whole.
  static constexpr std::int64_t kMostWhole = std::int64_t{1} << 24;

  /// Adds the generated inputs to the plain ones in `filled`, which are those of `value`. The op
  /// must have a generator. Errors are faults of the op (its generator does not compile, has
  /// findings, leaves elements unwritten) or of the machine; kLimit where there are too many to make.
  Status Fill(const ops::Instance& instance, const cases::Case& value, cases::Materialised& filled);

 private:
  Status FillWhole(const ops::Instance& made, const cases::Materialised& filled,
                   TensorMap& tensors);
  Status FillEnds(const ops::Instance& made, const cases::Materialised& filled, TensorMap& tensors);
  /// How many elements are computed.
  struct EndsSize {
    std::int64_t at_each_end;
    std::int64_t between;
  };
  Status FillEnds(const ops::Instance& made, const cases::Materialised& filled,
                  const EndsSize& size, TensorMap& tensors);

  using Bytes = std::map<std::string, std::vector<std::byte>, std::less<>>;
  bool FillKept(const std::string& key, TensorMap& tensors);
  void Keep(std::string key, const TensorMap& tensors);

  ReferenceRunner& runner_;
  bool whole_ = false;
  std::mutex mutex_;
  // A probe's inputs are made for the run, its comparison and its shrinking; and for the next candidate of a
  // repair loop, which comes back to all cases of the one before.
  Lru<Bytes> kept_{1 << 16, std::size_t{64} << 20};
};

}  // namespace assay::oracle

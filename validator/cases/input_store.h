// Inputs that took long to draw, kept while they fit: the candidates of a repair loop are tried on the same cases, and one
// candidate on the same values more than once.
//
// Kept are the memory files. Whoever asks gets a mapping of its own, in which writes stay: nothing that is done to an
// input reaches those after it.
//
// Cost: a file and its pages for each that is kept, up to kMostKeptInputBytes; an eighth of the files that this process may
// have open. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/lru.h"
#include "base/tensor.h"

namespace assay::cases {

inline constexpr std::size_t kMostKeptInputBytes = std::size_t{384} << 20;
/// Smaller ones are drawn anew: a tenth of a millisecond.
inline constexpr std::int64_t kLeastKeptElements = 1 << 14;

class InputStore {
 public:
  InputStore();

  /// The tensor that `draw` makes, or made when it was asked for by this key before.
  Result<Tensor> Get(const std::string& key, const std::function<Result<Tensor>()>& draw);

 private:
  std::mutex mutex_;
  Lru<std::shared_ptr<const KeptTensor>> kept_;
};

}  // namespace assay::cases

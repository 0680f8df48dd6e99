// An index of kernels that answers: is there a near-duplicate of this one?
//
// Sketches are compared where they share a band, a quarter of a quarter of their entries: two with a
// likeness of kAlike differ in at most 12 of 64 entries, which can spoil at most 12 of the 16 bands,
// so that none is missed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataset/corpus.h"

namespace assay::dataset {

class Likes {
 public:
  void Add(const AttemptRow& attempt);
  /// Id of an added attempt that is a near-duplicate; attempts without a kernel have none.
  std::optional<std::int64_t> Find(const AttemptRow& attempt) const;

 private:
  static constexpr std::size_t kBands = 16;
  static constexpr std::size_t kRows = kSketchSize / kBands;
  static std::uint64_t BandOf(const Sketch& sketch, std::size_t band);

  struct Known {
    std::int64_t id = 0;
    Sketch sketch{};
  };
  std::unordered_map<std::string, std::int64_t> normalised_;
  std::unordered_map<std::string, std::int64_t> skeletons_;
  std::vector<Known> known_;
  std::array<std::unordered_map<std::uint64_t, std::vector<std::size_t>>, kBands> bands_;
};

}  // namespace assay::dataset

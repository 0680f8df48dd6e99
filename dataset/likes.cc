#include "dataset/likes.h"

#include "base/rng.h"

namespace assay::dataset {

static_assert((1.0 - kAlike) * kSketchSize < 16, "a band of sixteen must survive");

std::uint64_t Likes::BandOf(const Sketch& sketch, std::size_t band) {
  std::uint64_t hash = band;
  for (std::size_t i = 0; i < kRows; ++i) hash = Mix64(hash ^ sketch[band * kRows + i]);
  return hash;
}

void Likes::Add(const AttemptRow& attempt) {
  if (attempt.source.empty()) return;
  // The same text again adds nothing.
  if (!normalised_.emplace(attempt.normalised, attempt.id).second) return;
  skeletons_.emplace(attempt.skeleton, attempt.id);
  if (attempt.sketch == Sketch{}) return;
  for (std::size_t band = 0; band < kBands; ++band)
    bands_[band][BandOf(attempt.sketch, band)].push_back(known_.size());
  known_.push_back({attempt.id, attempt.sketch});
}

std::optional<std::int64_t> Likes::Find(const AttemptRow& attempt) const {
  if (attempt.source.empty()) return std::nullopt;
  if (const auto same = normalised_.find(attempt.normalised); same != normalised_.end())
    return same->second;
  if (const auto same = skeletons_.find(attempt.skeleton); same != skeletons_.end())
    return same->second;
  if (attempt.sketch == Sketch{}) return std::nullopt;
  for (std::size_t band = 0; band < kBands; ++band) {
    const auto bucket = bands_[band].find(BandOf(attempt.sketch, band));
    if (bucket == bands_[band].end()) continue;
    for (const std::size_t at : bucket->second) {
      if (Likeness(known_[at].sketch, attempt.sketch) >= kAlike) return known_[at].id;
    }
  }
  return std::nullopt;
}

}  // namespace assay::dataset

#include "validator/oracle/randomness.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace assay::oracle {
namespace {

constexpr std::int64_t kFewest = 16;
constexpr std::uint64_t kSample = 2048;
// Neighbours of equal magnitude, beyond what chance gives a bf16 normal (1 %).
constexpr double kRepeats = 0.25;
constexpr double kDistinct = 48;
// A value that comes so often in a row is rounded alike each time, once the sum lies far above it: what
// n roundings of d values lose grows by n / sqrt(d), not by sqrt(n).
constexpr double kOften = 32;
constexpr double kSignCorrelation = 0.3;
// Where nearly all are smaller, functions of them come out alike: exp(x) is 1, to a few roundings of 16
// bits, and so is every probability of a row.
constexpr double kAlike = 0x1p-8;
constexpr double kNearlyAll = 0.75;

// Elements `start + i * stride` of a tensor.
struct Line {
  std::int64_t start = 0;
  std::int64_t stride = 1;
  std::int64_t count = 0;
};

struct Tally {
  double pairs = 0;
  double repeats = 0;
  double same_side = 0;
};

void Follow(const Tensor& tensor, const Line& line, double centre, Tally& tally) {
  double previous = 0;
  bool has_previous = false;
  for (std::int64_t i = 0; i < line.count; ++i) {
    const double value = tensor.At(line.start + i * line.stride);
    // Zeros are looked at apart (Look); NaN and infinity end all statistics of their row by themselves.
    if (value == 0 || !std::isfinite(value)) continue;
    if (has_previous) {
      tally.pairs += 1;
      if (std::fabs(value) == std::fabs(previous)) tally.repeats += 1;
      tally.same_side += (value > centre) == (previous > centre) ? 1 : -1;
    }
    previous = value;
    has_previous = true;
  }
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// As how many values, all equally frequent, a row is drawn from: by how often two of the sorted sample
/// are equal.
double DifferentValues(const std::vector<double>& sorted) {
  double equal = 0, same = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    same = sorted[i] == sorted[i - 1] ? same + 1 : 0;
    equal += same;
  }
  const auto count = static_cast<double>(sorted.size());
  return count * (count - 1) / 2 / std::max(equal, 0.5);
}

void Judge(const Tally& tally, Randomness& randomness) {
  if (tally.pairs < 8) return;
  if (tally.repeats > kRepeats * tally.pairs) randomness.independent = false;
  const double noise = 3 / std::sqrt(tally.pairs);
  if (std::fabs(tally.same_side) > std::max(kSignCorrelation, noise) * tally.pairs) {
    randomness.exchangeable = false;
    // Neighbours lie on the same side of the middle: sorted, or in blocks.
    if (tally.same_side > 0) randomness.independent = false;
  }
}

void Look(const Tensor& tensor, Randomness& randomness) {
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const std::int64_t rows = columns == 0 ? 0 : tensor.elements / columns;
  // A first look, spread over the whole tensor.
  std::vector<double> sample;
  std::uint64_t zeros = 0, minute = 0;
  // Scattered, since a stride would fall in step with periodic data.
  const auto elements = static_cast<std::uint64_t>(tensor.elements);
  const std::uint64_t samples = std::min(elements, kSample);
  for (std::uint64_t i = 0; i < samples; ++i) {
    const double value =
        tensor.At(static_cast<std::int64_t>(elements <= kSample ? i : Mix64(i) % elements));
    if (value == 0) ++zeros;
    if (std::fabs(value) < kAlike) ++minute;
    if (value != 0 && std::isfinite(value)) sample.push_back(value);
  }
  // A zero rounds nothing in a sum, but what becomes of it may: exp(0 - max) is added as often.
  if (static_cast<double>(zeros) > kRepeats * static_cast<double>(samples) ||
      static_cast<double>(minute) > kNearlyAll * static_cast<double>(samples))
    randomness.independent = false;
  if (sample.size() < 8) return;
  const double centre = Median(sample);
  std::vector<double> magnitudes;
  for (const double value : sample) magnitudes.push_back(std::fabs(value));
  std::ranges::sort(magnitudes);
  const auto distinct = static_cast<double>(
      std::distance(magnitudes.begin(), std::unique(magnitudes.begin(), magnitudes.end())));
  if (distinct < std::min(kDistinct, static_cast<double>(sample.size()) / 2) ||
      static_cast<double>(columns) > kOften * DifferentValues(magnitudes))
    randomness.independent = false;

  Tally along, across;
  const std::int64_t lines = std::min<std::int64_t>(rows, 16);
  for (std::int64_t i = 0; i < lines; ++i) {
    const std::int64_t row = i * rows / lines;
    Follow(tensor, {row * columns, 1, std::min<std::int64_t>(columns, 256)}, centre, along);
  }
  const std::int64_t stacks = std::min<std::int64_t>(columns, 16);
  for (std::int64_t i = 0; rows > 1 && i < stacks; ++i) {
    const std::int64_t column = i * columns / stacks;
    Follow(tensor, {column, columns, std::min<std::int64_t>(rows, 256)}, centre, across);
  }
  Judge(along, randomness);
  Judge(across, randomness);
}

}  // namespace

Randomness RandomnessOf(const TensorMap& inputs) {
  Randomness randomness;
  for (const auto& [name, tensor] : inputs) {
    if (!IsFloat(tensor.dtype) || tensor.elements < kFewest) continue;
    Look(tensor, randomness);
  }
  if (!randomness.independent) randomness.exchangeable = false;
  return randomness;
}

}  // namespace assay::oracle

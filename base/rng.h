// Random numbers that are the same on every machine and for ever: counterexamples replay from a seed.
//
// SplitMix64 (Steele, Lea, Flood 2014) as a counter-based generator: value i of stream s is a pure function of (s, i), so tensors
// can be filled in any order. No std:: distribution is used, because their results differ between standard libraries.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay {

/// A good 64-bit mix of its argument.
std::uint64_t Mix64(std::uint64_t value);
/// A seed for a named sub-stream, e.g. DeriveSeed(case_seed, "input:x").
std::uint64_t DeriveSeed(std::uint64_t seed, std::string_view name);

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  /// Uniform in [0, bound); bound > 0. Unbiased.
  std::uint64_t Below(std::uint64_t bound);
  /// Uniform in [low, high], both included.
  std::int64_t Between(std::int64_t low, std::int64_t high);
  /// Uniform in [0, 1) with 53 bits.
  double Unit();
  /// Standard normal (Box-Muller, one of the pair).
  double Normal();

 private:
  std::uint64_t state_;
};

}  // namespace assay

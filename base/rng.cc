#include "base/rng.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace assay {

std::uint64_t Mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::uint64_t DeriveSeed(std::uint64_t seed, std::string_view name) {
  std::uint64_t derived = Mix64(seed);
  for (const char c : name) derived = Mix64(derived ^ static_cast<unsigned char>(c));
  return derived;
}

std::uint64_t Rng::Next() {
  const std::uint64_t value = Mix64(state_);
  state_ += 0x9e3779b97f4a7c15u;
  return value;
}

std::uint64_t Rng::Below(std::uint64_t bound) {
  ASSAY_CHECK(bound > 0);
  const std::uint64_t threshold = (0 - bound) % bound;  // 2^64 mod bound
  std::uint64_t value = Next();
  while (value < threshold) value = Next();
  return value % bound;
}

std::int64_t Rng::Between(std::int64_t low, std::int64_t high) {
  ASSAY_CHECK(low <= high);
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (span == UINT64_MAX) return static_cast<std::int64_t>(Next());
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + Below(span + 1));
}

double Rng::Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

double Rng::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Unit()));
  return radius * std::cos(2.0 * std::numbers::pi * Unit());
}

}  // namespace assay

// Digests of the recorded data. FNV-1a: they find a change of the forms or the inputs since the
// recording, not an adversary.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace assay::conformance {

inline constexpr std::size_t kFormsPerModule = 64;

inline std::string DigestBytes(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  char text[17] = {};
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

inline std::string DigestInputs(const std::vector<std::vector<std::uint64_t>>& inputs) {
  std::vector<std::uint8_t> bytes;
  for (const auto& lanes : inputs) {
    for (const std::uint64_t value : lanes) {
      for (int b = 0; b < 8; ++b) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * b)));
    }
  }
  return DigestBytes(bytes);
}

}  // namespace assay::conformance

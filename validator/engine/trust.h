// Which worker processes a request may use: what compiles or runs a candidate never compiles or
// runs a reference, so that a candidate that took a worker over cannot touch the truth it is judged
// by.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::engine {

enum class Trust : std::uint8_t { kCandidate, kReference };

/// The role of workers (sandbox/workers.h): processes of different roles are different processes.
constexpr std::string_view RoleOf(Trust trust) {
  return trust == Trust::kReference ? "reference" : "candidate";
}

}  // namespace assay::engine

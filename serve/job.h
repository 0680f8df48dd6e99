// A job of the service: what a client asked for, and what came of it. A value; the journal holds the
// truth about it (journal.h), the desk its course (desk.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::serve {

struct Job {
  enum class State : std::uint8_t { kQueued, kRunning, kEnded, kCancelled };

  std::uint64_t number = 0;
  std::string client;
  std::string key;          ///< The client's own name for it: asked again, it is the same job.
  std::uint64_t group = 0;  ///< The first job of those submitted together; 0: alone.
  std::string kind;         ///< "check", "reward" or "generate".
  std::string request;      ///< JSON, as it was submitted; empty once it is over.
  std::string digest;       ///< SHA-256 of kind and request.
  State state = State::kQueued;
  // Of one that has ended:
  std::string outcome;  ///< As in verdicts.
  std::string reason;
  std::string document;     ///< SHA-256 of jobs/<number>.json.
  std::string certificate;  ///< SHA-256 of the vetted folder's certificate; empty: none.

  bool Over() const { return state == State::kEnded || state == State::kCancelled; }
  bool operator==(const Job&) const = default;
};

constexpr std::string_view Name(Job::State state) {
  constexpr std::string_view kNames[] = {"queued", "running", "ended", "cancelled"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace assay::serve

// A probe: everything that describes one run of a candidate besides the candidate itself. What
// campaigns schedule, shrinking reduces and counterexamples carry.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/cases/case.h"
#include "validator/execution/execution.h"

namespace assay::cases {

struct Probe {
  Case case_;                 ///< The call that is judged.
  std::vector<Case> prelude;  ///< Calls made before it in the same context.
  /// Each call's buffers lie where those of the call before it lay; else every call has addresses of
  /// its own. Says nothing without a prelude.
  bool reuse_addresses = false;
  Schedule schedule;
  std::uint64_t perturbation_seed = 0;
  std::uint8_t poison = 0xff;  ///< What outputs and workspace hold before the first launch.
  std::uint32_t misalign = 0;  ///< Bytes by which every buffer misses a 256-byte boundary, rounded
                               ///< down to its element size.
  /// Only some blocks of each grid run, and what they wrote is judged: a slice (campaign/slices.cc);
  /// or where inputs have the profile `ends`, the first and last blocks (campaign/ends.cc).
  bool ends_only = false;
  /// Of a slice: so many blocks of each grid that is cut; 0: as many as can be afforded. What ran says how
  /// many it had, so that a replay has the same.
  std::uint64_t slice_blocks = 0;
  /// Of a slice: of launches before the last one run those blocks that what runs of it needs
  /// (campaign/needed.cc).
  bool needed_only = false;
  /// Of a slice: launches are cut whose blocks may depend on each other, for those that ran met no others.
  bool apart = false;
  /// Of a slice: no values are judged, only where the program writes, which its skeleton says (campaign/places.cc).
  bool places_only = false;
  bool operator==(const Probe&) const = default;
};

}  // namespace assay::cases

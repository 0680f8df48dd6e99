// Which findings a run with old values (Schedule::stale) may have for that reason.
#pragma once

#include "validator/findings/finding.h"

namespace assay {

/// What a thread does with an old value; not what it does to others.
inline bool MayComeOfOldValues(const Finding& finding) {
  switch (finding.kind) {
    case FindingKind::kDataRace:
    case FindingKind::kSameValueRace:
    case FindingKind::kReadOnlyCacheWrite:
    case FindingKind::kBarrierDivergence:
    case FindingKind::kBarrierMisuse:
      return false;
    default:
      return true;
  }
}

}  // namespace assay

#include "validator/policy/targets.h"

#include <algorithm>
#include <array>

namespace assay::policy {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::array kTargets = {
    Target{"sm_75", 64 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_80", 163 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_86", 99 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_87", 163 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_89", 99 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_90", 227 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_100", 227 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_103", 227 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_120", 99 * kKiB, 48 * kKiB, 65536, 255},
    Target{"sm_121", 99 * kKiB, 48 * kKiB, 65536, 255},
};

}  // namespace

const Target& TargetOf(std::string_view arch) {
  // sm_90a and sm_100f have the limits of their families.
  while (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) arch.remove_suffix(1);
  const auto found = std::ranges::find(kTargets, arch, &Target::arch);
  return found == kTargets.end() ? kTargets.front() : *found;
}

}  // namespace assay::policy

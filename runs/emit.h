// Emission: the only way out of a run for a kernel. Takes a VettedKernel, which only the Gatekeeper
// can make, and nothing else.
//
// Writes kernel.cu, launch.json, kernel.ptx, kernel.<arch>.cubin and certificate.json
// (assay.certificate/1) into a folder that appears whole or not at all. The certificate names the
// hashes of everything that went in and came out, every gate with its cases, seeds, limits and
// time, what was skipped, and the tools' versions; but for times it is a function of the kernel and
// its judgement.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "validator/gates/gatekeeper.h"

namespace assay::runs {

/// Where a kernel comes from, for the certificate.
struct Provenance {
  std::string author;  ///< The model, as it names itself.
  int attempt = 0;
  std::string prompts_digest;
  std::map<std::string, std::string> versions;  ///< Tools by name.
};

Json CertificateOf(const gates::VettedKernel& kernel, const Provenance& provenance,
                   const std::string& time);

/// Replaces what `folder` held.
Status Emit(const gates::VettedKernel& kernel, const Provenance& provenance, Clock& clock,
            const Path& folder);

}  // namespace assay::runs

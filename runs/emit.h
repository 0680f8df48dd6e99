// Emission: the only way out of a run for a kernel. Takes a VettedKernel, which only the Gatekeeper
// can make, and nothing else.
//
// Writes kernel.cu, launch.json, kernel.ptx, kernel.<arch>.cubin, the loaders kernel.py and kernel.hpp
// (loaders/loader.h) and certificate.json (assay.certificate/1) into a folder that appears whole or
// not at all. The certificate names the hashes of everything that went in and came out, every gate with its cases, seeds, limits and
// time, what was skipped, and the tools' versions; but for times it is a function of the kernel and
// its judgement. It carries its own digest, and with a key it is signed (runs/signature.h).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "runs/signature.h"
#include "validator/gates/gatekeeper.h"

namespace assay::runs {

/// Where a kernel comes from, for the certificate.
struct Provenance {
  std::string author;  ///< The model, as it names itself; empty: somebody who did not say.
  int attempt = 0;
  std::string prompts_digest;                   ///< Empty: no model was prompted.
  std::map<std::string, std::string> versions;  ///< Tools by name.
  std::shared_ptr<const SigningKey> signer{};   ///< Null: nobody signs.
};

Json CertificateOf(const gates::VettedKernel& kernel, const Provenance& provenance,
                   const std::string& time);

/// Writes the kernel beside `folder` (FOLDER.new) and returns the certificate's digest. Once that
/// is recorded, Publish puts it in place: whatever a crash leaves, the record names one kernel, and
/// it is there.
Result<std::string> Emit(const gates::VettedKernel& kernel, const Provenance& provenance,
                         Clock& clock, const Path& folder);

/// Writes the vetted folder `from`, which is whole, beside `folder` as Emit does.
Result<std::string> EmitCopy(const Path& from, const Path& folder);

/// Puts what Emit wrote in place of what `folder` held, where that has not been done, and checks
/// that the folder holds it: the certificate has the digest `certificate` (empty: a record that
/// names none), every file has the digest that the certificate says, and there is no other file.
Status Publish(const Path& folder, const std::string& certificate);

}  // namespace assay::runs

// Is this folder what the judge let out? What `assay verify` asks of a vetted folder (runs/emit.h),
// long after the judgement, on any machine, of a folder that may have come from anybody.
//
//   files        every file has the digest that the certificate says; none is missing, none more
//   certificate  is as it was written, and is about this op, dtypes and target
//   signature    is the key's that the certificate names; and that is the key we were given
//   op           is the one of this library
//   sources      still compile to this PTX and this machine code
//   judge        is this one (only where it is asked for)
//
// A check holds, is broken, could not be done (the compiler is of another version, the op is not
// here), or was not asked for. One broken check refuses the folder; one that could not be done
// leaves it undecided; nothing is judged again. Without a key a folder is only known to be whole:
// who can write it can make another one that is whole as well.
//
//   const Verification verification = Verify("vetted/x", {.compiler = &compiler, .find_op = find});
//   if (verification.outcome() == Verification::Outcome::kHolds) ...
//
// Cost: one compilation. Nothing of the folder is executed; the compiler runs in the jail.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"
#include "runs/signature.h"
#include "validator/engine/compiler.h"
#include "validator/verdict/ledger.h"

namespace assay::runs {

/// The files that a certificate names, with their digests. Names are plain names of files.
Result<std::map<std::string, std::string>> FilesOf(const Json& certificate,
                                                   const std::string& file);
/// Every file that the certificate names is in the folder with its digest, and nothing else is but
/// the certificate and, where it names a signer, the envelope.
Status CheckFiles(const Path& folder, const Json& certificate);

struct VerifyOptions {
  engine::Compiler* compiler = nullptr;  ///< Null: sources are not compiled,
  std::string no_compiler;               ///< because; empty: nobody asked for it.
  std::function<Result<ops::OpSpec>(const std::string&)> find_op;
  std::optional<PublicKey> key;  ///< Whose signature it must be.
  /// Versions and digests of the judge of today; the certificate's must be the same.
  std::optional<std::map<std::string, std::string>> current;
};

struct Verification {
  enum class Standing : std::uint8_t { kHolds, kBroken, kUnknown, kNotAsked };
  enum class Outcome : std::uint8_t { kHolds, kBroken, kUnknown };
  struct Check {
    std::string name;
    Standing status = Standing::kNotAsked;
    std::string detail;
  };
  std::vector<Check> checks;
  // What the certificate says, where it is one; words of whoever wrote it.
  std::string instance;
  std::string engine;
  std::string signer;                ///< Empty: not signed.
  verdict::Ledger ledger;            ///< What was tried, and what was left out.
  std::vector<std::string> skipped;  ///< "device: no GPU was asked for": gates that did not run.

  Outcome outcome() const;
};
std::string_view Name(Verification::Standing standing);
/// "verified", "refused", "inconclusive".
std::string_view Name(Verification::Outcome outcome);

/// Never fails: what cannot be read is a broken check.
Verification Verify(const Path& folder, const VerifyOptions& options);

/// assay.verification/1
Json ToJson(const Verification& verification);
/// For people; ends in a newline.
std::string RenderText(const Verification& verification);

}  // namespace assay::runs

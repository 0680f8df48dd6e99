// Counterexamples kept for ever: what once refuted a candidate of an instance is tried first on
// every later one, in this run and in later ones.
//
// One folder an instance, one small file a counterexample, named by the digest of its probe, so
// that the same case is kept once. Held- out cases are never kept: they would no longer be held
// out.
//
//   RegressionStore store(folder);
//   options.regressions = store.Load(instance);
//   ... judge ...
//   ASSAY_TRY_VOID(store.Add(instance, judgement.verdict));
//
// Files are written atomically; several processes may share a store. A file that cannot be read is
// skipped and named in `problems`.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "validator/verdict/verdict.h"

namespace assay::verdict {

class RegressionStore {
 public:
  explicit RegressionStore(Path folder, std::size_t most = 64)
      : folder_(std::move(folder)), most_(most) {}

  /// Simplest cases first, at most `most` of them; an empty list when there are none.
  std::vector<Counterexample> Load(const ops::Instance& instance,
                                   std::vector<Error>* problems = nullptr) const;

  /// Keeps the verdict's counterexamples that have a case. Beyond `most` files of an instance
  /// nothing is added.
  Status Add(const ops::Instance& instance, const Verdict& verdict) const;

 private:
  Path FolderOf(const ops::Instance& instance) const;

  Path folder_;
  std::size_t most_;
};

}  // namespace assay::verdict

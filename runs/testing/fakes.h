// What tests of runs are made of: folders of their own, an instance, replies and verdicts made from
// a few words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "ops/op.h"
#include "validator/verdict/verdict.h"

namespace assay::testing {

/// A folder of its own, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const Path& path() const { return path_; }

 private:
  Path path_;
};

/// An instance of the library's rms_norm in bf16.
ops::Instance RmsNorm();

/// A reply in the right form whose kernel holds `// judge: WORDS`, which ScriptedJudge obeys.
std::string ReplyWith(const std::string& words);

/// A verdict made of gate results: "passed", "refuted KIND", "inconclusive REASON".
verdict::Verdict VerdictOf(const ops::Instance& instance, const verdict::Candidate& candidate,
                           const std::string& words);

std::string Slurp(const Path& file);
/// The lines of `text`, sorted: for files in which overlapping requests and judgements may end in
/// any order.
std::string SortedLines(std::string_view text);
/// Every regular file below `folder`, relative, sorted.
std::vector<std::string> FilesBelow(const Path& folder);

}  // namespace assay::testing

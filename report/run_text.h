// Runs and comparisons of runs as text and as JSON: what `assay runs` prints.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/diff.h"
#include "report/run_view.h"

namespace assay::report {

/// assay.run_view/1: outcome, cost, and a row an attempt.
Json RunAsJson(const RunView& run);
/// The same for people, with the verdict that counts.
std::string RunAsText(const RunView& run);

/// Two attempts, of one run or of two.
struct Compared {
  struct Side {
    std::string name;
    const RunView* run = nullptr;
    const AttemptView* attempt = nullptr;
  };
  Side before, after;
};
/// What changed in the judgement: gate by gate, which findings went, stayed and came.
struct JudgementChange {
  struct Gate {
    std::string gate, before, after;  ///< Status, or empty where the gate is not there.
  };
  std::vector<Gate> gates;
  std::vector<const Finding*> gone, stayed, came;
};
JudgementChange ChangeOf(const AttemptView& before, const AttemptView& after);

/// assay.run_comparison/1.
Json ComparisonAsJson(const Compared& compared);
/// For people: outcomes, gates that differ, findings, then the kernels' difference in the unified form.
std::string ComparisonAsText(const Compared& compared);

/// "@@ -1,3 +1,4 @@" and the lines, as `diff -u` prints them.
std::string UnifiedDiff(const std::string& before_name, const std::string& after_name,
                        std::string_view before, std::string_view after);

}  // namespace assay::report

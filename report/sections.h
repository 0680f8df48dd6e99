// The parts of a page, one file each. Pure functions of what was read; each gives markup, or nothing where there is nothing to say.
#pragma once

#include <initializer_list>
#include <string_view>

#include "report/html.h"
#include "report/run_view.h"

namespace assay::report {

/// The verdict with what was left out, and the run in figures.
Html SummarySection(const RunView& run);
/// Every attempt in order: gates, findings, what changed.
Html AttemptsSection(const RunView& run, Ration& ration);
/// One counterexample: its findings with source, race diagram, numbers, and how it is run again.
Html CounterexampleCard(const verdict::Counterexample& counterexample, std::string_view kernel,
                        std::string_view replay);
/// Two accesses, the barriers between them, and the edge that is missing. Empty where the finding has no two accesses to order.
Html RaceDiagram(const Finding& finding, std::string_view kernel);
/// Histogram, map and growth of each output. Empty where the verdict holds none.
Html ErrorPlots(const verdict::Verdict& verdict);
/// What was tried and what was left out, wave by wave and axis by axis.
Html LedgerSection(const AttemptView& attempt);
/// The kernel that counts, with the sides of branches that no case reached.
Html SourceSection(const AttemptView& attempt, Ration& ration);
/// Tokens, money and time, attempt by attempt and gate by gate.
Html CostSection(const RunView& run);
/// What was asked: settings, budget, versions.
Html RequestSection(const RunView& run);

// --- what they share

/// A tag with the outcome's colour: "accepted", "refuted: race", "inconclusive", or another state.
Html StateTag(std::string_view state);
/// The class of a state's colour.
Literal ToneOf(std::string_view state);
/// `<dt>`, `<dd>` of a list of figures.
Html Figure(std::string_view name, std::string_view value, std::string_view more = {});
/// `<details>`: closed, but on paper.
Html Folded(const Html& summary, const Html& content, bool open = false);
/// A table's head.
Html HeadRow(std::initializer_list<std::string_view> names);

}  // namespace assay::report

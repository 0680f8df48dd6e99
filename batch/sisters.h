// What instances of one op learn from one another.
//
// The first of them in the plan leads. When it has ended, the others begin: with its kernel shown in
// their first prompt, where it was accepted, and with the cases that refuted its attempts run first
// on each of theirs. Which kernel and which cases is settled when a follower begins and does not
// depend on who was faster: a batch takes the same course with any number of jobs, killed or not.
//
// A replayed transcript asks what it asked when it was recorded: it is shown no kernel.
#pragma once

#include <optional>
#include <vector>

#include "agent/loop/judge.h"
#include "batch/plan.h"

namespace assay::batch {

/// The index of the instance that leads `index`; nothing for one that leads.
std::optional<std::size_t> LeaderOf(const Plan& plan, std::size_t index);
/// LeaderOf for all at once.
std::vector<std::optional<std::size_t>> Leaders(const Plan& plan);

/// The kernel of a vetted folder, as what a sister is shown.
Result<prompts::Sister> SisterFrom(const std::string& instance, const Path& vetted);
/// Whether the model of `request` is shown a sister's kernel.
bool TakesSister(const loop::GenerateRequest& request);

/// Keeps the cases that refuted the attempts of the run in `run` for the run's sisters.
Status ShareRegressions(const Path& store, const ops::Instance& instance, const Path& run);
/// Those that `leader`'s run left.
std::vector<verdict::Counterexample> SharedRegressions(const Path& store,
                                                       const ops::Instance& leader);

/// Judges that try `regressions` beside those that a context brings.
std::vector<std::unique_ptr<loop::Judge>> WithRegressions(
    std::vector<std::unique_ptr<loop::Judge>> judges,
    const std::vector<verdict::Counterexample>& regressions);

}  // namespace assay::batch

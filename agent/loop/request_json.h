// A request as run.json and the first event show it, and back. Secrets are not in a request; a base
// URL is recorded without user, password and query.
#pragma once

#include <string>

#include "agent/loop/generate.h"
#include "base/fields.h"

namespace assay::loop {

using StrategyWords = Words<StrategyKind::kRefine, StrategyKind::kSample, StrategyKind::kRestart,
                            StrategyKind::kBeam>;
using FeedbackWords = Words<prompts::FeedbackMode::kFull, prompts::FeedbackMode::kAggregate>;
inline constexpr std::array<std::string_view, 3> kEfforts = {"quick", "standard", "thorough"};
using EffortWords = WordsOf<campaign::Effort, kEfforts>;

/// Schema assay.run/1. `settings` within it is what a replay needs to take the same course.
Json RequestToJson(const GenerateRequest& request,
                   const std::map<std::string, std::string>& versions,
                   const std::string& prompts_digest);
/// Loads the op from `library`, or from where `op` says (a name or a folder; empty: nowhere), never
/// from where the record says. An op that has changed since is an error.
Result<GenerateRequest> RequestFromJson(const Json& json, const std::string& place,
                                        const ops::Library& library, const std::string& op);
/// Whether `library` holds this very op under its name.
bool IsOfLibrary(const ops::Library& library, const ops::OpSpec& op);

std::string_view Name(campaign::Effort effort);
std::optional<campaign::Effort> ParseEffort(std::string_view name);

}  // namespace assay::loop

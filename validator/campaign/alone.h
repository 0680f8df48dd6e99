// One launch in the place of all, and skeletons of programs (facts/skeleton.h) in that of programs.
#pragma once

#include <cstdint>
#include <optional>

#include "validator/execution/execution.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// Runs the skeleton instead. Of what it writes nothing is defined, which is no finding in workspace: so outputs are.
void UseSkeleton(const facts::Skeleton& skeleton, Execution& execution);

/// Workspace that starts as zeros starts as nothing: over garbage, or as it was with that byte everywhere. What a launch
/// reads of it is missing then, and may be another one's to say.
void ForgetFills(Execution& execution, std::optional<std::uint8_t> held = std::nullopt);

/// Outputs and workspace that its launches take, all together.
std::uint64_t BytesWritten(const Execution& execution);
/// As much is written where all blocks run to see where: pages cost more than the instructions that come to them.
inline constexpr std::uint64_t kMostWritten = std::uint64_t{512} << 20;
/// And as much where it is asked in pieces: of stores nothing is kept, of what else writes each piece writes no more than that.
inline constexpr std::uint64_t kMostWrittenInPieces = std::uint64_t{16} << 30;

/// What the skeleton of whole grids may take where it is asked who writes what, which nothing else can say.
inline constexpr std::uint64_t kStepsToAsk = 1'000'000'000;
/// The same where all that is left to ask is whether anybody writes it.
inline constexpr std::uint64_t kStepsToAskAtLast = 4 * kStepsToAsk;

/// For a run that is to show that its blocks meet no others: it ends where they may, and what they read that none of them
/// wrote is missing.
void WatchForMeetings(Execution& execution);
/// Did none? Then what they did is what they do in the whole grid.
bool MetNobody(const Report& report);

/// A finding of a skeleton as one of the program: at lines of the source, but at none of its PTX, and without values.
void MakeOfProgram(Finding& finding);

}  // namespace assay::campaign

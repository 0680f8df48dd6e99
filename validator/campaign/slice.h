// One slice while it is run (slices.cc): what is bound, which of its blocks run (slice_blocks.cc), and how they are
// judged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validator/campaign/effort.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"

namespace assay::campaign {

/// As many blocks run where each is dearer than the budget by far.
inline constexpr std::uint64_t kEnds = 2;

/// Why a slice was left out of which all blocks run.
inline constexpr std::string_view kAllTakeTooLong =
    "blocks may depend on each other, and all take too long";

/// Why a part of a case was left out of which that is not known.
inline constexpr std::string_view kMayBeOverwritten =
    "several launches write an output, and who writes it last takes too long to find out";

/// One slice while it is run.
class Runner::Slice {
 public:
  Slice(const Runner& runner, const cases::Probe& probe, const Wants& wants, CaseRun& run)
      : runner_(runner),
        instance_(*runner.subject_.instance),
        probe_(probe),
        wants_(wants),
        run_(run),
        most_steps_(MostStepsOfSlice(wants)) {}

  Status Run();

 private:
  /// After Prepare: what is cut runs in part, the rest whole or as far as it is needed.
  Status RunPrepared();
  /// Launches whose blocks may depend on each other run in part as well. False, and nothing has changed: they did.
  Result<bool> RunApart();
  bool MayRunApart() const;
  /// Inputs, plan and buffers, and which launches may be cut. False where that leaves nothing to run.
  Result<bool> Prepare();
  Result<engine::Binding> BindOver(std::uint8_t poison, bool updates_nothing = false) const;
  Binder Binding() const {
    return Binder([this](std::uint8_t poison, bool updates_nothing) {
      return BindOver(poison, updates_nothing);
    });
  }
  /// Runs so many blocks of each launch that may be cut, and those that write the ends of outputs.
  Status RunBlocks(std::uint64_t count, std::uint64_t limit);
  /// Of several launches runs the blocks that are needed, if those can be told.
  Status RunNeeded(std::uint64_t count);
  /// Runs those blocks at once of which an estimate says that it will be them; else none. How many that were.
  Result<std::uint64_t> RunAtOnce();
  /// After a first run: as many as the budget has room for; and who writes the ends of outputs, if need be all.
  /// False where that takes too long.
  Result<bool> RunTheRest(std::uint64_t ran_at_once);
  /// Where the last blocks write nothing, the one before them writes the end, it may be. False: no such block was found.
  Result<bool> AddLastThatWrites();
  /// By the run before: one block of each launch that is cut, and everything with all of their blocks.
  struct BlockCost {
    std::uint64_t a_block;
    std::uint64_t all;
  };
  BlockCost CostOfBlocks() const;
  /// Of several launches, where the needed blocks leave the end of an output as it was: whether anybody writes it.
  /// False where nobody does.
  Result<bool> FindTheEnd();
  /// The same where that takes too long for all of its blocks to run: of their skeleton, or the last launch by itself.
  Result<bool> AskWhoWrites();
  Status Judge();
  /// Of outputs that several launches write keeps the elements whose last writer ran: what was cleared first is no result
  /// yet. False where that cannot be told.
  Result<bool> KeepWhatStays(oracle::SparseElements& wanted);
  /// Buffer and element.
  using Place = std::pair<std::uint32_t, std::int64_t>;
  /// Launch and block.
  using Writers = std::map<Place, std::pair<std::uint32_t, std::uint64_t>>;
  Result<std::optional<Writers>> WhoWrites(const facts::Skeleton& skeleton,
                                           const std::vector<BufferRange>& places, bool as_it_ran);
  Status CompareOrders(const oracle::SparseElements& places);
  Result<Rerun> Again(const Schedule& schedule) const;

  /// How many blocks are to run, where each takes that much.
  std::uint64_t CountFor(std::uint64_t a_block) const;
  /// Does each block take more than all were to?
  bool IsDear() const { return wants_.block_steps > wants_.slice_steps; }
  /// Do whole grids take more than that, if all blocks take what one is estimated to?
  bool IsEstimatedAbove(std::uint64_t steps) const;
  /// Blocks that are left out have nothing to give to those that run, but of an earlier launch what it hands on.
  bool IsTooLong() const { return campaign::IsTooLong(run_.report, /*others_may_help=*/false); }
  bool IsClean() const {
    return run_.report.stop == Stop::kCompleted && run_.report.findings.empty();
  }
  /// The tensor that an output overwrites, as it was before; or null.
  const Tensor* Before(const std::string& output) const;
  std::vector<std::int64_t> Written(const std::string& output, const Tensor& tensor) const;
  bool EndIsUnwritten(const std::string& output, const Tensor& tensor) const;
  bool SomeEndIsUnwritten() const;
  const TensorMap& Outputs() const { return bound_.calls.front().outputs; }
  void NoteReport();
  void NoteParts();
  void LeaveOut(std::string_view reason);
  /// Why nothing is known of the end of an output that no block has written that ran.
  std::string_view UnknownEnd() const;

  const Runner& runner_;
  const ops::Instance& instance_;
  const cases::Probe& probe_;
  const Wants& wants_;
  CaseRun& run_;
  std::uint64_t most_steps_;

  cases::Materialised filled_;
  ops::ResolvedPlan plan_;
  engine::Binding bound_;
  std::size_t copied_ = 0;        // Bytes of what the op overwrites.
  std::vector<std::size_t> cut_;  // Launches that may be cut,
  std::uint64_t all_ = 0;         // and the blocks of the largest of them.
  std::set<std::uint64_t>
      writers_;  // Blocks that write the ends of outputs, if the guess is right.
  bool apart_ =
      false;  // Blocks may depend on each other, but those that run shall show that they do not;
  bool met_ = false;  // and some have not.
  bool ran_ = false;
  bool only_writers_ =
      false;  // They ran, and not the last block; and if they left an end as it was,
  bool writers_left_it_ = false;  // both do.
  bool only_needed_ = false;
  std::uint64_t tickets_ = 0;  ///< Some of so many ran, that blocks draw; 0: blocks were chosen.
  bool without_truth_ = false;
  bool whole_ = false;           // All blocks ran.
  bool end_is_unknown_ = false;  // Whether anybody writes it.
};

}  // namespace assay::campaign

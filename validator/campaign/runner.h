// Runs probes of one compiled candidate: one emulator run serves all gates that look at a case.
//
// What came of a probe is a CaseRun (case_run.h): the engine's report, the comparison with the truth, and where a schedule
// is explored, the comparison with the plain schedule. Gates read their part of it (Examiner in trial.h); none runs the
// engine for itself.
//
// Nothing here depends on time: the same probe gives the same CaseRun. Run may be called from
// several threads; RunInOrder does so, and hands runs over in the order of the tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/campaign/case_run.h"
#include "validator/cases/probe.h"
#include "validator/engine/bind.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/oracle/oracle.h"

namespace assay::campaign {

class Runner {
 public:
  struct Subject {
    const ops::Instance* instance;
    const ops::LaunchPlan* plan;
    const engine::CompiledKernel* compiled;
  };
  Runner(Subject subject, engine::Engine& engine, oracle::Oracle& oracle, unsigned jobs);

  CaseRun Run(const cases::Probe& probe, const Wants& wants) const;

  /// Runs `probe` with shadow values. Empty when the engine has none to offer, or reached a limit.
  Result<std::optional<ErrorTrace>> Trace(const cases::Probe& probe,
                                          const OutputFocus& focus) const;

  /// Runs tasks, a few at a time, and hands each run to `take`, in the order of the tasks and from the
  /// calling thread, until that says false. Works ahead of what was taken, so that nobody waits for
  /// the longest of a group: what is not taken any more is as if it had not run. `order`: see
  /// MakeInOrder.
  void RunInOrder(std::span<const Task> tasks,
                  const std::function<bool(std::size_t, CaseRun)>& take,
                  std::span<const std::size_t> order = {}) const;
  /// How far ahead: as many small cases as run while a large one does.
  static constexpr std::size_t kAhead = 48;

  /// Runs all, a few at a time. `done` is called from the calling thread with the number of
  /// finished runs.
  std::vector<CaseRun> RunAll(std::span<const Task> tasks,
                              const std::function<void(std::size_t)>& done = {}) const;

  /// Runs at a time.
  unsigned jobs() const { return jobs_; }

  /// What runs of a launch by itself.
  struct Alone {
    std::vector<BlockRange> only = {};     ///< As in Launch,
    std::vector<BlockRange> threads = {};  ///< the same.
    std::uint64_t most_steps = 0;
    std::uint64_t count = 0;  ///< As how many blocks `only` was chosen.
    /// What outputs hold before, where it is to differ from what else is uninitialised.
    std::optional<std::uint8_t> outputs = std::nullopt;
    bool zeros = false;  ///< Then workspace holds zeros, which are defined.
    /// Only where it writes is asked: of the program its skeleton runs (facts/skeleton.h), where that tells.
    bool only_where = false;
    /// And what the op overwrites is not there then (Binder::WithoutValues).
    bool without_values = false;
    bool whose_ends = false;   ///< Who writes the ends of outputs is asked (Execution::whose),
    bool drop_stores = false;  ///< and of what is stored nothing else is kept.
    std::optional<Tickets> tickets = std::nullopt;  ///< As in Execution,
    bool note_drawn = false;                        ///< the same.
    /// What these words of buffers that start as zeros hold before.
    std::vector<std::pair<BufferRange, std::uint64_t>> words = {};
  };

 private:
  struct Prepared;
  /// What a run is compared with: the same inputs and blocks under another schedule.
  struct Rerun {
    Report report;
    TensorMap outputs;
    std::uint64_t steps = 0;
  };
  using RunAgain = std::function<Result<Rerun>(const Schedule&)>;
  struct Observed {
    cases::Materialised inputs;  ///< Of the judged call.
    TensorMap outputs;
  };
  Status RunOnce(const cases::Probe& probe, const Wants& wants, CaseRun& run, Observed& observed,
                 const OutputFocus* focus = nullptr) const;
  /// What of the outputs was left unwritten, by the run's report.
  static void NoteOutputs(const engine::BoundCall& judged, CaseRun& run);
  void Compare(const Wants& wants, const Observed& observed, CaseRun& run) const;
  /// The run's schedule against the plain one (orders.cc): `outputs` at `places`, everywhere where that is null.
  static Status CompareWithPlain(const TensorMap& outputs, const oracle::SparseElements* places,
                                 const RunAgain& again, CaseRun& run, TensorMap& plain);
  /// The plain run again, with single pairs of accesses the other way round.
  Status TurnPairs(const Wants& wants, const TensorMap& outputs,
                   const oracle::SparseElements* places, const RunAgain& again, CaseRun& run) const;
  static Result<const Finding*> GuiltyContest(const OrderReport& order, const TensorMap& plain,
                                              const oracle::SparseElements* places,
                                              const RunAgain& again, CaseRun& run);
  /// Old values were read, and it went wrong: whether it does without them.
  Status BlameOldValues(const Wants& wants, const TensorMap& plain, CaseRun& run) const;
  /// Binds the buffers of a case for a run.
  class Binder {
   public:
    using Bind = std::function<Result<engine::Binding>(std::uint8_t poison, bool updates_nothing)>;
    explicit Binder(Bind bind) : bind_(std::move(bind)) {}
    Result<engine::Binding> operator()(std::uint8_t poison) const { return bind_(poison, false); }
    /// Of what the op overwrites nothing is there, which would take long to copy: for whoever asks about launches and
    /// places alone.
    Result<engine::Binding> WithoutValues(std::uint8_t poison) const { return bind_(poison, true); }

   private:
    Bind bind_;
  };
  struct Needed {
    engine::Binding binding;  ///< With the blocks that ran in its launches.
    Report report;
    std::uint64_t count = 0;    ///< Blocks of the last launch: as many as were asked for, or fewer.
    std::uint64_t tickets = 0;  ///< Instead of blocks tickets were chosen: of so many.
  };
  /// Which blocks of all launches but the last write what, learned once for a shape and its scalars.
  struct HandedOn;
  Result<std::shared_ptr<const HandedOn>> LearnHandedOn(const Binder& bind,
                                                        const cases::Materialised& filled,
                                                        std::uint64_t most_steps) const;
  Status LearnOfLaunch(const Binder& bind, std::size_t launch, std::uint64_t most_steps,
                       HandedOn& learned) const;
  /// By what was learned: about what all blocks of the launches take that are neither among these nor the last; 0 where nothing
  /// was.
  std::uint64_t WholeStepsBeside(const cases::Materialised& filled,
                                 const std::vector<std::size_t>& cut) const;
  /// Extents and flags: what says which block writes what. (Whoever runs the blocks sees whether that was so.)
  std::string KeyOfShape(const cases::Materialised& filled) const;
  /// The plan at a shape, less launches in front that only clear what starts as zeros then (clears.cc).
  Result<ops::ResolvedPlan> PlanOfPart(const cases::Materialised& filled) const;
  /// One launch by itself, over garbage that is known (alone.cc).
  Result<Report> RunAlone(const Binder& bind, std::size_t launch, Alone what,
                          engine::Binding& binding) const;
  /// The skeleton of all launches, of the last one those blocks. Nothing where it does not tell.
  Result<std::optional<Report>> RunSkeleton(const Binder& bind, Alone what,
                                            engine::Binding& binding) const;
  /// Which blocks of all launches but the last write those bytes, by their skeleton: what is in none of these ranges nobody
  /// does. Nothing where that does not tell, or is too much to ask.
  Result<std::optional<std::vector<WrittenRange>>> WritersOf(const Binder& bind,
                                                             const std::vector<BufferRange>& bytes,
                                                             std::uint64_t most_steps,
                                                             std::uint64_t& steps) const;
  /// The program's skeleton, where it says where these launches write: nobody in them waits for others. Or null.
  const facts::Skeleton* SkeletonFor(const Execution& execution) const;
  /// `count` blocks of the last launch, and of those before it the blocks that they need (needed.cc): fewer, or some
  /// threads of them, where that takes more than `room`. Nothing where these cannot be told, or the fewest take more than
  /// `most_steps`.
  Result<std::optional<Needed>> RunNeeded(const Binder& bind, const cases::Probe& probe,
                                          const cases::Materialised& filled, std::uint64_t count,
                                          std::uint64_t room, std::uint64_t most_steps,
                                          std::uint64_t& steps) const;
  /// The same of these blocks, or threads of them. `cost`: what they take, as far as that came to be known.
  Result<std::optional<Needed>> RunWithNeeded(const Binder& bind, std::uint8_t poison,
                                              const HandedOn& handed_on, const Alone& what,
                                              std::uint64_t& steps, std::uint64_t& cost) const;
  /// Outputs whose end blocks of the last launch, run alone, leave as it was. Nothing where that hangs on what the
  /// launches before hand on, or takes too long.
  Result<std::optional<std::vector<OutputState>>> LeftByTheLast(const Binder& bind,
                                                                const Alone& what,
                                                                std::uint64_t& steps) const;
  /// The same of all launches, by their skeleton.
  Result<std::optional<std::vector<OutputState>>> LeftByAll(const Binder& bind, const Alone& what,
                                                            std::uint64_t& steps) const;
  /// Outputs whose end nobody wrote, by a run that was asked who does. Nothing where that is not known.
  static std::optional<std::vector<OutputState>> EndsNobodyWrote(const engine::BoundCall& call,
                                                                 const Report& report);
  /// Outputs whose end a run left as it was. Nothing where one is overwritten, so that this shows nothing.
  std::optional<std::vector<OutputState>> EndsLeftBy(const engine::BoundCall& call,
                                                     std::uint8_t before,
                                                     const Report& report) const;
  /// Does anybody write the ends of outputs: those blocks of the last launch, or any?
  struct End {
    bool known = false;
    std::vector<OutputState> unwritten = {};  ///< Nobody writes their ends.
    bool left_over_zeros = false;  ///< Nobody does where all that launches before hand on is zero.
  };
  /// The same of a single launch that writes too much to run as a whole. Nothing known where that takes too long.
  Result<End> WhoWritesTheEndInPieces(const Binder& bind, std::uint64_t most_steps,
                                      std::uint64_t& steps) const;
  Result<End> WhoWritesTheEnd(const Binder& bind, const std::vector<BlockRange>& candidates,
                              std::uint64_t most_steps, std::uint64_t& steps) const;
  /// The same of all blocks, by their skeleton alone.
  Result<End> WhoOfAllWritesTheEnd(const Binder& bind, std::uint64_t most_steps,
                                   std::uint64_t& steps) const;
  /// The last block of a launch that writes any output, where those behind it have nothing to do: shares of rows that
  /// follow one another are rounded up. Nothing where the very last one writes, or that cannot be told. Learned once for
  /// a shape and its flags.
  Result<std::optional<std::uint64_t>> LastThatWrites(const Binder& bind,
                                                      const cases::Materialised& filled,
                                                      std::size_t launch,
                                                      std::uint64_t& steps) const;
  /// Of numbers below `count` the last one that writes, by bisection; `key`: what it is, to be learned once.
  Result<std::optional<std::uint64_t>> LastOf(
      std::uint64_t count, const std::string& key,
      const std::function<Result<std::optional<bool>>(std::uint64_t number)>& writes) const;
  /// Does what of a launch runs by itself write any output? Nothing where that is not seen soon.
  Result<std::optional<bool>> WritesAny(const Binder& bind, std::size_t launch, Alone what,
                                        std::uint64_t& steps) const;
  /// The same of the threads of its last block, in pieces of so many: the last piece that writes any output.
  Result<std::uint64_t> LastPieceThatWrites(const Binder& bind, const cases::Materialised& filled,
                                            std::size_t launch, std::uint64_t length,
                                            std::uint64_t& steps) const;
  /// The counter that the blocks of a single launch draw their work from (queue.h), learned once for a shape and its
  /// flags; null where there is none, or that is not known.
  struct Queue;
  Result<std::shared_ptr<const Queue>> LearnQueue(const Binder& bind,
                                                  const cases::Materialised& filled) const;
  class QueueSearch;
  /// The ticket that comes to the end of an output; nothing where that is not known.
  Result<std::optional<std::uint64_t>> TicketOfTheEnd(const Binder& bind, const Queue& queue) const;
  /// Where the blocks of a launch, or the tickets of its queue, leave marks by which they meet, learned once for a shape
  /// and its flags.
  struct Meetings;
  Result<std::shared_ptr<const Meetings>> LearnMeetings(const Binder& bind,
                                                        const cases::Materialised& filled,
                                                        const Queue* queue,
                                                        std::uint64_t most_steps) const;
  /// The queue of a launch whose tickets meet nobody (meetings.cc); null where there is none, or that is not known.
  Result<std::shared_ptr<const Queue>> QueueOfItsOwn(const Binder& bind,
                                                     const cases::Materialised& filled,
                                                     std::uint64_t most_steps) const;
  /// May the block that comes last write more than others, as counters tell it that all leave a mark on? So where that is
  /// not known (last_to_come.cc).
  Result<bool> LastMayDoMore(const Binder& bind, const Queue* queue,
                             const std::vector<BufferRange>& of_all,
                             std::uint64_t most_steps) const;
  /// Adds a block of `all`, and its neighbours that meet it. False: that is not known.
  Result<bool> AddNeighbours(const Binder& bind, std::uint64_t block, std::uint64_t all,
                             std::set<std::uint64_t>& blocks) const;
  /// The same of a single launch: `count` blocks, and those that they meet; or tickets of its queue, as many as `room`
  /// has place for (together.cc).
  Result<std::optional<Needed>> RunTogether(const Binder& bind, const cases::Probe& probe,
                                            const cases::Materialised& filled, std::uint64_t count,
                                            std::uint64_t room, std::uint64_t most_steps,
                                            std::uint64_t& steps) const;
  /// Part of a huge case: see ends.cc.
  Status RunEnds(const cases::Probe& probe, const Wants& wants, CaseRun& run) const;
  /// The same where blocks depend on each other: see ends_of_dependent.cc.
  Status RunEndsOfDependent(const cases::Probe& probe, const Wants& wants,
                            const cases::Materialised& filled, const ops::ResolvedPlan& plan,
                            CaseRun& run) const;
  Status RunEndsOfSome(const cases::Probe& probe, const cases::Materialised& filled,
                       const Binder& bind, std::uint64_t most_steps, CaseRun& run) const;
  struct ChosenTickets;
  Result<ChosenTickets> ChooseTickets(const Binder& bind, const Queue& queue,
                                      std::uint64_t& steps) const;
  /// What blocks of a huge case wrote, at its ends: some of each output, for the oracle.
  struct AtItsEnds {
    oracle::SparseElements wanted;
    oracle::SparseElements near_the_front;  ///< A few of what was written, by stretches.
    bool unwritten = false;                 ///< The end of a fresh output was.
    std::int64_t at_once = 0;  ///< The most elements in a row from the front, of an output of
    std::int64_t extent = 0;   ///< so many.
  };
  AtItsEnds LookAtEnds(const engine::BoundCall& call, std::uint8_t poison,
                       const cases::Materialised& filled, const Report& report) const;
  /// The last elements of what is overwritten that are as they were, though the op changes them.
  oracle::SparseElements EndsThatStay(const cases::Case& value, const cases::Materialised& filled,
                                      const TensorMap& outputs) const;
  /// Some blocks of a case of any size: see slices.cc.
  class Slice;
  Status RunSlice(const cases::Probe& probe, const Wants& wants, CaseRun& run) const;

  /// Where a case of any size is written to: see places.cc.
  Status RunPlaces(const cases::Probe& probe, const Wants& wants, CaseRun& run) const;
  /// Of what an op overwrites, elements that nobody writes: what they held before against the truth.
  Status CompareWhatStays(const cases::Materialised& filled, oracle::SparseElements stays,
                          CaseRun& run) const;

  /// What some blocks of a huge case add: see sums.cc.
  Status RunSums(const cases::Probe& probe, const Wants& wants, CaseRun& run) const;

  /// What a slice wrote, against the truths of as much of it as can be afforded (slices_compare.cc).
  Status CompareSlice(const cases::Materialised& filled, const TensorMap& outputs,
                      oracle::SparseElements wanted, const Wants& wants, CaseRun& run) const;
  /// The same of an op that chooses, row by row.
  Status CompareRows(const cases::Materialised& filled, const TensorMap& outputs,
                     const oracle::SparseElements& wanted, const Wants& wants, CaseRun& run) const;

  Subject subject_;
  engine::Engine& engine_;
  oracle::Oracle& oracle_;
  unsigned jobs_;
  mutable std::mutex mutex_;  ///< Guards what follows.
  mutable std::map<std::string, std::shared_ptr<const HandedOn>> handed_on_;
  mutable std::map<std::string, std::shared_ptr<const Meetings>> meetings_;
  mutable std::map<std::string, std::shared_ptr<const Queue>> queues_;
  mutable std::map<std::string, std::optional<std::uint64_t>>
      last_writers_;  ///< Blocks, and pieces.
};

}  // namespace assay::campaign

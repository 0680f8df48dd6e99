// The campaign: which cases a candidate is tried on, in waves, and what came of them.
//
// Waves run from cheap and telling to costly: the table in waves.def, and docs/cases.md for what
// each of them tries. A wave is a list of probes; within it, probes run in batches of fixed size. It
// may spend its share of the emulated instructions, and leaves to the others what it does not need. After a refutation the tiniest shapes and two more
// batches run, so that one round of feedback may carry several distinct defects, then the campaign
// ends.
//
// Deterministic: what runs follows from the candidate, the options and earlier runs' counters,
// never from time or threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "validator/campaign/costs.h"
#include "validator/campaign/guidance.h"
#include "validator/campaign/misrounded.h"
#include "validator/campaign/outgrown.h"
#include "validator/campaign/repetitions.h"
#include "validator/campaign/trial.h"
#include "validator/campaign/turns.h"
#include "validator/oracle/oracle.h"
#include "validator/ptx/facts/facts.h"
#include "validator/verdict/verdict.h"

namespace assay::campaign {

/// A refutation before it is minimised.
struct Hit {
  std::string_view gate;
  cases::Probe probe;
  Finding finding;
  Wants wants;
  std::uint64_t steps = 0;        ///< That the probe took.
  verdict::WorstSeen worst = {};  ///< Over all cases that showed the defect.
};

/// What a set of runs gave.
struct Harvest {
  std::vector<Hit> hits;     ///< In order of running; distinct defects.
  std::string inconclusive;  ///< First reason why a run proves nothing, with its case.
  std::size_t batches_since_hit = 0;
  std::uint64_t cases = 0;
  std::uint64_t examined = 0;  ///< Of these, those that were not left out,
  std::uint64_t compared = 0;  ///< and had results that were compared with a truth.
  std::string left_out;        ///< The first reason for leaving one out.
  struct Ends {
    /// Of slices at which nobody knows whether the end of an output is ever written (kUnknownEnd): the elements of
    /// the largest, and which one that is; and the elements of the largest slice that was examined.
    std::int64_t unknown = 0;
    std::string unknown_at;
    std::int64_t known = 0;
    /// The same by axis: the longest case at which that is not known, and the largest extent at which it is.
    struct UnknownCase {
      std::string text;
      ops::AxisValues axes;
    };
    std::map<std::string, UnknownCase, std::less<>> unknown_along;
    /// Axes of which no length as long as the longest unknown one is known.
    std::vector<std::string> UnknownAxes() const;
    std::map<std::string, std::int64_t, std::less<>> known_along;
    /// Any case was judged by what it computed; and by axis, the longest of those that were whole or in slices.
    bool any = false;
    std::map<std::string, std::int64_t, std::less<>> judged_along;
  };
  /// By the kernels of the plan that have blocks there: another one's end says nothing of theirs.
  std::map<std::vector<bool>, Ends> ends;
  /// By axis, the longest case that was left out of which only a part was to run.
  std::map<std::string, ops::AxisValues, std::less<>> left_out_at;
  std::uint64_t steps = 0;
  /// Of parts of cases, among them; where there is nothing else, by what they took (DearFactor).
  std::uint64_t part_steps = 0;
  std::uint64_t places_steps = 0;  ///< Of skeletons, among them: of no wave's budget.
  std::uint64_t too_long = 0;      ///< Slices that were given up after they had taken very much.
  std::uint64_t orders = 0;  ///< Pairs of accesses that see who came first, over all plain runs,
  std::uint64_t orders_tried = 0;     ///< and those that were run the other way round.
  std::vector<Statistic> statistics;  ///< The worst of each name over all runs.
  std::map<std::string, oracle::Growth, std::less<>> growth;  ///< By output, over all runs.
  std::map<std::string, ErrorProfile, std::less<>> profiles;  ///< The same.
  verdict::Ledger ledger;  ///< Every task that was planned, and what became of it.
};

/// Threads of all launches at a shape; 0 where the plan does not hold for it.
std::uint64_t ThreadsOf(const ops::Instance& instance, const ops::LaunchPlan& plan,
                        const ops::AxisValues& axes);

/// Blocks of the largest launch at a shape; 0 where the plan does not hold for it.
std::uint64_t BlocksOf(const ops::Instance& instance, const ops::LaunchPlan& plan,
                       const ops::AxisValues& axes);

/// How many times as long a run takes to emulate as its steps say: of a warp's time about half hangs on how many of its
/// lanes are there, and some instructions take far longer than others (Counters::work).
double DearFactor(const CaseRun& run);

class Campaign {
 public:
  // Where a campaign may end: fixed, so that it does not depend on the number of processors.
  static constexpr std::size_t kBatch = 8;
  static_assert(kBatch <= Runner::kAhead);
  static constexpr std::size_t kBatchesAfterRefutation = 2;
  static constexpr std::size_t kEnoughDefects = 3;

  /// `trial` outlives it.
  explicit Campaign(const Trial& trial);

  /// Runs all waves, once.
  void Run();
  /// Runs nothing: no engine that could be believed. Every gate of cases is inconclusive.
  void Abandon(std::string why) { harvest_.inconclusive = std::move(why); }

  /// Runs `planned` and adds to `harvest`; ends early as described above. False when it ended
  /// early.
  bool Execute(const std::vector<Task>& planned, std::string_view gate, Harvest& harvest,
               std::size_t batches_after_refutation = kBatchesAfterRefutation);

  const Harvest& harvest() const { return harvest_; }
  const std::vector<ops::AxisValues>& shapes() const { return shapes_; }
  const Coverage& coverage() const { return coverage_; }
  /// What was tried and what was left out, branches that nothing reached included.
  verdict::Ledger LedgerOfAll() const;
  /// A task for one case, with the step limit that fits its size.
  Task TaskFor(cases::Case value, std::string purpose) const;
  /// Estimated steps for a case at this shape, from what those so far took.
  double StepsFor(const ops::AxisValues& axes) const;
  /// The same for all blocks, even where only a slice would run.
  double WholeStepsFor(const ops::AxisValues& axes) const;
  /// Does the ends' run of it come to more than `most` steps because grids of few blocks run whole?
  bool EndsTakeMore(const ops::AxisValues& axes, double most) const;
  /// The same for one block.
  double BlockStepsFor(const ops::AxisValues& axes) const;
  /// Does all of a case at this shape run? Not where it has too many elements, or, where nothing is
  /// small, its truth takes too long: then a slice does (slices.cc).
  bool FitsWhole(const ops::AxisValues& axes) const;
  bool SurelyFitsWhole(const ops::AxisValues& axes) const;
  double MostTruthSteps() const;  ///< Of a case that runs whole, instructions of warps.
  /// Runs what is planned, what takes long by all estimates after the others. False: the campaign ends.
  bool ExecuteDearLast(std::vector<Task> planned, std::size_t batches_after_refutation);
  /// Where those before it took so much that it does not fit whole any more, a slice of it runs.
  void Reconsider(Task& task) const;
  /// Says of a slice what its blocks will take, and whether that is too long.
  void EstimateBlocks(Task& task) const;
  /// What the least of a slice at this shape will take by that: a block of each launch that is cut, and all of the others.
  double LeastStepsFor(const ops::AxisValues& axes) const;
  /// Of these the former, by launch; nothing where that is not known.
  std::optional<double> CutStepsFor(const ops::AxisValues& axes) const;
  /// Does some launch run whole at this shape, of a slice as well?
  bool SomeRunWhole(const ops::AxisValues& axes) const {
    return RunsWhole(axes) || BesideStepsFor(axes) > 0;
  }
  /// What those take: launches of which no slice has run a part, though it has of one beside them. 0 where there are none.
  double BesideStepsFor(const ops::AxisValues& axes) const;
  /// The same of all; and, of an op of which all cases are slices, of which the last
  /// block alone will do where blocks are dear, unless several of each are wanted.
  void PlanBlocks(std::vector<Task>& planned, bool several) const;
  /// Hits turned into minimal counterexamples, at most three in all.
  const std::vector<verdict::Counterexample>& Counterexamples();
  /// Turns the campaign's part of a gate into its result.
  void Fill(std::string_view gate, verdict::GateResult& result);

 private:
  enum class Joins : std::uint8_t { kNever, kOfSlices, kOfWhole, kAlways, kAsOne };
  /// A row of waves.def.
  struct Wave {
    std::string_view name;
    std::vector<Task> (Campaign::*plan)();
    int share;
    int kept;
    std::ptrdiff_t least;
    bool several;
    bool whole;
    bool early;
    Joins joins;
  };
  static const Wave kWaves[];
  /// The waves, in the order in which they run.
  std::vector<const Wave*> Order() const;

#define WAVE(Name, name, share, kept, least, several, whole, early, joins) std::vector<Task> Name();
#include "validator/campaign/waves.def"
  Task PlacesOf(const ops::AxisValues& axes, std::uint64_t seed) const;
  /// The same shape with another part of the last tile: of each axis another for each number, from all over the tile. No
  /// more blocks run for that.
  ops::AxisValues WithAnotherTail(ops::AxisValues axes, std::size_t number, Rng& rng) const;
  /// Of wave Workloads: of these shapes those of the longest sums, and such a case of exact sums.
  std::vector<ops::AxisValues> ForExactSums(const std::vector<ops::AxisValues>& shapes) const;
  Task OfExactSums(const ops::AxisValues& axes, std::string purpose, std::uint64_t seed) const;
  /// Of wave Outgrown: the shape, with the axes long along which the number does not grow.
  ops::AxisValues WithOthersLong(const Outgrowing::Outgrown& outgrown) const;
  /// Of wave Ways: where the plan goes another way along an axis, and nothing of that was judged yet.
  std::vector<ops::AxisValues> WhereWaysPart() const;
  /// And hot indices: one among more rows than constants say, one of more terms than a grid's blocks take in one turn, many of
  /// some thousand terms each, and one in kernels that the plan chooses where rows are wide.
  std::vector<Task> HotAmongMany() const;
  std::vector<Task> HotPastGrids() const;
  std::vector<Task> CrowdedFar() const;
  std::vector<Task> HotOnPaths() const;
  std::optional<ops::AxisValues> PastPieces(const ops::Axis& along,
                                            std::span<const std::int64_t> of_plan,
                                            const std::set<std::int64_t>& pieces,
                                            const ops::AxisValues& beside) const;
  /// Was this kernel of the plan among those of any case that was judged by what it computed?
  bool IsJudged(std::size_t kernel) const;
  /// "kernel 'k' of the plan ... [rows=65536]". Empty where each was.
  std::string NeverJudged() const;
  /// How many terms a sum over its axes has, the longest one.
  double TermsOf(const ops::AxisValues& axes) const;
  /// Of wave Workloads: indices that differ in one upper bit, into an axis as long as that.
  std::optional<Task> Aliases(const std::string& axis, std::int64_t length,
                              std::uint64_t seed) const;
  /// The same with pages that differ: of a long row of values that are all alike another part has nearly the same sum.
  /// Nothing where none of its inputs is drawn so.
  std::optional<Task> OfUnlikePages(Task task) const;
  /// Of wave Tails: some lengths of an axis that lie far out.
  std::vector<Task> FarTailsOf(const ops::Axis& axis, std::uint64_t seed, Rng& rng) const;
  /// The same: just below constants of program and plan.
  std::vector<Task> BelowConstants(std::uint64_t seed) const;
  Task After(const Repetition& repetition, const cases::Case& judged, const cases::Case& other,
             Rng& rng) const;
  std::vector<cases::Case> Pool() const;
  /// Of wave Surroundings: a shape of many results; nothing where none is affordable.
  std::optional<ops::AxisValues> ManyResults(const ops::Axis& axis, std::int64_t length) const;
  /// Slices past what caps a grid, once or twice or both, and what could not be got past: in the ledger.
  std::vector<Task> PastGrids(const std::string& purpose, const char* recipe, bool once,
                              bool twice);
  /// The least shapes at which kernels have blocks that have none at the least of all.
  std::vector<ops::AxisValues> WhereKernelsBegin() const;
  /// Shapes at numbers that the plan names, and beside them, and where an axis is as long as it may be, at which no kernel has
  /// blocks, or no device has such a grid.
  std::vector<ops::AxisValues> WhereNothingRuns() const;
  /// Of each choice that the plan makes among its kernels a shape past 2^32 elements.
  std::vector<ops::AxisValues> HugeOnEachPath() const;
  /// Shapes at which floats become other integers than they should (misrounded.h). Looked for once.
  const std::vector<MisroundedShape>& Misrounded();
  /// Of wave Reached: cases of such shapes, whole and in slices.
  std::vector<Task> OfMisrounded(std::uint64_t seed);
  /// Does wave Large try what blocks do in their second turn?
  bool TurnsComeEarly() const;
  /// Cases of wave Aimed: rows just past constants, whose mean lies far above their spread, in 16 bits.
  std::vector<Task> RippledRows(std::span<const std::int64_t> constants);
  /// The task once for each value of the flags, integers of which the op names a few, or of such floats as well.
  std::vector<Task> WithEachFlag(Task task, bool floats = false) const;
  /// The task once for each value of the scalars of which the op names a few: all combinations while there are few,
  /// the others' values in turn.
  std::vector<Task> WithEachChoice(Task task) const;
  /// Cases of wave Aimed: each axis just past constants, where what comes last outweighs all before it.
  std::vector<Task> LatePast(const ProgramConstants& constants);
  /// Some of these lengths of an axis, near those of the others.
  void AddLateAlong(const ops::Axis& axis, const std::set<std::int64_t, std::greater<>>& lengths,
                    const ops::AxisValues& beside, std::vector<Task>& planned) const;
  /// Cases of wave Aimed: the same just past constants of the launch plan, and negative products there.
  std::vector<Task> LatePastThePlan();
  /// Values of which the last along the axis outweigh all before; nothing where no input has it last, or last
  /// but one.
  std::optional<cases::Case> LateAlong(const ops::Axis& axis, ops::AxisValues axes,
                                       std::string origin, std::uint64_t seed) const;
  /// May results be sums over it? Of an op some of whose outputs lack an axis, those that they lack.
  bool IsAddedUp(const ops::Axis& axis) const;
  /// Values that rise along the axis, of which the last that a mask shows outweighs all before, with each value of the
  /// flags; nothing where no input has it last but one, or is too large for such values.
  std::vector<Task> RisingAlong(const ops::Axis& axis, const ops::AxisValues& pinned,
                                const std::string& purpose, std::uint64_t seed) const;
  /// Axes that results are made over, and that a constraint compares with this one.
  std::vector<const ops::Axis*> ReducedInStepWith(const ops::Axis& axis) const;
  /// Cases of wave Aimed: these just past constants of program and plan, where tiles of masks end.
  std::vector<Task> MaskedPast(const ProgramConstants& constants) const;
  /// Of wave Reached: of each shape that is dear the second case with values of which the last outweigh all before.
  std::vector<cases::Case> LateOfDearShapes(std::vector<cases::Case> values) const;
  /// Cases of wave Long: long axes that are summed over, of which each piece is most of some result.
  std::vector<Task> Banded() const;
  /// The last input that results grow as, whose matrices have the axis as one of both; null where there is none.
  const ops::TensorSpec* MatrixAlong(std::string_view axis) const;
  /// Cases of wave Varied: the largest shapes that reached something new, with values that are rare.
  std::vector<Task> RareValues() const;
  /// Cases of wave Aimed: one index for all places, just past constants of program and plan.
  std::vector<Task> HotPast() const;
  std::set<std::int64_t, std::greater<>> PastConstants() const;
  static constexpr std::int64_t kMostCrowded = 1 << 17;  ///< Indices.
  /// The same: more rows asked for more often than their numbers say there is room for.
  struct Crowding {
    std::int64_t least = 0;             ///< More indices than that,
    std::int64_t most = kMostCrowded;   ///< and no more than that.
    std::int64_t often = kMostCrowded;  ///< Each row is asked for so often at the most.
    std::int64_t rows = kMostCrowded;   ///< So many rows at the most.
    std::size_t cases = 5;
  };
  std::vector<Task> Crowded(const ProgramConstants& constants, const Crowding& crowding) const;
  /// Cases of wave Late: the same along a constant axis, beside short others.
  std::vector<Task> LateAlongConstant(const ops::Axis& axis, std::uint64_t seed) const;
  /// Do rows of some input extend along it?
  bool IsOfRows(std::string_view axis) const;
  /// One less than the longest row that the op allows, and as many of them as a slice may have elements.
  std::optional<ops::AxisValues> SeveralOfTheLongest(const ops::Axis& axis) const;
  std::optional<ops::AxisValues> RoundedUpByFloats(const ops::Axis& axis) const;
  /// A slice of an axis as long as the op allows, where what comes last outweighs all before it.
  /// Beside such others; `bounded`: no longer than may be run for values, even of what is cut.
  std::optional<Task> LateSlice(const ops::Axis& axis, const ops::AxisValues& beside, bool bounded,
                                std::uint64_t seed) const;
  /// The same beside the shortest others, and beside such at which the plan chooses other kernels for an axis so long.
  std::vector<Task> LateSlices(const ops::Axis& axis, std::uint64_t seed) const;
  /// The least shapes at which it is not known who writes the end of an output, by the paths of the plan and axes, each behind
  /// shorter ones past the longest at which it is known.
  std::vector<std::vector<ops::AxisValues>> LeastUnknownEnds() const;
  std::vector<ops::AxisValues> ShorterUnknownEnds(const ops::AxisValues& least,
                                                  const std::string& along,
                                                  std::int64_t known) const;
  /// Shapes at which kernels whose blocks may wait for others have some two hundred of them.
  std::vector<ops::AxisValues> ManyBlocksAtOnce() const;
  std::vector<cases::Case> CheapEnoughWhole(std::vector<cases::Case> pool);
  void AddRepeatedCalls(const std::vector<cases::Case>& pool, std::size_t count, Rng& rng,
                        std::vector<Task>& planned) const;

  /// Places of `planned` in an order of beginning: of the cases after which it is decided whether to go on,
  /// the longest first, so that nobody waits for one that was begun last.
  std::vector<std::size_t> LongestFirst(const std::vector<Task>& planned) const;
  /// Estimated steps of a task, as far as they tell which takes longer.
  double CostOf(const Task& task) const;
  /// Estimated steps of a slice, by what its blocks will take.
  double SliceStepsFor(const Task& task) const;
  /// Estimated steps of a block of the last launch with those of the others that it needs; nothing before any ran so.
  std::optional<double> NeededStepsFor(const ops::AxisValues& axes) const;
  /// Runs the first tasks of a wave, until something is known of what slices take. False when all ended early.
  bool RunTheTelling(std::vector<Task>& planned, const Wave& wave,
                     std::span<const Wave* const> later);
  /// Leaves out the costliest tasks of what would go beyond the share, where `waiting` run as well, and some of
  /// the wave have run and taken `spent`.
  void Trim(std::vector<Task>& planned, const std::vector<Task>& waiting, const Wave& wave,
            std::span<const Wave* const> later, double spent);
  /// Indices of the case: the last one where they are few, else the first and the last.
  void LookFar(cases::Case& value) const;
  Task EndsOf(ops::AxisValues axes, std::string purpose, std::uint64_t seed) const;
  /// Takes profiles that are without place where others would have to be filled, element by element.
  void MakeAffordable(cases::Case& value) const;
  /// Of some kernel of the plan, also where nothing is known of one.
  using AskFacts = facts::Answer(const facts::Facts*, std::string_view);
  bool KernelMay(const ops::KernelPlan& kernel, AskFacts* answer) const;
  bool SomeKernelMay(AskFacts* answer) const;
  /// Are there launches that cannot be cut, because blocks may depend on each other or on an earlier
  /// launch?
  bool RunsWhole(const ops::AxisValues& axes) const;
  /// Does some kernel perhaps wait for what others write?
  bool MayWait() const;
  bool MayWait(const ops::KernelPlan& kernel) const;
  /// May something outlive a call: a variable that the program perhaps writes? (Workspace is garbage in each call.)
  bool MayKeepState() const;
  /// The same shape, halved along its longest axes until a whole run is affordable.
  ops::AxisValues Affordable(ops::AxisValues axes) const;
  /// Random turns, or another order of blocks where those would take too long.
  Schedule::Policy OrderForThatMany(const ops::AxisValues& axes) const;
  std::vector<Task> OutOfOrder() const;
  /// One axis that long, the others of some dozens as far as that is affordable.
  std::optional<ops::AxisValues> WithRows(std::string_view along, std::int64_t longest) const;
  /// A part of a case of any size, with values of that recipe.
  Task SliceOf(ops::AxisValues axes, std::string purpose, std::uint64_t seed,
               std::string_view recipe = "plain") const;
  /// Of these, the one for a shape of that size.
  Task PartOf(ops::AxisValues axes, std::string purpose, std::uint64_t seed) const;
  /// What the last blocks of a huge case add, where its blocks only add (sums.cc); nothing where that tells
  /// nothing of this op and plan.
  std::optional<Task> SumsOf(const ops::AxisValues& axes, std::string purpose,
                             std::uint64_t seed) const;
  /// A run that reached its step limit, again: under a larger limit, then on smaller cases in its
  /// place. Limits are learned from tiny cases, and a kernel may be costlier than they show.
  CaseRun Again(Task& task, CaseRun run, Harvest& harvest) const;
  void LeaveOut(const Task& task, std::string_view reason, Harvest& harvest) const;
  /// Whether a part of a case has seen the ends of the outputs written.
  void NoteEnd(const CaseRun& run, Harvest& harvest) const;
  static std::string UnknownEnd(const Harvest& harvest);
  void NoteReach(const CaseRun& run, Harvest& harvest) const;
  void Learn(const CaseRun& run);
  /// The same where no case runs whole, for extents are constant: what all blocks of a slice would have taken.
  void LearnOfSlice(const CaseRun& run);
  void LearnOfLaunches(const CaseRun& run, std::span<const LaunchPart> parts);
  void Gather(const Task& task, const CaseRun& run, Harvest& harvest);

  /// Of slices that take one way through a plan of several kernels (PathAt).
  struct OfPath {
    Costs blocks;   ///< Of a block, where none is tried whole.
    Costs needed;   ///< Of a block, or a ticket, of the last launch with what it needs (needed.cc).
    Costs tickets;  ///< Where blocks draw tickets: how many there are.
  };
  const OfPath& PathCostsFor(const ops::AxisValues& axes) const;

  const Trial& trial_;
  Harvest harvest_;
  std::vector<ops::AxisValues> shapes_;
  std::vector<cases::Case> tried_;            ///< Whole.
  std::vector<cases::Case> sliced_;           ///< Where none is tried whole.
  std::vector<ops::AxisValues> past_limits_;  ///< ReachedCases::past_limits.
  std::optional<std::vector<MisroundedShape>> misrounded_;
  Outgrowing outgrowing_;              ///< Numbers of runs that were judged.
  std::unique_ptr<TurnsAhead> turns_;  ///< Of wave Reached, while the waves before it run.
  Coverage coverage_;
  std::vector<cases::Case> fresh_;  ///< Reached something new after the shapes were done.
  std::vector<ops::AxisValues>
      hidden_sums_;  ///< Floats may have been added as they came, and no other order showed.
  double steps_per_element_ = 0;  ///< The most of any run, overheads included: for limits.
  double steps_per_thread_ = 0;   ///< Of threads with next to nothing to do: for estimates.
  bool has_small_shapes_ = true;  ///< Cases at the op's smallest shapes are next to nothing.
  bool only_slices_ = false;      ///< Even the op's smallest shape runs in part.
  double marginal_steps_ = 0;     ///< For each element, beyond what its threads cost anyway.
  Costs costs_;                   ///< Of whole cases, by shape.
  Costs truth_costs_;             ///< Of their truths (CaseRun::truth_steps).
  std::map<std::vector<bool>, OfPath> of_paths_;  ///< By the way through the plan.
  OfPath of_all_paths_;                           ///< A first guess for those on which nothing ran.
  struct TooLong {
    ops::AxisValues axes;
    std::uint64_t steps;
  };
  std::map<std::size_t, std::uint64_t> part_steps_of_;  ///< Of slices, by Task::wave.
  double unforeseen_steps_ = 0;    ///< Of slices, beyond what their waves may take.
  std::vector<TooLong> too_long_;  ///< A block of these slices had not ended by then.
  std::map<std::string, Costs, std::less<>> launch_costs_;  ///< Of whole launches, by entry.
  std::set<std::string, std::less<>> cut_;  ///< Entries of which slices have run some blocks.
  double dear_factor_ = 1;  ///< Of slices, where there is nothing else (DearFactor).
  bool parts_ran_ =
      false;  ///< Some slices ran some blocks, though launches may not be cut as they are.
  bool schedule_matters_ = false;
  bool flags_are_read_ = false;  ///< By strong loads, which may return old values.
  bool minimised_ = false;
  std::vector<verdict::Counterexample> counterexamples_;
};

}  // namespace assay::campaign

// What a slice wrote, against the truths of as much of it as can be afforded.
//
// Truths that follow from choices are those of whole rows, as a case of their own (rows.h).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/rng.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/oracle/points.h"
#include "validator/oracle/rows.h"

namespace assay::campaign {
namespace {

// Rows that are compared as a case of their own: so many of them as the elements that their results are made of
// come to, one of all other inputs' for each row,
constexpr std::size_t kMostRows = 48;
constexpr std::int64_t kMostOfRows = 1 << 23;
constexpr std::int64_t kMostOfRowsForValues = 1 << 22;
// but for a few.
constexpr std::size_t kFewestRows = 8;
// What tries values shows them by few elements.
constexpr oracle::PartEffort kForValues = {
    .warp_steps = 1'500'000, .few_warps = 2, .few_warp_steps = 5'000'000};

// Of more elements than that some are looked through: no reference has time for a tenth of them.
constexpr std::size_t kMostListed = std::size_t{1} << 20;

/// Of ascending places some runs of neighbours, about `most` places: the first run, the last one and drawn ones.
std::vector<std::int64_t> SomeRuns(std::vector<std::int64_t> places, std::size_t most,
                                   std::uint64_t seed) {
  constexpr std::size_t kLongest = 1 << 14;
  if (places.size() <= most) return places;
  const std::uint64_t one_of = (places.size() + most - 1) / most;
  std::vector<std::int64_t> some;
  for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    end = begin + 1;
    while (end < places.size() && end - begin < kLongest && places[end] == places[end - 1] + 1)
      ++end;
    if (begin == 0 || end == places.size() || Mix64(seed ^ Mix64(begin)) % one_of == 0)
      some.insert(some.end(), places.begin() + static_cast<std::ptrdiff_t>(begin),
                  places.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return some;
}

/// Does the case try values, rather than places?
bool IsForValues(const Wants& wants) { return wants.slice_steps < Wants{}.slice_steps; }

}  // namespace

Status Runner::CompareSlice(const cases::Materialised& filled, const TensorMap& outputs,
                            oracle::SparseElements wanted, const Wants& wants, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  if (instance.op.Chooses()) return CompareRows(filled, outputs, wanted, wants, run);
  const cases::Case& value = run.probe.case_;
  for (auto& [name, places] : wanted) places = SomeRuns(std::move(places), kMostListed, value.seed);
  const auto truth = oracle_.EvaluateSlice(instance, value, filled, std::move(wanted), value.seed,
                                           IsForValues(wants) ? kForValues : oracle::PartEffort{});
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  if (std::ranges::all_of(*truth, [](const auto& output) { return output.second.empty(); })) {
    run.left_out = "no value of the slice could be told from nothing";
    return {};
  }
  oracle::ComparePoints(instance, *truth, outputs, run.comparison.emplace());
  return {};
}

Status Runner::CompareRows(const cases::Materialised& filled, const TensorMap& outputs,
                           const oracle::SparseElements& wanted, const Wants& wants,
                           CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const auto axis = oracle::AxisOfRows(instance.op);
  if (!axis) {
    run.left_out = "what follows from a choice hangs on all of its scores";
    return {};
  }
  ops::AxisValues of_one_row = filled.axes;
  of_one_row[*axis] = 1;
  const std::int64_t row = std::max<std::int64_t>(cases::TotalElements(instance, of_one_row), 1);
  const std::size_t most = std::clamp(
      static_cast<std::size_t>((IsForValues(wants) ? kMostOfRowsForValues : kMostOfRows) / row),
      kFewestRows, kMostRows);
  const std::vector<std::int64_t> rows = Spread(oracle::RowsWritten(outputs, wanted), most);
  if (rows.empty()) {
    run.left_out = "the blocks that ran wrote no whole row";
    return {};
  }
  cases::Materialised some{.axes = filled.axes, .inputs = {}};
  some.axes[*axis] = static_cast<std::int64_t>(rows.size());
  ASSAY_TRY(some.inputs, oracle::TakeRows(instance.op.inputs, filled.inputs, *axis, rows));
  ASSAY_TRY(const TensorMap got, oracle::TakeRows(instance.op.outputs, outputs, *axis, rows));
  cases::Case value = run.probe.case_;
  value.origin = fmt::format("rows {} of {}", fmt::join(rows, " "), filled.axes.at(*axis));
  const auto truth = oracle_.EvaluateFor(instance, value, some, got);
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  run.comparison = oracle::Compare(instance, **truth, value, some, got);
  oracle::NameRows(rows, *run.comparison);
  return {};
}

}  // namespace assay::campaign

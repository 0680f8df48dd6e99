#include "validator/verdict/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/fields.h"

namespace assay::verdict {
namespace {

std::uint64_t CountOf(const LedgerRow& row) {
  return std::accumulate(row.left_out.begin(), row.left_out.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const LeftOut& out) { return sum + out.count; });
}

template <class Member>
std::uint64_t Sum(const std::vector<LedgerRow>& rows, Member member) {
  return std::accumulate(
      rows.begin(), rows.end(), std::uint64_t{0},
      [&](std::uint64_t sum, const LedgerRow& row) { return sum + member(row); });
}

}  // namespace

static constexpr auto JsonFields(const LeftOut*) {
  using L = LeftOut;
  return std::tuple(Required("reason", &L::reason), Optional("example", &L::example),
                    Required("count", &L::count));
}
static constexpr auto JsonFields(const LedgerRow*) {
  using L = LedgerRow;
  return std::tuple(Required("wave", &L::wave), Required("planned", &L::planned),
                    Required("examined", &L::examined), Optional("left_out", &L::left_out));
}
static constexpr auto JsonFields(const AxisReach*) {
  using A = AxisReach;
  return std::tuple(Required("axis", &A::axis), Required("whole", &A::whole),
                    Optional("in_slices", &A::in_slices), Required("at_ends", &A::at_ends),
                    Required("domain", &A::domain), Sparse("in_places", &A::in_places));
}
static constexpr auto JsonFields(const LaunchReach*) {
  using L = LaunchReach;
  return std::tuple(Required("entry", &L::entry), Required("whole", &L::whole),
                    Required("run", &L::run), Required("all", &L::all));
}
static constexpr auto JsonFields(const Unreached*) {
  using U = Unreached;
  return std::tuple(Required("what", &U::what), Required("copies", &U::copies));
}
LedgerRow& Ledger::Row(std::string_view wave) {
  const auto found = std::ranges::find(rows_, wave, &LedgerRow::wave);
  if (found != rows_.end()) return *found;
  return rows_.emplace_back(LedgerRow{.wave = std::string(wave), .left_out = {}});
}

void Ledger::LeaveOut(std::string_view wave, std::string_view reason, std::string_view example,
                      std::uint64_t count) {
  if (count == 0) return;
  std::vector<LeftOut>& all = Row(wave).left_out;
  const auto found = std::ranges::find(all, reason, &LeftOut::reason);
  if (found != all.end()) {
    found->count += count;
  } else {
    all.push_back({std::string(reason), std::string(example), count});
  }
}

void Ledger::Tried(std::string_view axis, std::int64_t length, Extent extent, std::int64_t domain) {
  auto found = std::ranges::find(axes_, axis, &AxisReach::axis);
  if (found == axes_.end())
    found = axes_.insert(axes_.end(), {.axis = std::string(axis), .domain = domain});
  std::int64_t& longest = extent == Extent::kWhole    ? found->whole
                          : extent == Extent::kSlice  ? found->in_slices
                          : extent == Extent::kPlaces ? found->in_places
                                                      : found->at_ends;
  longest = std::max(longest, length);
}

void Ledger::Ran(std::string_view entry, std::uint64_t run, std::uint64_t all) {
  auto found = std::ranges::find(launches_, entry, &LaunchReach::entry);
  if (found == launches_.end())
    found = launches_.insert(launches_.end(), {.entry = std::string(entry)});
  if (run >= all) {
    found->whole = std::max(found->whole, all);
  } else if (all > found->all || (all == found->all && run > found->run)) {
    found->run = run;
    found->all = all;
  }
}

void Ledger::Add(const Ledger& other) {
  for (const LedgerRow& row : other.rows_) {
    LedgerRow& mine = Row(row.wave);
    mine.planned += row.planned;
    mine.examined += row.examined;
    for (const LeftOut& out : row.left_out) LeaveOut(row.wave, out.reason, out.example, out.count);
  }
  for (const AxisReach& reach : other.axes_) {
    Tried(reach.axis, reach.whole, Extent::kWhole, reach.domain);
    Tried(reach.axis, reach.in_slices, Extent::kSlice, reach.domain);
    Tried(reach.axis, reach.at_ends, Extent::kEnds, reach.domain);
    Tried(reach.axis, reach.in_places, Extent::kPlaces, reach.domain);
  }
  for (const LaunchReach& reach : other.launches_) {
    Ran(reach.entry, reach.whole, reach.whole);
    if (reach.all > 0) Ran(reach.entry, reach.run, reach.all);
  }
  unreached_.insert(unreached_.end(), other.unreached_.begin(), other.unreached_.end());
}

std::uint64_t Ledger::planned() const {
  return Sum(rows_, [](const LedgerRow& row) { return row.planned; });
}
std::uint64_t Ledger::examined() const {
  return Sum(rows_, [](const LedgerRow& row) { return row.examined; });
}
std::uint64_t Ledger::left_out() const { return Sum(rows_, CountOf); }

std::string Ledger::Qualification() const {
  std::string text;
  if (const std::uint64_t count = left_out(); count > 0)
    text = fmt::format("{} of {} planned cases left out", count, planned());
  for (const AxisReach& reach : axes_) {
    const std::int64_t longest = std::max({reach.whole, reach.in_slices, reach.at_ends});
    if (longest < reach.domain) {
      text += fmt::format("{}{} tried to {} of {}", text.empty() ? "" : ", ", reach.axis, longest,
                          reach.domain);
      if (reach.in_places > longest)
        text += fmt::format(" (where it writes to {})", reach.in_places);
    }
  }
  if (!unreached_.empty()) {
    text += fmt::format("{}{} side{} of branches never reached", text.empty() ? "" : ", ",
                        unreached_.size(), unreached_.size() == 1 ? "" : "s");
  }
  return text;
}

Json ToJson(const Ledger& ledger) {
  return {{"rows", WriteJson(ledger.rows())},
          {"axes", WriteJson(ledger.axes())},
          {"launches", WriteJson(ledger.launches())},
          {"unreached", WriteJson(ledger.unreached())}};
}

Result<Ledger> LedgerFromJson(const Json& json, std::string place) {
  using L = Ledger;
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Ledger ledger;
  // One without rows tells of no case: no judgement leaves such a one.
  const auto rows =
      std::tuple(Required("rows", &L::rows_), Optional("axes", &L::axes_),
                 Optional("launches", &L::launches_), Optional("unreached", &L::unreached_));
  ASSAY_TRY_VOID(ReadRows(rows, reader, ledger));
  ASSAY_TRY_VOID(reader.Finish());
  return ledger;
}

}  // namespace assay::verdict

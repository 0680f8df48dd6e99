#include "validator/verdict/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "validator/verdict/read_json.h"

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

Result<LeftOut> LeftOutFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  LeftOut out;
  ASSAY_TRY(out.reason, reader.Required<std::string>("reason"));
  ASSAY_TRY(out.example, reader.Optional<std::string>("example", ""));
  ASSAY_TRY(out.count, reader.Required<std::uint64_t>("count"));
  ASSAY_TRY_VOID(reader.Finish());
  return out;
}

Result<LedgerRow> RowFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  LedgerRow row;
  ASSAY_TRY(row.wave, reader.Required<std::string>("wave"));
  ASSAY_TRY(row.planned, reader.Required<std::uint64_t>("planned"));
  ASSAY_TRY(row.examined, reader.Required<std::uint64_t>("examined"));
  ASSAY_TRY(row.left_out, ListFromJson<LeftOut>(reader, "left_out", LeftOutFromJson));
  ASSAY_TRY_VOID(reader.Finish());
  return row;
}

Result<AxisReach> AxisFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  AxisReach reach;
  ASSAY_TRY(reach.axis, reader.Required<std::string>("axis"));
  ASSAY_TRY(reach.whole, reader.Required<std::int64_t>("whole"));
  ASSAY_TRY(reach.in_slices, reader.Optional<std::int64_t>("in_slices", 0));
  ASSAY_TRY(reach.at_ends, reader.Required<std::int64_t>("at_ends"));
  ASSAY_TRY(reach.domain, reader.Required<std::int64_t>("domain"));
  ASSAY_TRY_VOID(reader.Finish());
  return reach;
}

Result<LaunchReach> LaunchFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  LaunchReach reach;
  ASSAY_TRY(reach.entry, reader.Required<std::string>("entry"));
  ASSAY_TRY(reach.whole, reader.Required<std::uint64_t>("whole"));
  ASSAY_TRY(reach.run, reader.Required<std::uint64_t>("run"));
  ASSAY_TRY(reach.all, reader.Required<std::uint64_t>("all"));
  ASSAY_TRY_VOID(reader.Finish());
  return reach;
}

Result<Unreached> UnreachedFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Unreached unreached;
  ASSAY_TRY(unreached.what, reader.Required<std::string>("what"));
  ASSAY_TRY(unreached.copies, reader.Required<std::uint64_t>("copies"));
  ASSAY_TRY_VOID(reader.Finish());
  return unreached;
}

}  // namespace

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
  std::int64_t& longest = extent == Extent::kWhole   ? found->whole
                          : extent == Extent::kSlice ? found->in_slices
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
  if (!unreached_.empty()) {
    text += fmt::format("{}{} side{} of branches never reached", text.empty() ? "" : ", ",
                        unreached_.size(), unreached_.size() == 1 ? "" : "s");
  }
  return text;
}

Json ToJson(const Ledger& ledger) {
  Json rows = Json::array();
  for (const LedgerRow& row : ledger.rows()) {
    Json left_out = Json::array();
    for (const LeftOut& out : row.left_out)
      left_out.push_back({{"reason", out.reason}, {"example", out.example}, {"count", out.count}});
    rows.push_back({{"wave", row.wave},
                    {"planned", row.planned},
                    {"examined", row.examined},
                    {"left_out", std::move(left_out)}});
  }
  Json axes = Json::array();
  for (const AxisReach& reach : ledger.axes()) {
    axes.push_back({{"axis", reach.axis},
                    {"whole", reach.whole},
                    {"in_slices", reach.in_slices},
                    {"at_ends", reach.at_ends},
                    {"domain", reach.domain}});
  }
  Json launches = Json::array();
  for (const LaunchReach& reach : ledger.launches()) {
    launches.push_back(
        {{"entry", reach.entry}, {"whole", reach.whole}, {"run", reach.run}, {"all", reach.all}});
  }
  Json unreached = Json::array();
  for (const Unreached& each : ledger.unreached())
    unreached.push_back({{"what", each.what}, {"copies", each.copies}});
  return {{"rows", std::move(rows)},
          {"axes", std::move(axes)},
          {"launches", std::move(launches)},
          {"unreached", std::move(unreached)}};
}

Result<Ledger> LedgerFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Ledger ledger;
  // One without rows tells of no case: no judgement leaves such a one.
  ASSAY_TRY_VOID(reader.Required<Json>("rows"));
  ASSAY_TRY(ledger.rows_, ListFromJson<LedgerRow>(reader, "rows", RowFromJson));
  ASSAY_TRY(ledger.axes_, ListFromJson<AxisReach>(reader, "axes", AxisFromJson));
  ASSAY_TRY(ledger.launches_, ListFromJson<LaunchReach>(reader, "launches", LaunchFromJson));
  ASSAY_TRY(ledger.unreached_, ListFromJson<Unreached>(reader, "unreached", UnreachedFromJson));
  ASSAY_TRY_VOID(reader.Finish());
  return ledger;
}

}  // namespace assay::verdict

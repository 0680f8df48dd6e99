#include <array>
#include <cmath>
#include <utility>

#include "validator/execution/execution.h"
#include "validator/execution/json_fields.h"

namespace assay {
namespace {

using execution_detail::EnumFromJson;
using execution_detail::List;
using execution_detail::Narrow;

constexpr std::array<std::string_view, 6> kStops = {
    "completed", "fault", "step_limit", "unsupported", "resource_limit", "engine_failure"};

Json ToJson(const Counters& counters) {
  return {{"steps", counters.steps},
          {"warp_steps", counters.warp_steps},
          {"bytes_read", counters.bytes_read},
          {"bytes_written", counters.bytes_written},
          {"barriers", counters.barriers},
          {"atomics", counters.atomics},
          {"used_atomics", counters.used_atomics},
          {"strong_loads", counters.strong_loads},
          {"stale_chances", counters.stale_chances},
          {"stale_reads", counters.stale_reads}};
}

Result<Counters> CountersFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Counters counters;
  ASSAY_TRY(counters.steps, reader.Required<std::uint64_t>("steps"));
  ASSAY_TRY(counters.warp_steps, reader.Required<std::uint64_t>("warp_steps"));
  ASSAY_TRY(counters.bytes_read, reader.Required<std::uint64_t>("bytes_read"));
  ASSAY_TRY(counters.bytes_written, reader.Required<std::uint64_t>("bytes_written"));
  ASSAY_TRY(counters.barriers, reader.Required<std::uint64_t>("barriers"));
  ASSAY_TRY(counters.atomics, reader.Required<std::uint64_t>("atomics"));
  ASSAY_TRY(counters.used_atomics, reader.Required<bool>("used_atomics"));
  ASSAY_TRY(counters.strong_loads, reader.Required<bool>("strong_loads"));
  ASSAY_TRY(counters.stale_chances, reader.Required<std::uint64_t>("stale_chances"));
  ASSAY_TRY(counters.stale_reads, reader.Required<std::uint64_t>("stale_reads"));
  ASSAY_TRY_VOID(reader.Finish());
  return counters;
}

Result<BranchCoverage> CoverageFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  BranchCoverage branch;
  ASSAY_TRY(branch.ptx_line, Narrow<std::uint32_t>(reader, "ptx_line"));
  ASSAY_TRY(const Json site, reader.Required<Json>("site"));
  ASSAY_TRY(branch.site, SourceSiteFromJson(site, reader.PlaceOf("site")));
  ASSAY_TRY(branch.sides, Narrow<std::uint8_t>(reader, "sides"));
  ASSAY_TRY_VOID(reader.Finish());
  return branch;
}

Json ToJson(const ErrorOrigin& origin) {
  Json exact = Json::array();
  for (const double value : origin.exact) {
    exact.push_back(std::isfinite(value) ? Json(value) : Json(nullptr));
  }
  return {{"shares", ToJson(origin.shares)},
          {"exact", std::move(exact)},
          {"flipped", origin.flipped},
          {"lost", origin.lost}};
}

Result<double> ExactFromJson(const Json& json, const std::string& place) {
  if (json.is_null()) return std::nan("");
  if (!json.is_number()) return Fail(ErrorKind::kMalformedInput, "must be a number or null", place);
  return json.get<double>();
}

Result<ErrorOrigin> OriginFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ErrorOrigin origin;
  ASSAY_TRY(const Json shares, reader.Required<Json>("shares"));
  ASSAY_TRY(origin.shares, ErrorSharesFromJson(shares, reader.PlaceOf("shares")));
  ASSAY_TRY(origin.exact, List<double>(reader, "exact", ExactFromJson));
  ASSAY_TRY(origin.flipped, reader.Required<std::uint64_t>("flipped"));
  ASSAY_TRY(origin.lost, reader.Required<std::uint64_t>("lost"));
  ASSAY_TRY_VOID(reader.Finish());
  return origin;
}

Json ToJson(const OrderReport& order) {
  Json orders = Json::array();
  for (const OrderPair& pair : order.orders) orders.push_back(ToJson(pair));
  return {{"sums", ToJson(order.sums)},
          {"contests", ToJson(order.contests)},
          {"pairs", order.pairs},
          {"orders", std::move(orders)},
          {"held", order.held}};
}

Result<OrderReport> OrderFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  OrderReport order;
  ASSAY_TRY(const Json sums, reader.Required<Json>("sums"));
  ASSAY_TRY(order.sums, FindingsFromJson(sums, reader.PlaceOf("sums")));
  ASSAY_TRY(const Json contests, reader.Required<Json>("contests"));
  ASSAY_TRY(order.contests, FindingsFromJson(contests, reader.PlaceOf("contests")));
  ASSAY_TRY(order.pairs, reader.Required<std::uint64_t>("pairs"));
  ASSAY_TRY(order.orders, List<OrderPair>(reader, "orders", OrderPairFromJson));
  ASSAY_TRY(order.held, reader.Required<bool>("held"));
  ASSAY_TRY_VOID(reader.Finish());
  return order;
}

Result<std::uint64_t> CountFromJson(const Json& json, const std::string& place) {
  if (!json.is_number_unsigned()) return Fail(ErrorKind::kMalformedInput, "must be a count", place);
  return json.get<std::uint64_t>();
}

}  // namespace

std::string_view Name(Stop stop) { return kStops[static_cast<std::size_t>(stop)]; }

Json ToJson(const Report& report) {
  Json coverage = Json::array();
  for (const BranchCoverage& branch : report.coverage) {
    coverage.push_back(
        {{"ptx_line", branch.ptx_line}, {"site", ToJson(branch.site)}, {"sides", branch.sides}});
  }
  Json json = {{"schema", "assay.report/1"},
               {"stop", Name(report.stop)},
               {"reason", report.reason},
               {"findings", ToJson(report.findings)},
               {"watched", ToJson(report.watched)},
               {"counters", ToJson(report.counters)},
               {"coverage", std::move(coverage)},
               {"unwritten_bytes", report.unwritten_bytes},
               {"first_unwritten", report.first_unwritten}};
  if (!report.stale_reads.empty()) json["stale_reads"] = ToJson(report.stale_reads);
  if (report.order != OrderReport{}) json["order"] = ToJson(report.order);
  if (report.origin) json["origin"] = ToJson(*report.origin);
  return json;
}

Result<Report> ReportFromJson(const Json& json) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, "report"));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.report/1") {
    return Fail(ErrorKind::kMalformedInput, "unknown schema '" + schema + "'",
                reader.PlaceOf("schema"));
  }
  Report report;
  ASSAY_TRY(report.stop, EnumFromJson<Stop>(reader, "stop", kStops));
  ASSAY_TRY(report.reason, reader.Required<std::string>("reason"));
  ASSAY_TRY(const Json findings, reader.Required<Json>("findings"));
  ASSAY_TRY(report.findings, FindingsFromJson(findings, reader.PlaceOf("findings")));
  ASSAY_TRY(const Json watched, reader.Required<Json>("watched"));
  ASSAY_TRY(report.watched, ChecksFromJson(watched, reader.PlaceOf("watched")));
  if (reader.Has("stale_reads")) {
    ASSAY_TRY(const Json stale, reader.Required<Json>("stale_reads"));
    ASSAY_TRY(report.stale_reads, FindingsFromJson(stale, reader.PlaceOf("stale_reads")));
  }
  if (reader.Has("order")) {
    ASSAY_TRY(const Json order, reader.Required<Json>("order"));
    ASSAY_TRY(report.order, OrderFromJson(order, reader.PlaceOf("order")));
  }
  ASSAY_TRY(const Json counters, reader.Required<Json>("counters"));
  ASSAY_TRY(report.counters, CountersFromJson(counters, reader.PlaceOf("counters")));
  ASSAY_TRY(report.coverage, List<BranchCoverage>(reader, "coverage", CoverageFromJson));
  if (reader.Has("origin")) {
    ASSAY_TRY(const Json origin, reader.Required<Json>("origin"));
    ASSAY_TRY(report.origin, OriginFromJson(origin, reader.PlaceOf("origin")));
  }
  ASSAY_TRY(report.unwritten_bytes, List<std::uint64_t>(reader, "unwritten_bytes", CountFromJson));
  ASSAY_TRY(report.first_unwritten, reader.Required<std::vector<std::int64_t>>("first_unwritten"));
  ASSAY_TRY_VOID(reader.Finish());
  return report;
}

}  // namespace assay

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
          {"used_atomics", counters.used_atomics}};
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

Result<ErrorShare> ShareFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ErrorShare share;
  ASSAY_TRY(const Json site, reader.Required<Json>("site"));
  ASSAY_TRY(share.site, SourceSiteFromJson(site, reader.PlaceOf("site")));
  ASSAY_TRY(share.share, reader.Required<double>("share"));
  ASSAY_TRY_VOID(reader.Finish());
  return share;
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
  Json shares = Json::array();
  for (const ErrorShare& share : report.error_shares) {
    shares.push_back({{"site", ToJson(share.site)}, {"share", share.share}});
  }
  return {{"schema", "assay.report/1"},
          {"stop", Name(report.stop)},
          {"reason", report.reason},
          {"findings", ToJson(report.findings)},
          {"counters", ToJson(report.counters)},
          {"coverage", std::move(coverage)},
          {"error_shares", std::move(shares)},
          {"unwritten_bytes", report.unwritten_bytes},
          {"first_unwritten", report.first_unwritten}};
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
  ASSAY_TRY(const Json counters, reader.Required<Json>("counters"));
  ASSAY_TRY(report.counters, CountersFromJson(counters, reader.PlaceOf("counters")));
  ASSAY_TRY(report.coverage, List<BranchCoverage>(reader, "coverage", CoverageFromJson));
  ASSAY_TRY(report.error_shares, List<ErrorShare>(reader, "error_shares", ShareFromJson));
  ASSAY_TRY(report.unwritten_bytes, List<std::uint64_t>(reader, "unwritten_bytes", CountFromJson));
  ASSAY_TRY(report.first_unwritten, reader.Required<std::vector<std::int64_t>>("first_unwritten"));
  ASSAY_TRY_VOID(reader.Finish());
  return report;
}

}  // namespace assay

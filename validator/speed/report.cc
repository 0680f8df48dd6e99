#include <fmt/format.h>

#include "base/fields.h"
#include "validator/speed/meter.h"

namespace assay::speed {

Json ToJson(const Measurement& measurement) {
  Json json = {{"workload", measurement.workload}, {"note", measurement.note}};
  if (!measurement.scaled.empty()) json["scaled"] = measurement.scaled;
  if (!measurement.left_out.empty()) {
    json["left_out"] = measurement.left_out;
    return json;
  }
  json["seconds"] = measurement.Median();
  json["spread"] = measurement.Spread();
  json["calls"] = measurement.seconds.size();
  json["limit_seconds"] = measurement.limit.seconds;
  json["limited_by"] = measurement.limit.by;
  json["bytes"] = measurement.limit.bytes;
  json["operations"] = measurement.limit.operations;
  json["share"] = measurement.share;
  if (measurement.library) {
    json["library"] = measurement.library_name;
    json["library_seconds"] = *measurement.library;
    json["use_library"] = measurement.UseLibrary();
  }
  if (!measurement.no_library.empty()) json["no_library"] = measurement.no_library;
  json["outputs_checked"] = measurement.checked;
  json["outputs_compared"] = measurement.compared;
  if (!measurement.held.empty()) json["held"] = measurement.held;
  json["before"] = WriteJson(measurement.before);
  json["after"] = WriteJson(measurement.after);
  Json findings = Json::array();
  for (const Finding& finding : measurement.findings) findings.push_back(finding.message);
  if (!findings.empty()) json["findings"] = std::move(findings);
  return json;
}

Json ReportOf(const ops::Instance& instance, const Rates& rates,
              std::span<const Measurement> measurements) {
  Json all = Json::array();
  std::vector<WorkloadSpeed> estimates;
  for (const Measurement& measurement : measurements) {
    all.push_back(ToJson(measurement));
    if (measurement.share > 0) estimates.push_back(measurement.Summary());
  }
  return {{"schema", "assay.speed/1"},
          {"instance", instance.Id()},
          {"rates", WriteJson(rates)},
          {"share", GeometricMean(estimates)},
          {"workloads", std::move(all)}};
}

std::string TextOf(std::span<const Measurement> measurements) {
  std::string text;
  for (const Measurement& at : measurements) {
    if (!at.left_out.empty()) {
      text += fmt::format("  {:44} left out: {}\n", at.workload, at.left_out);
      continue;
    }
    text +=
        fmt::format("  {:44} {:9.1f} us  {:5.1f} % of the limit ({}), spread {:.1f} %", at.workload,
                    1e6 * at.Median(), 100 * at.share, at.limit.by, 100 * at.Spread());
    if (at.library) {
      text += fmt::format(", {} {:.1f} us{}", at.library_name, 1e6 * *at.library,
                          at.UseLibrary() ? ": use the library" : "");
    }
    if (!at.scaled.empty()) text += " (" + at.scaled + ")";
    text += "\n";
    for (const Finding& finding : at.findings)
      text += fmt::format("    {}\n", finding.message.substr(0, finding.message.find('\n')));
  }
  return text;
}

}  // namespace assay::speed

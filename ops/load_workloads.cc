#include "ops/load_workloads.h"

#include <fmt/format.h>

#include <sstream>
#include <system_error>

#include "base/file.h"
#include "base/json.h"

namespace assay::ops {
namespace {

Result<Workload> ReadWorkload(const Json& line, const OpSpec& op, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(line, place));
  if (reader.Has("workload")) {
    ASSAY_TRY(const Json inner, reader.Required<Json>("workload"));
    return ReadWorkload(inner, op, place);
  }
  Workload workload;
  ASSAY_TRY(const Json axes, reader.Required<Json>("axes"));
  ASSAY_TRY(workload.note, reader.Optional<std::string>("note", ""));
  reader.Ignore("inputs");
  reader.Ignore("uuid");
  ASSAY_TRY_VOID(reader.Finish());
  if (!axes.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("axes"));
  for (const auto& [name, value] : axes.items()) {
    ASSAY_TRY(workload.axes[name],
              json_detail::Convert<std::int64_t>(value, reader.PlaceOf("axes") + "/" + name));
  }
  if (auto resolved = ResolveAxes(op, workload.axes); !resolved) {
    return std::unexpected(WithPlace(std::move(resolved).error(), place));
  }
  return workload;
}

}  // namespace

Result<std::vector<Workload>> LoadWorkloads(const OpSpec& op) {
  std::vector<Workload> workloads;
  const Path path = op.folder / "workloads.jsonl";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return workloads;
  ASSAY_TRY(const std::string text, ReadFile(path, 16u << 20));
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("{}:{}", path.string(), number);
    ASSAY_TRY(const Json document, ParseJson(line, place));
    ASSAY_TRY(Workload workload, ReadWorkload(document, op, place));
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

}  // namespace assay::ops

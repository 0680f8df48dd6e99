#include "cli/cost_export.h"

#include <fmt/format.h>

namespace assay::cli {
namespace {

// How a buffer is filled there: by kind, since gigabytes of values do not travel.
Json FillOf(const BufferSpec& buffer, const cost::BoundShape& shape) {
  if (buffer.role == BufferRole::kWorkspace)
    return {{"kind", buffer.fill == BufferFill::kZero ? "zero" : "none"}};
  const ops::TensorSpec* spec = shape.instance.op.FindInput(buffer.name);
  if (spec == nullptr) {
    const ops::TensorSpec* const output = shape.instance.op.FindOutput(buffer.name);
    if (output == nullptr || output->updates.empty()) return {{"kind", "none"}};
    spec = shape.instance.op.FindInput(output->updates);
  }
  const ops::Domain& domain = spec->domain;
  switch (domain.kind) {
    case ops::Domain::Kind::kIndex:
      return {{"kind", "index"}, {"below", shape.axes.at(domain.of)}};
    case ops::Domain::Kind::kRange:
      return {{"kind", "range"}, {"low", domain.low}, {"high", domain.high}};
    case ops::Domain::Kind::kChoice:
      return {{"kind", "choice"}, {"values", domain.values}};
    default:
      return {{"kind", "normal"}, {"mean", domain.typical_mean}, {"scale", domain.typical_scale}};
  }
}

Json BufferJson(const BufferSpec& buffer, const cost::BoundShape& shape) {
  return {{"name", buffer.name},
          {"dtype", Name(buffer.dtype)},
          {"elements", buffer.elements},
          {"bytes", static_cast<std::int64_t>(SizeOf(buffer.dtype)) * buffer.elements},
          {"input", buffer.role == BufferRole::kInput},
          {"fill", FillOf(buffer, shape)}};
}

Json ArgumentJson(const Argument& argument) {
  if (argument.kind == Argument::Kind::kBuffer) return {{"buffer", argument.buffer}};
  std::string bytes;
  for (const std::uint8_t byte : argument.bytes) bytes += fmt::format("{:02x}", byte);
  return {{"dtype", Name(argument.dtype)}, {"bytes", std::move(bytes)}};
}

Json LaunchJson(const Launch& launch, const std::string& entry) {
  Json args = Json::array();
  for (const Argument& argument : launch.args) args.push_back(ArgumentJson(argument));
  return {{"entry", entry},
          {"symbol", launch.entry},
          {"grid", launch.grid},
          {"block", launch.block},
          {"cluster", launch.cluster},
          {"shared_bytes", launch.shared_bytes},
          {"cooperative", launch.cooperative},
          {"args", std::move(args)}};
}

bool HasTensorMaps(const Execution& execution) {
  for (const Launch& launch : execution.launches) {
    for (const Argument& argument : launch.args) {
      if (argument.kind == Argument::Kind::kTensorMap) return true;
    }
  }
  return false;
}

}  // namespace

Status ExportLaunches(const cost::Subject& subject, const Path& folder) {
  Json workloads = Json::array();
  for (const ops::Workload& workload : subject.instance.op.workloads) {
    Json row = Json::object();
    for (const auto& [name, extent] : workload.axes) row["axes"][name] = extent;
    row["note"] = workload.note;
    const auto shape = cost::BindShape(subject, workload.axes, 1);
    if (!shape || HasTensorMaps((*shape)->binding.execution)) {
      row["left_out"] = shape ? "tensor maps are made by the driver" : ToString(shape.error());
      workloads.push_back(std::move(row));
      continue;
    }
    const Execution& execution = (*shape)->binding.execution;
    Json buffers = Json::array();
    for (const BufferSpec& buffer : execution.buffers)
      buffers.push_back(BufferJson(buffer, **shape));
    Json launches = Json::array();
    for (std::size_t i = 0; i < execution.launches.size(); ++i)
      launches.push_back(LaunchJson(execution.launches[i], (*shape)->plan.kernels[i].entry));
    row["buffers"] = std::move(buffers);
    row["launches"] = std::move(launches);
    workloads.push_back(std::move(row));
  }
  Json binding = Json::object();
  for (const auto& [variable, dtype] : subject.instance.binding) binding[variable] = Name(dtype);
  const Json document = {
      {"schema", "assay.launches/1"},          {"op", subject.instance.op.name},
      {"dtypes", std::move(binding)},          {"arch", subject.instance.arch},
      {"compiler", subject.compiled.compiler}, {"workloads", std::move(workloads)}};
  ASSAY_TRY_VOID(MakeFolders(folder));
  ASSAY_TRY_VOID(WriteFileAtomically(folder / "kernel.cubin", subject.compiled.cubin));
  return WriteFileAtomically(folder / "launches.json", PrettyJson(document));
}

}  // namespace assay::cli

#include "workers/gpu_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "validator/gpu/device.h"
#include "workers/mapped_buffers.h"

namespace assay::workers {
namespace {

struct Program {
  Execution execution;
  MappedBuffers mapped;
};

/// What "run", "time" and "repeat" have in common.
Result<Program> ReadProgram(ObjectReader& header, sandbox::Message& request) {
  ASSAY_TRY(const Json document, header.Required<Json>("execution"));
  ASSAY_TRY(const std::uint64_t ptx_bytes, header.Required<std::uint64_t>("ptx_bytes"));
  if (ptx_bytes > request.payload.size()) {
    return Fail(ErrorKind::kUsage, "the payload is shorter than its PTX",
                header.PlaceOf("ptx_bytes"));
  }
  Program program;
  ASSAY_TRY(program.execution, ExecutionFromJson(document));
  program.execution.ptx = request.payload.substr(0, ptx_bytes);
  program.execution.cubin = request.payload.substr(ptx_bytes);
  ASSAY_TRY(program.mapped, MapBuffers(program.execution, std::move(request.fds)));
  return program;
}

Result<sandbox::Answer> Describe(gpu::Device& device, ObjectReader& header, sandbox::Message&) {
  ASSAY_TRY_VOID(header.Finish());
  return sandbox::Answer{.header = {{"device", device.name()}, {"devices", device.count()}}};
}

Result<sandbox::Answer> Run(gpu::Device& device, ObjectReader& header, sandbox::Message& request) {
  ASSAY_TRY(const Program program, ReadProgram(header, request));
  ASSAY_TRY_VOID(header.Finish());
  const Json report = ToJson(device.Run(program.execution, program.mapped.bytes));
  return sandbox::Answer{.header = {{"report", report}}, .last = device.spent()};
}

// What was timed leaves nothing behind: its context ends with the worker.
Result<sandbox::Answer> Time(gpu::Device& device, ObjectReader& header, sandbox::Message& request) {
  ASSAY_TRY(const Program program, ReadProgram(header, request));
  ASSAY_TRY(const Json document, header.Required<Json>("plan"));
  ASSAY_TRY_VOID(header.Finish());
  ASSAY_TRY(const TimingPlan plan, ReadJson<TimingPlan>(document, header.PlaceOf("plan")));
  Timing timing;
  const Json report = ToJson(device.Time(program.execution, plan, program.mapped.bytes, timing));
  return sandbox::Answer{.header = {{"report", report}, {"answer", WriteJson(timing)}},
                         .last = true};
}

Result<sandbox::Answer> Repeat(gpu::Device& device, ObjectReader& header,
                               sandbox::Message& request) {
  ASSAY_TRY(const Program program, ReadProgram(header, request));
  ASSAY_TRY(const Json document, header.Required<Json>("plan"));
  ASSAY_TRY_VOID(header.Finish());
  ASSAY_TRY(const StressPlan plan, ReadJson<StressPlan>(document, header.PlaceOf("plan")));
  Stress stress;
  const Json report = ToJson(device.Repeat(program.execution, plan, program.mapped.bytes, stress));
  return sandbox::Answer{.header = {{"report", report}, {"answer", WriteJson(stress)}},
                         .last = device.spent()};
}

// The vendor's library keeps memory of the card: it ends with the worker.
Result<sandbox::Answer> MeasureRates(gpu::Device& device, ObjectReader& header, sandbox::Message&) {
  ASSAY_TRY_VOID(header.Finish());
  ASSAY_TRY(const Rates rates, device.MeasureRates());
  return sandbox::Answer{.header = {{"answer", WriteJson(rates)}}, .last = true};
}

Result<sandbox::Answer> TimeProduct(gpu::Device& device, ObjectReader& header, sandbox::Message&) {
  ASSAY_TRY(const Json document, header.Required<Json>("product"));
  ASSAY_TRY_VOID(header.Finish());
  ASSAY_TRY(const MatrixProduct product,
            ReadJson<MatrixProduct>(document, header.PlaceOf("product")));
  ASSAY_TRY(const double seconds, device.TimeProduct(product));
  return sandbox::Answer{.header = {{"seconds", seconds}}, .last = true};
}

Result<sandbox::Answer> TimeRows(gpu::Device& device, ObjectReader& header, sandbox::Message&) {
  ASSAY_TRY(const Json document, header.Required<Json>("rows"));
  ASSAY_TRY_VOID(header.Finish());
  ASSAY_TRY(const RowsPrimitive primitive,
            ReadJson<RowsPrimitive>(document, header.PlaceOf("rows")));
  ASSAY_TRY(const double seconds, device.TimeRows(primitive));
  return sandbox::Answer{.header = {{"seconds", seconds}}, .last = true};
}

struct ActionRow {
  std::string_view name;
  Result<sandbox::Answer> (*serve)(gpu::Device&, ObjectReader&, sandbox::Message&);
};
constexpr ActionRow kActions[] = {{"describe", Describe},  {"run", Run},
                                  {"time", Time},          {"repeat", Repeat},
                                  {"rates", MeasureRates}, {"product", TimeProduct},
                                  {"rows", TimeRows}};

Result<sandbox::Answer> Serve(gpu::Device& device, sandbox::Message request) {
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(request.header, "gpu request"));
  ASSAY_TRY(const std::string action, header.Required<std::string>("action"));
  const auto row = std::ranges::find(kActions, action, &ActionRow::name);
  if (row == std::end(kActions))
    return Fail(ErrorKind::kUsage, "unknown action '" + action + "'", header.PlaceOf("action"));
  return row->serve(device, header, request);
}

}  // namespace

Result<sandbox::Service> MakeGpuService(int number, GpuLibraries libraries, bool apart) {
  ASSAY_TRY(const gpu::Driver driver, gpu::OpenDriver());
  ASSAY_TRY(std::shared_ptr<gpu::Device> device, gpu::Device::Open(driver, number));
  device->UseMatrixLibrary(std::move(libraries.matrices));
  device->UseTensorLibrary(std::move(libraries.tensors));
  device->LayBuffersApart(apart);
  return [device, apart](sandbox::Message request) {
    Result<sandbox::Answer> answer = Serve(*device, std::move(request));
    // A tool says what it has seen when the process ends.
    if (answer && apart) answer->last = true;
    return answer;
  };
}

}  // namespace assay::workers

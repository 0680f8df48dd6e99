#include "workers/gpu_service.h"

#include <memory>
#include <utility>

#include "validator/gpu/device.h"
#include "workers/mapped_buffers.h"

namespace assay::workers {
namespace {

Result<sandbox::Answer> Serve(gpu::Device& device, sandbox::Message request) {
  sandbox::Answer answer;
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(request.header, "gpu request"));
  ASSAY_TRY(const std::string action, header.Required<std::string>("action"));
  if (action == "describe") {
    ASSAY_TRY_VOID(header.Finish());
    answer.header["device"] = device.name();
    return answer;
  }
  if (action != "run")
    return Fail(ErrorKind::kUsage, "unknown action '" + action + "'", header.PlaceOf("action"));
  ASSAY_TRY(const Json document, header.Required<Json>("execution"));
  ASSAY_TRY(const std::uint64_t ptx_bytes, header.Required<std::uint64_t>("ptx_bytes"));
  ASSAY_TRY_VOID(header.Finish());
  if (ptx_bytes > request.payload.size()) {
    return Fail(ErrorKind::kUsage, "the payload is shorter than its PTX",
                header.PlaceOf("ptx_bytes"));
  }
  ASSAY_TRY(Execution execution, ExecutionFromJson(document));
  execution.ptx = request.payload.substr(0, ptx_bytes);
  execution.cubin = request.payload.substr(ptx_bytes);
  ASSAY_TRY(const MappedBuffers mapped, MapBuffers(execution, std::move(request.fds)));
  answer.header["report"] = ToJson(device.Run(execution, mapped.bytes));
  answer.last = device.spent();
  return answer;
}

}  // namespace

Result<sandbox::Service> MakeGpuService(int number) {
  ASSAY_TRY(const gpu::Driver driver, gpu::OpenDriver());
  ASSAY_TRY(std::shared_ptr<gpu::Device> device, gpu::Device::Open(driver, number));
  return [device](sandbox::Message request) { return Serve(*device, std::move(request)); };
}

}  // namespace assay::workers

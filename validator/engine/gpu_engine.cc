#include "validator/engine/gpu_engine.h"

#include <fmt/format.h>

#include <optional>

#include "sandbox/worker_pool.h"
#include "validator/engine/device_turn.h"
#include "validator/engine/worker_run.h"

namespace assay::engine {

class GpuEngine::Held {
 public:
  /// The first of `begin` to `end` that is free, as soon as one is.
  Held(GpuEngine& engine, std::size_t begin, std::size_t end,
       DeviceTurn::Use use = DeviceTurn::Use::kAlone)
      : engine_(engine) {
    ASSAY_CHECK(begin < end && end <= engine.busy_.size(), "a GPU that was not asked for");
    std::unique_lock lock(engine.mutex_);
    engine.free_.wait(lock, [&] {
      for (number_ = begin; number_ < end; ++number_) {
        if (!engine.busy_[number_]) return true;
      }
      return false;
    });
    engine.busy_[number_] = true;
    lock.unlock();
    turn_.emplace(engine.TurnsOf(number_), use);
  }
  ~Held() {
    turn_.reset();
    {
      const std::lock_guard lock(engine_.mutex_);
      engine_.busy_[number_] = false;
    }
    engine_.free_.notify_all();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  unsigned number() const { return static_cast<unsigned>(number_); }

 private:
  GpuEngine& engine_;
  std::size_t number_ = 0;
  std::optional<DeviceTurn> turn_;
};

WorkerRun GpuEngine::RunOf(std::string_view action, std::string_view program,
                           const Execution& execution, std::chrono::milliseconds deadline) const {
  return {.kind = sandbox::WorkerKind::kGpu,
          .name = name(),
          .payload = program,
          .action = action,
          .header = {{"ptx_bytes", execution.ptx.size()}},
          .deadline = deadline,
          .hung = fmt::format("the kernel did not end on the GPU within {} s",
                              std::chrono::duration_cast<std::chrono::seconds>(deadline).count())};
}

Result<Report> GpuEngine::Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                              Trust trust) {
  const Held device(*this, 0, options_.devices, DeviceTurn::Use::kBesideOthers);
  const std::string program = execution.ptx + execution.cubin;
  // References count every rounding, in FP64.
  const auto deadline = trust == Trust::kReference ? options_.long_deadline : options_.deadline;
  WorkerRun run = RunOf("run", program, execution, deadline);
  run.lane = device.number();
  return RunInWorker(workers_, run, execution, buffers, trust);
}

Result<Stopwatch::Timed> GpuEngine::Time(const Execution& execution, const TimingPlan& plan,
                                         std::span<SharedMemory* const> buffers) {
  const Held first(*this, 0, 1);
  const std::string program = execution.ptx + execution.cubin;
  WorkerRun run = RunOf("time", program, execution, options_.long_deadline);
  run.header["plan"] = WriteJson(plan);
  ASSAY_TRY(WorkerAnswer answer, AskWorker(workers_, run, execution, buffers, Trust::kCandidate));
  Timed timed{.report = std::move(answer.report), .timing = {}};
  if (timed.report.stop == Stop::kCompleted) {
    ASSAY_TRY(timed.timing, ReadJson<Timing>(answer.header.value("answer", Json()), "gpu reply"));
  }
  return timed;
}

Result<Stopwatch::Stressed> GpuEngine::Repeat(const Execution& execution, const StressPlan& plan,
                                              std::span<SharedMemory* const> buffers) {
  const Held first(*this, 0, 1);
  const std::string program = execution.ptx + execution.cubin;
  WorkerRun run = RunOf("repeat", program, execution, options_.long_deadline);
  run.header["plan"] = WriteJson(plan);
  ASSAY_TRY(WorkerAnswer answer, AskWorker(workers_, run, execution, buffers, Trust::kCandidate));
  Stressed stressed{.report = std::move(answer.report), .stress = {}};
  if (stressed.report.stop == Stop::kCompleted) {
    ASSAY_TRY(stressed.stress,
              ReadJson<Stress>(answer.header.value("answer", Json()), "gpu reply"));
  }
  return stressed;
}

std::span<const std::string_view> GpuEngine::Tools() const { return sandbox::VendorTools(); }

Result<Inspector::Inspected> GpuEngine::Inspect(std::size_t tool, const Execution& execution,
                                                std::span<SharedMemory* const> buffers) {
  const std::string program = execution.ptx + execution.cubin;
  WorkerRun run = RunOf("run", program, execution, options_.tool_deadline);
  run.kind = sandbox::WorkerKind::kGpuTool;
  run.lane = static_cast<unsigned>(tool);
  run.hung = fmt::format("the kernel did not end under {}", Tools()[tool]);
  // Several tools run at once.
  const DeviceTurn turn(TurnsOf(0), DeviceTurn::Use::kBesideOthers);
  ASSAY_TRY(WorkerAnswer answer, AskWorker(workers_, run, execution, buffers, Trust::kCandidate));
  return Inspected{.report = std::move(answer.report), .words = std::move(answer.words)};
}

Result<Json> GpuEngine::Ask(Json header, std::chrono::milliseconds deadline, unsigned device) {
  const Held held(*this, device, device + 1);
  sandbox::Request request;
  request.lane = device;
  request.role = RoleOf(Trust::kReference);
  request.header = std::move(header);
  ASSAY_TRY(const sandbox::Reply reply,
            workers_.Call(sandbox::WorkerKind::kGpu, request, deadline));
  if (reply.outcome != sandbox::CallOutcome::kReplied) {
    return Fail(ErrorKind::kEnvironment, "the GPU's worker ended: " + reply.detail, "gpu",
                "nvidia-smi says how the GPU and its driver are");
  }
  if (!reply.message.header.is_object())
    return Fail(ErrorKind::kEnvironment, "the GPU's worker answered with no object", "gpu");
  return reply.message.header;
}

Result<Rates> GpuEngine::Measure() {
  ASSAY_TRY(const Json reply, Ask({{"action", "rates"}}, options_.long_deadline));
  return ReadJson<Rates>(reply.value("answer", Json()), "gpu reply");
}

Result<double> GpuEngine::Time(const MatrixProduct& product) {
  ASSAY_TRY(const Json reply,
            Ask({{"action", "product"}, {"product", WriteJson(product)}}, options_.long_deadline));
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(reply, "gpu reply"));
  return header.Required<double>("seconds");
}

Result<double> GpuEngine::Time(const RowsPrimitive& primitive) {
  ASSAY_TRY(const Json reply,
            Ask({{"action", "rows"}, {"rows", WriteJson(primitive)}}, options_.long_deadline));
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(reply, "gpu reply"));
  return header.Required<double>("seconds");
}

Result<std::string> GpuEngine::Describe(unsigned device) {
  ASSAY_TRY(const Json reply, Ask({{"action", "describe"}}, options_.deadline, device));
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(reply, "gpu reply"));
  return header.Required<std::string>("device");
}

Result<unsigned> GpuEngine::Count() {
  ASSAY_TRY(const Json reply, Ask({{"action", "describe"}}, options_.deadline));
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(reply, "gpu reply"));
  ASSAY_TRY(const std::int64_t count, header.Required<std::int64_t>("devices"));
  constexpr std::int64_t kMost = 64;
  if (count < 1 || count > kMost)
    return Fail(ErrorKind::kEnvironment, "the GPU's worker counts no GPUs", "gpu");
  return static_cast<unsigned>(count);
}

}  // namespace assay::engine

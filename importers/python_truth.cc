#include "importers/python_truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "sandbox/frame.h"
#include "sandbox/jail.h"

namespace assay::importers {
namespace {

using oracle::Cells;

// The number under which the process finds its socket; 5 is the filter's (sandbox/jail.cc).
constexpr int kSocketFd = 3;
constexpr sandbox::FrameLimits kLimits{
    .header_bytes = 1u << 20, .payload_bytes = 256u << 20, .fds = 0};

std::unexpected<Error> WholeOnly(const ops::Instance& instance) {
  return Fail(ErrorKind::kUnsupported, "a reference in Python gives truths of whole cases alone",
              instance.op.name);
}

Result<std::string> FunctionOf(const ops::Instance& instance) {
  const std::string place = instance.op.reference.launch.string();
  ASSAY_TRY(const Json document, ReadJsonFile(place));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, place));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.python/1")
    return Fail(ErrorKind::kMalformedInput, fmt::format("'{}' is not known", schema), place,
                "write \"assay.python/1\"");
  ASSAY_TRY(std::string function, reader.Required<std::string>("function"));
  ASSAY_TRY_VOID(reader.Finish());
  return function;
}

/// Of an output whose elements differ by `deviation` at most from `value` when they are disturbed.
double Allowed(double value, double deviation, double unit) {
  if (!std::isfinite(value)) return 0;
  if (!std::isfinite(deviation)) return std::numeric_limits<double>::infinity();
  return PythonTruth::kFactor * deviation + 4 * unit * std::fabs(value) + 0x1p-126;
}

}  // namespace

struct PythonTruth::Server {
  std::string key;
  sandbox::Process process;
  UniqueFd socket;
  sandbox::Policy policy{"import"};
};

struct PythonTruth::Answer {
  Json header;
  std::string payload;
};

PythonTruth::PythonTruth(std::function<Result<Python>()> find, RunOptions options)
    : find_(std::move(find)), options_(std::move(options)) {
  owner_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || work_; });
      if (stopping_) break;
      const std::function<void()> work = std::exchange(work_, nullptr);
      lock.unlock();
      work();
      lock.lock();
      changed_.notify_all();
    }
    server_.reset();
  });
}

PythonTruth::~PythonTruth() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  owner_.join();
}

void PythonTruth::OnOwner(std::function<void()> work) {
  bool done = false;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !work_; });
  work_ = [&] {
    work();
    const std::lock_guard inner(mutex_);
    done = true;
  };
  changed_.notify_all();
  changed_.wait(lock, [&] { return done; });
}

Result<PythonTruth::Answer> PythonTruth::AskOnce(const ops::Instance& instance, const Json& request,
                                                 std::string_view data) {
  const std::string key = instance.op.digest + " " + instance.op.reference.source.string();
  const auto deadline = std::chrono::steady_clock::now() + options_.time;
  const std::string place = instance.op.reference.source.string();
  if (!server_ || server_->key != key) {
    server_.reset();
    ASSAY_TRY(const Python python, find_());
    Path package = options_.package;
    if (package.empty()) {
      ASSAY_TRY(package, PackageFolder());
    }
    auto server = std::make_unique<Server>();
    server->key = key;
    server->policy = ImportPolicy(python, package, instance.op.reference.source);
    Path bubblewrap;
    if (options_.unsafe_no_jail) {
      server->policy.Allow(sandbox::Weakening::kNoJail).Environment("PYTHONPATH", package.string());
    } else {
      server->policy.Environment("PYTHONPATH", "/assay");
      ASSAY_TRY(const sandbox::JailReport report, sandbox::ProbeJail());
      if (!report.works) return std::unexpected(report.AsError());
      bubblewrap = report.bubblewrap;
    }
    ASSAY_TRY(sandbox::SocketPair sockets, sandbox::MakeSocketPair());
    const sandbox::JailedCommand command{
        .program = python.program,
        .arguments = {"-s", "-m", "assay_import", "serve", std::to_string(kSocketFd),
                      options_.unsafe_no_jail ? instance.op.reference.source.string()
                                              : std::string("/problem/problem.py")},
        .fds = {{sockets.theirs.get(), kSocketFd}}};
    ASSAY_TRY(server->process, sandbox::StartJailed(server->policy, command, bubblewrap));
    server->socket = std::move(sockets.ours);
    server_ = std::move(server);
  }
  const auto ended = [&](const sandbox::FrameFault& fault) -> std::unexpected<Error> {
    server_->process.DrainOutput();
    const std::string said = server_->process.OutputTail();
    server_.reset();
    if (fault.kind == sandbox::FrameFaultKind::kTimedOut) {
      return Fail(ErrorKind::kLimit,
                  fmt::format("it gave no truth within {} seconds", options_.time.count()), place,
                  "look for an endless loop");
    }
    return Fail(
        ErrorKind::kMalformedInput,
        "it ended the process that computes truths (" + fault.detail + ")" +
            (said.empty() ? "" : ": " + said.substr(said.size() > 300 ? said.size() - 300 : 0)),
        place, "see what the file does when it is loaded and called");
  };
  const int socket = server_->socket.get();
  if (const auto sent = sandbox::Send(socket, request, data, {}, deadline); !sent)
    return ended(sent.error());
  auto message = sandbox::Receive(socket, kLimits, deadline);
  if (!message) return ended(message.error());
  if (message->header.is_object() && message->header.contains("fault")) {
    const Json& fault = message->header["fault"];
    std::string text = fault.is_string() ? fault.get<std::string>() : "it failed";
    for (char& c : text) {
      if (c < 32 || c > 126) c = '?';
    }
    return Fail(ErrorKind::kMalformedInput, text.substr(0, 400), place);
  }
  return Answer{std::move(message->header), std::move(message->payload)};
}

Result<PythonTruth::Answer> PythonTruth::Ask(const ops::Instance& instance, const Json& request,
                                             std::string_view data) {
  Result<Answer> answer = Fail(ErrorKind::kInternal, "not asked", "python");
  OnOwner([&] { answer = AskOnce(instance, request, data); });
  return answer;
}

Status PythonTruth::Check(const ops::Instance& instance) {
  ASSAY_TRY(const std::string function, FunctionOf(instance));
  if (instance.op.Chooses()) {
    return Fail(
        ErrorKind::kUnsupported,
        "choices need the errors of their scores, which a reference in Python does not have",
        instance.op.name);
  }
  if (!instance.op.contract.reassociation) {
    return Fail(ErrorKind::kUnsupported, "a reference in Python has no order of its own",
                instance.op.name + ": /precision/reassociation");
  }
  ASSAY_TRY_VOID(Ask(instance, {{"function", function}}, {}));
  return {};
}

Result<Cells> PythonTruth::Run(const ops::Instance& instance, const oracle::NumberType& type,
                               const ops::AxisValues& axes, const TensorMap& inputs) {
  if (type.kind != oracle::NumberType::Kind::kBounded || type.in_order) return WholeOnly(instance);
  ASSAY_TRY(const std::string function, FunctionOf(instance));
  const DType accumulate = instance.op.contract.accumulate;
  const double unit = accumulate == DType::kF16    ? 0x1p-11
                      : accumulate == DType::kBF16 ? 0x1p-8
                                                   : 0x1p-24;
  std::string data;
  Json given = Json::object();
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    const auto found = inputs.find(spec.name);
    if (found == inputs.end()) continue;
    const Tensor& tensor = found->second;
    const std::size_t bytes = static_cast<std::size_t>(tensor.elements) * SizeOf(tensor.dtype);
    given[spec.name] = {{"offset", data.size()},
                        {"bytes", bytes},
                        {"dtype", Name(tensor.dtype)},
                        {"shape", tensor.shape},
                        {"number", spec.is_scalar}};
    data.append(reinterpret_cast<const char*>(tensor.memory.bytes().data()), bytes);
  }
  Json wanted = Json::array();
  std::vector<std::pair<std::string, Shape>> shapes;
  std::size_t elements = 0;
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    ASSAY_TRY(Shape shape, ops::ResolveShape(spec, axes));
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    elements += count;
    wanted.push_back({{"name", spec.name}, {"elements", count}});
    shapes.emplace_back(spec.name, std::move(shape));
  }
  const Json request = {{"function", function}, {"inputs", std::move(given)},
                        {"axes", axes},         {"outputs", std::move(wanted)},
                        {"runs", kRuns},        {"unit", unit}};
  ASSAY_TRY(const Answer answer, Ask(instance, request, data));
  // Two numbers an element: its value, and the largest deviation of the disturbed runs.
  if (answer.payload.size() != elements * 2 * sizeof(double)) {
    return Fail(ErrorKind::kMalformedInput, "its truth has not as many numbers as the outputs",
                instance.op.reference.source.string());
  }
  Cells all;
  const char* from = answer.payload.data();
  const auto next = [&] {
    double value = 0;
    std::memcpy(&value, from, sizeof value);
    from += sizeof value;
    return value;
  };
  for (auto& [name, shape] : shapes) {
    shape.push_back(6);
    ASSAY_TRY(Tensor cells, Tensor::Create(DType::kF64, std::move(shape)));
    for (std::int64_t at = 0; at < cells.elements; at += 6) {
      const double value = next(), deviation = next();
      const double allowed = Allowed(value, deviation, unit);
      cells.Set(at, value);
      cells.Set(at + 1, allowed);
      // Nothing is known of how errors are spread: rows and means are held to no more than elements.
      cells.Set(at + 2, allowed);
      cells.Set(at + 3, 1);
      cells.Set(at + 4, 1);
    }
    all.emplace(name, std::move(cells));
  }
  return all;
}

Result<Cells> PythonTruth::RunAt(const ops::Instance& instance, const oracle::NumberType&,
                                 const ops::AxisValues&, const TensorMap&, const oracle::Wanted&) {
  return WholeOnly(instance);
}

Result<Cells> PythonTruth::RunSlice(const ops::Instance& instance, const oracle::NumberType&,
                                    const ops::AxisValues&, const TensorMap&, std::uint64_t,
                                    const oracle::PartEffort&, oracle::Wanted&) {
  return WholeOnly(instance);
}

}  // namespace assay::importers

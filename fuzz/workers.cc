// Both ends of the socket into the jail, and what a worker itself reads.
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/target.h"
#include "sandbox/frame.h"
#include "sandbox/wire.h"
#include "validator/engine/jailed_compiler.h"
#include "validator/execution/execution.h"
#include "workers/compile_log.h"
#include "workers/cubin.h"

namespace assay::fuzz {

void Frames(std::string_view input) {
  auto pair = sandbox::MakeSocketPair();
  ASSAY_CHECK(pair.has_value());
  const std::string_view sent = input.substr(0, 64 << 10);  // what a socket holds
  if (::write(pair->theirs.get(), sent.data(), sent.size()) != static_cast<ssize_t>(sent.size()))
    return;
  pair->theirs.Reset();
  for (int frame = 0; frame < 8; ++frame) {
    const auto message = sandbox::Receive(
        pair->ours.get(), {.header_bytes = 4096, .payload_bytes = 4096, .fds = 0}, std::nullopt);
    if (!message) {
      ASSAY_CHECK(message.error().kind == sandbox::FrameFaultKind::kClosed ||
                  !message.error().detail.empty());
      break;
    }
    ASSAY_CHECK(message->header.is_object() && message->payload.size() <= 4096);
    if (const auto error = message->header.find("error"); error != message->header.end()) {
      const Error said = sandbox::OfWorker(sandbox::ErrorFromJson(*error), "emulate");
      ASSAY_CHECK(said.kind == ErrorKind::kUsage || said.kind == ErrorKind::kEnvironment);
      ASSAY_CHECK(said.message.find('\n') == std::string::npos, said.message);
    }
  }
}

/// The header as JSON, then a line, then the payload.
void CompileReply(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string_view payload = input.substr(std::min(end + 1, input.size()));
  WithJson(input.substr(0, end), "reply", [&](const Json& json) {
    const auto outcome = engine::ReadCompileReply(json, payload);
    if (!outcome) {
      ASSAY_CHECK(!outcome.error().message.empty());
      return;
    }
    ASSAY_CHECK(outcome->kernel.ptx.size() + outcome->kernel.cubin.size() <= payload.size());
    ASSAY_CHECK(outcome->detail.find('\n') == std::string::npos);
  });
}

void Report(std::string_view input) {
  WithJson(input, "report", [](const Json& json) {
    const auto report = ReportFromJson(json);
    if (!report) {
      ASSAY_CHECK(!report.error().message.empty());
      return;
    }
    CheckRoundTrip(*report, [](const Json& again, const char*) { return ReportFromJson(again); });
  });
}

void CompileLog(std::string_view input) {
  const workers::CompileLog log =
      workers::ReadCompileLog(input, [](std::string_view file) { return file == "kernel.cu"; });
  ASSAY_CHECK(log.diagnostics.size() <= workers::kMaxDiagnostics);
  ASSAY_CHECK(log.text.size() <= workers::kMaxLogBytes + 1024);
}

void Cubin(std::string_view input) {
  const auto functions = workers::ReadCubin(input);
  if (!functions) ASSAY_CHECK(!functions.error().message.empty());
}

}  // namespace assay::fuzz

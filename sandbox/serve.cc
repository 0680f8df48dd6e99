#include "sandbox/serve.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "sandbox/jail.h"

namespace assay::sandbox {
namespace {

int Complain(const std::string& what) {
  fmt::print(stderr, "assay-worker: {}\n", what);
  return 1;
}

}  // namespace

int Serve(const ServeOptions& options, const Service& service) {
  if (Status sealed = SealWorker(options.policy); !sealed) {
    return Complain(ToString(sealed.error()));
  }
  const Json hello{{"hello", options.kind}, {"protocol", kWireProtocol}};
  if (auto sent = Send(options.socket, hello, {}, {}, std::nullopt); !sent) {
    return Complain(sent.error().detail);
  }
  for (;;) {
    auto message = Receive(options.socket, FrameLimits{}, std::nullopt);
    if (!message) {
      return message.error().kind == FrameFaultKind::kClosed ? 0 : Complain(message.error().detail);
    }
    Json body = std::move(message->header["body"]);
    Json reply{{"id", message->header.value("id", std::int64_t{-1})}};
    Result<Answer> answer =
        service(Message{std::move(body), std::move(message->payload), std::move(message->fds)});
    std::string payload;
    const bool last = answer && answer->last;
    if (last) reply["last"] = true;
    if (answer) {
      reply["body"] = std::move(answer->header);
      payload = std::move(answer->payload);
    } else {
      reply["error"] = ErrorToJson(answer.error());
    }
    if (auto sent = Send(options.socket, reply, payload, {}, std::nullopt); !sent) {
      return Complain(sent.error().detail);
    }
    if (last) return 0;
  }
}

}  // namespace assay::sandbox

// The worker's side: seal this process, say hello, answer requests until the socket closes.
//
//   int main(int argc, char** argv) {
//     ...
//     return Serve({WorkerKind::kCompile, 3, false}, service);
//   }
//
// A service is a function from message to message. It opens what it needs before Serve is called,
// because afterwards the filter and the limits of the policy are in force. Errors that it returns
// travel to the caller as Result errors; a crash is the pool's business.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "sandbox/frame.h"
#include "sandbox/policy.h"
#include "sandbox/wire.h"

namespace assay::sandbox {

/// What a service returns: header and payload of the reply.
struct Answer {
  Json header = Json::object();
  std::string payload;
  bool last = false;  ///< The process is to be replaced: it ends when this has been sent.
};

/// Owns the request and its descriptors.
using Service = std::function<Result<Answer>(Message request)>;

struct ServeOptions {
  std::string kind;  ///< Announced in hello.
  int socket = kWorkerSocket;
  Policy policy;  ///< Whose limits and filter to apply from within.
};

/// Serves until the peer closes the socket. Returns the exit code: 0 at the end of the stream, 1
/// after a fault, which is on stderr.
int Serve(const ServeOptions& options, const Service& service);

}  // namespace assay::sandbox

// For tests: a pool whose workers are sandbox_misbehave.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "sandbox/worker_pool.h"

namespace assay::sandbox {

inline constexpr std::chrono::seconds kPatience{120};

struct MisbehaveOptions {
  unsigned workers = 2;
  bool unsafe_no_jail = false;
  std::uint64_t resident_bytes = 256u << 20;
  std::uint64_t total_bytes = 0;
  std::vector<std::string> arguments = {};  ///< In place of the kind.
};

inline std::unique_ptr<WorkerPool> MisbehavePool(const MisbehaveOptions& wanted = {}) {
  PoolOptions options;
  options.workers_per_kind = wanted.workers;
  options.unsafe_no_jail = wanted.unsafe_no_jail;
  options.total_bytes = wanted.total_bytes;
  options.launch = [wanted](WorkerKind kind, unsigned) -> Result<WorkerLaunch> {
    WorkerLaunch launch{PolicyFor(kind), ProgramFolder() / "sandbox_misbehave", wanted.arguments};
    if (launch.arguments.empty()) launch.arguments = {std::string(Name(kind))};
    if (wanted.unsafe_no_jail) launch.arguments.emplace_back("--no-jail");
    BindWorker(launch.policy, launch.program);
    launch.policy.ResidentBytes(wanted.resident_bytes);
    return launch;
  };
  auto pool = WorkerPool::Create(std::move(options));
  if (!pool) {
    ADD_FAILURE() << ToString(pool.error());
    return nullptr;
  }
  return *std::move(pool);
}

inline Request Asking(std::string action, Json more = Json::object()) {
  Request request;
  request.header = std::move(more);
  request.header["action"] = std::move(action);
  return request;
}

/// The reply to `action`; fails the test if there is none at all.
inline Reply Ask(Workers& workers, const Request& request,
                 std::chrono::milliseconds deadline = kPatience,
                 WorkerKind kind = WorkerKind::kEmulate) {
  Result<Reply> reply = workers.Call(kind, request, deadline);
  if (!reply) {
    ADD_FAILURE() << ToString(reply.error());
    return Reply{CallOutcome::kProtocol, {}, "no reply", {}};
  }
  return *std::move(reply);
}

/// The header of the reply to `action`; fails the test if the worker did not reply.
inline Json Answered(Workers& workers, const Request& request,
                     WorkerKind kind = WorkerKind::kEmulate) {
  Reply reply = Ask(workers, request, kPatience, kind);
  EXPECT_EQ(reply.outcome, CallOutcome::kReplied) << reply.detail;
  return reply.message.header;
}

}  // namespace assay::sandbox

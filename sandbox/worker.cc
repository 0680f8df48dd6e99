#include "sandbox/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "sandbox/wire.h"

namespace assay::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How often a worker's memory is looked at. Two gigabytes a second are one limit's slack of
/// 40 MB.
constexpr milliseconds kWatchInterval{20};
/// A worker that closed its socket is ending; how long that may take.
constexpr std::chrono::seconds kEndingTime{2};

/// A peer that holds a memory file could shrink it under our mapping, which would kill us with
/// SIGBUS.
void SealAgainstResizing(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return;  // Not a memory file.
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

/// Bytes that memory files take, holes not counted.
std::uint64_t FilledBytes(const std::vector<int>& fds) {
  std::uint64_t bytes = 0;
  for (const int fd : fds) {
    struct stat info{};
    if (::fstat(fd, &info) == 0) bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

double CpuSecondsOf(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec);
}

/// The number that follows `key` in a text of /proc.
std::uint64_t NumberAfter(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const std::size_t digits = text.find_first_of("0123456789", at + key.size());
  if (digits == std::string_view::npos) return 0;
  std::uint64_t value = 0;
  std::from_chars(text.data() + digits, text.data() + text.size(), value);
  return value;
}

/// What /proc says of a process; empty where it does not.
std::string TextOf(pid_t pid, std::string_view what) {
  const UniqueFd file(::open(fmt::format("/proc/{}/{}", pid, what).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace

Usage UsageOf(pid_t pid) {
  const std::string status = TextOf(pid, "status");
  if (status.empty()) return {};
  return {1024 * (NumberAfter(status, "\nRssAnon:") + NumberAfter(status, "\nVmSwap:") +
                  NumberAfter(status, "\nVmPTE:")),
          1024 * NumberAfter(status, "\nRssShmem:"), NumberAfter(status, "\nThreads:")};
}

std::optional<std::uint64_t> SharedPagesOf(pid_t pid) {
  constexpr std::string_view kKey = "\nPss_Shmem:";
  const std::string rollup = TextOf(pid, "smaps_rollup");
  if (rollup.find(kKey) == std::string::npos) return std::nullopt;
  return 1024 * NumberAfter(rollup, kKey);
}

Worker::Worker(Policy policy, Process process, UniqueFd socket)
    : policy_(std::move(policy)), process_(std::move(process)), socket_(std::move(socket)) {}

Result<std::unique_ptr<Worker>> Worker::Start(const WorkerLaunch& launch, const Path& bubblewrap) {
  ASSAY_TRY(SocketPair sockets, MakeSocketPair());
  // The kernel then tells us who sends: the worker's process id, translated out of its namespace.
  const int on = 1;
  ::setsockopt(sockets.ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  const JailedCommand command{
      launch.program, launch.arguments, {{sockets.theirs.get(), kWorkerSocket}}};
  ASSAY_TRY(Process process, StartJailed(launch.policy, command, bubblewrap));
  return std::unique_ptr<Worker>(
      new Worker(launch.policy, std::move(process), std::move(sockets.ours)));
}

Status Worker::Greet(Deadline deadline) {
  FrameReader reader({.header_bytes = 4096, .payload_bytes = 0, .fds = 0});
  for (;;) {
    auto step = reader.Step(socket_.get());
    const bool failed = !step;
    const std::optional<Message> hello = failed ? std::nullopt : *std::move(step);
    if (hello) {
      if (hello->header.value("protocol", Json(0)) != Json(kWireProtocol)) {
        return Fail(ErrorKind::kEnvironment, "the worker speaks another protocol",
                    "worker " + policy_.name(),
                    "rebuild: assay and assay-worker must be of one build");
      }
      pid_ = reader.sender();
      return {};
    }
    const int timeout = PollTimeout(deadline);
    if (failed || timeout == 0) {
      const Reply end = failed ? Died() : Ended(CallOutcome::kTimedOut, "no greeting in time");
      // What fork says at a limit, through bubblewrap or the worker.
      const bool at_limit = end.detail.find(std::strerror(EAGAIN)) != std::string::npos;
      constexpr std::string_view kAskDoctor = "run `assay doctor`, which says what is missing";
      return Fail(ErrorKind::kEnvironment, "the worker did not start: " + end.detail,
                  "worker " + policy_.name(),
                  at_limit ? CureOf(EAGAIN, {}, kAskDoctor) : std::string(kAskDoctor));
    }
    pollfd watched{socket_.get(), POLLIN, 0};
    ::poll(&watched, 1, timeout);
  }
}

Reply Worker::Ended(CallOutcome outcome, std::string reason) {
  dead_ = true;
  process_.Kill();
  process_.DrainOutput();
  const std::string tail = process_.OutputTail();
  Reply reply;
  reply.outcome = outcome;
  reply.detail = std::move(reason);
  if (!tail.empty()) reply.detail += "; it said: " + Quoted(tail);
  return reply;
}

Reply Worker::Died() {
  const auto exit = process_.Wait(steady_clock::now() + kEndingTime);
  if (!exit)
    return Ended(CallOutcome::kProtocol, "the worker closed its socket and went on running");
  return Ended(CallOutcome::kCrashed, DecodeJailedExit(policy_, *exit).Describe());
}

Reply Worker::WithLastWords(Reply reply, Deadline deadline) {
  dead_ = true;
  if (!process_.Wait(deadline))
    return Ended(CallOutcome::kTimedOut, "the tool round the worker did not end");
  process_.DrainOutput();
  reply.detail = process_.OutputTail();
  return reply;
}

// Asking takes as long as a tenth of a tiny run does.
std::uint64_t Worker::HeldBytes() {
  const auto now = steady_clock::now();
  if (now >= look_at_idle_) {
    held_idle_ = UsageOf(pid_).Held(0);
    look_at_idle_ = now + kWatchInterval;
  }
  return held_idle_;
}

std::uint64_t Worker::HeldBytes(std::uint64_t filled, std::uint64_t most, Usage usage) {
  constexpr milliseconds kHolds{200};
  const std::uint64_t shared = usage.shared_bytes;
  if (most == 0 || usage.Held(filled) <= most) return usage.Held(filled);
  const auto without_repeated = [&] {
    usage.shared_bytes = shared - std::min(shared, repeated_);
    return usage.Held(filled);
  };
  // What has been unmapped since may be what was there more than once.
  const auto now = steady_clock::now();
  if (now < look_again_ && shared >= shared_then_ && without_repeated() <= most)
    return without_repeated();
  const auto once = SharedPagesOf(pid_);
  repeated_ = once ? shared - std::min(shared, *once) : 0;
  shared_then_ = shared;
  look_again_ = now + kHolds;
  return without_repeated();
}

std::optional<Reply> Worker::EndIfOverLimit(std::uint64_t filled, const MemoryWatch& watch) {
  const Usage usage = UsageOf(pid_);
  const std::uint64_t allowed = policy_.resident_bytes();
  const std::uint64_t held = HeldBytes(filled, allowed, usage);
  if (allowed != 0 && held > allowed) {
    return Ended(CallOutcome::kOverLimit,
                 fmt::format("killed at its memory limit of {} MiB", allowed >> 20));
  }
  if (watch) {
    if (std::string reason = watch(held); !reason.empty())
      return Ended(CallOutcome::kCrashed, std::move(reason));
  }
  // The kernel's own limit does not bind root, and is not set without a jail.
  const auto threads = policy_.LimitOf(Resource::kProcesses);
  if (threads && usage.threads > *threads) {
    return Ended(
        CallOutcome::kCrashed,
        fmt::format("killed at its thread limit: {} threads, {} allowed", usage.threads, *threads));
  }
  return std::nullopt;
}

Result<Reply> Worker::Accept(Message message) {
  const auto id = message.header.find("id");
  if (id == message.header.end() || *id != Json(next_id_ - 1)) {
    return Ended(CallOutcome::kProtocol, "the worker answered a request that was not asked");
  }
  if (const auto error = message.header.find("error"); error != message.header.end()) {
    return std::unexpected(OfWorker(ErrorFromJson(*error), policy_.name()));
  }
  const auto body = message.header.find("body");
  if (body == message.header.end() || !body->is_object()) {
    return Ended(CallOutcome::kProtocol, "the worker's reply has no body");
  }
  const auto last = message.header.find("last");
  retiring_ = last != message.header.end() && *last == Json(true);
  Reply reply;
  reply.message.header = std::move(*body);
  reply.message.payload = std::move(message.payload);
  reply.message.fds = std::move(message.fds);
  return reply;
}

Result<Reply> Worker::Serve(const Request& request, milliseconds allowed,
                            const MemoryWatch& watch) {
  ASSAY_CHECK(!dead_, "a dead worker was asked");
  const auto start = steady_clock::now();
  const Deadline deadline = start + allowed;
  const auto finish = [start](Result<Reply> reply) {
    if (reply) {
      reply->took =
          std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - start);
    }
    return reply;
  };
  for (const int fd : request.fds) SealAgainstResizing(fd);
  const std::uint64_t filled_before = FilledBytes(request.fds);

  FrameWriter writer({{"id", next_id_++}, {"body", request.header}}, request.payload, request.fds);
  // The worker would hang up on it, which looks like a crash.
  if (const FrameLimits most;
      writer.header_bytes() > most.header_bytes || request.payload.size() > most.payload_bytes) {
    return Fail(
        ErrorKind::kUsage,
        fmt::format("the request has {} bytes beside a text of {}; a worker takes {} and {}",
                    writer.header_bytes(), request.payload.size(), most.header_bytes,
                    most.payload_bytes),
        "worker " + policy_.name(), "use smaller headers, kernels and plans");
  }
  FrameReader reader(request.reply_limits);
  bool sent = false;
  bool output_open = true;
  auto next_watch = start + kWatchInterval;
  for (;;) {
    if (!sent) {
      const auto written = writer.Step(socket_.get());
      // A worker that is gone may have answered before it went: reading decides.
      sent = !written || *written;
    }
    auto step = reader.Step(socket_.get());
    if (!step) {
      const FrameFaultKind kind = step.error().kind;
      if (kind == FrameFaultKind::kClosed || kind == FrameFaultKind::kTruncated) {
        return finish(Died());
      }
      return finish(Ended(CallOutcome::kProtocol, step.error().detail));
    }
    if (std::optional<Message> message = *std::move(step)) {
      Result<Reply> reply = Accept(*std::move(message));
      if (reply && retiring_ && policy_.Allows(Weakening::kVendorTool))
        return finish(WithLastWords(*std::move(reply), deadline));
      return finish(std::move(reply));
    }

    const auto now = steady_clock::now();
    if (now >= deadline) {
      return finish(
          Ended(CallOutcome::kTimedOut,
                fmt::format("no reply within {} ms; the worker was killed", allowed.count())));
    }
    if (now >= next_watch) {
      next_watch = now + kWatchInterval;
      const std::uint64_t filled_now = FilledBytes(request.fds);
      const std::uint64_t filled = filled_now - std::min(filled_now, filled_before);
      if (auto end = EndIfOverLimit(filled, watch)) return finish(*std::move(end));
    }
    std::array<pollfd, 3> watched{
        pollfd{socket_.get(), static_cast<short>(sent ? POLLIN : POLLIN | POLLOUT), 0},
        pollfd{process_.pidfd(), POLLIN, 0},
        pollfd{output_open ? process_.output_fd() : -1, POLLIN, 0}};
    ::poll(watched.data(), watched.size(), PollTimeout(std::min(deadline, next_watch)));
    if (watched[2].revents != 0) output_open = process_.DrainOutput();
    if (watched[1].revents != 0 && watched[0].revents == 0) return finish(Died());
  }
}

bool Worker::Reusable() {
  if (dead_ || retiring_) return false;
  pollfd watched[] = {{socket_.get(), POLLIN, 0}, {process_.pidfd(), POLLIN, 0}};
  if (::poll(watched, 2, 0) > 0) return false;
  const auto limit = policy_.LimitOf(Resource::kCpuSeconds);
  return !limit || CpuSecondsOf(pid_) * 2 < static_cast<double>(*limit);
}

Result<UniqueFd> ReadOnlyView(int fd) {
  UniqueFd view(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDONLY | O_CLOEXEC));
  if (view) return view;
  return Fail(ErrorKind::kEnvironment,
              fmt::format("cannot open a descriptor for reading: {}", std::strerror(errno)),
              "shared memory");
}

std::string_view Name(CallOutcome outcome) {
  static constexpr std::array<std::string_view, 5> kNames{"replied", "crashed", "timed_out",
                                                          "protocol", "over_limit"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

}  // namespace assay::sandbox

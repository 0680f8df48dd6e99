#include "sandbox/frame.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace assay::sandbox {
namespace {

constexpr std::array<char, 4> kMagic{'A', 'S', 'Y', '1'};
/// How far the buffer runs ahead of what has arrived.
constexpr std::size_t kGrowBytes = 1u << 20;

static_assert(std::endian::native == std::endian::little, "the preamble is written as it lies");

struct Preamble {
  std::array<char, 4> magic;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
  std::uint32_t fds;
  std::uint32_t zero;
};
static_assert(sizeof(Preamble) == 24);

std::unexpected<FrameFault> Fault(FrameFaultKind kind, std::string detail) {
  return std::unexpected(FrameFault{kind, std::move(detail)});
}

std::unexpected<FrameFault> SocketFault(const char* what) {
  // A peer that died shows as a reset or a broken pipe: for us that is a closed stream.
  const bool closed = errno == ECONNRESET || errno == EPIPE;
  return Fault(closed ? FrameFaultKind::kClosed : FrameFaultKind::kSystem,
               fmt::format("{}: {}", what, std::strerror(errno)));
}

std::expected<void, FrameFault> WaitFor(int socket, short events,
                                        const std::optional<Deadline>& deadline) {
  for (;;) {
    pollfd watched{socket, events, 0};
    const int timeout = deadline ? PollTimeout(*deadline) : -1;
    const int ready = ::poll(&watched, 1, timeout);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return SocketFault("poll");
    if (ready == 0 && timeout == 0) {
      return Fault(FrameFaultKind::kTimedOut, "the deadline passed");
    }
  }
}

}  // namespace

FrameReader::FrameReader(FrameLimits limits) : limits_(limits) {
  limits_.fds = std::min(limits_.fds, kMaxFrameFds);
}

std::expected<std::size_t, FrameFault> FrameReader::Receive(int socket, std::span<char> into) {
  iovec part{into.data(), into.size()};
  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(sizeof(int) * kMaxFrameFds) + CMSG_SPACE(sizeof(ucred))>
          control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    return SocketFault("receive");
  }
  // Take ownership of every descriptor before judging any of them: none may leak.
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_RIGHTS) {
      const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        fds_.emplace_back(fd);
      }
    } else if (c->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(c), sizeof credentials);
      sender_ = credentials.pid;
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || fds_.size() > limits_.fds) {
    return Fault(FrameFaultKind::kMalformed, "more descriptors than allowed");
  }
  if (got == 0) {
    if (preamble_filled_ == 0) return Fault(FrameFaultKind::kClosed, "the stream was closed");
    return Fault(FrameFaultKind::kTruncated, "the stream was closed in the middle of a frame");
  }
  return static_cast<std::size_t>(got);
}

std::expected<void, FrameFault> FrameReader::ReadPreamble() {
  Preamble preamble;
  std::memcpy(&preamble, preamble_.data(), sizeof preamble);
  if (preamble.magic != kMagic || preamble.zero != 0) {
    return Fault(FrameFaultKind::kMalformed, "the bytes are no frame");
  }
  if (preamble.header_bytes > limits_.header_bytes) {
    return Fault(FrameFaultKind::kMalformed,
                 fmt::format("a header of {} bytes; at most {} are allowed", preamble.header_bytes,
                             limits_.header_bytes));
  }
  if (preamble.payload_bytes > limits_.payload_bytes) {
    return Fault(FrameFaultKind::kMalformed,
                 fmt::format("a payload of {} bytes; at most {} are allowed",
                             preamble.payload_bytes, limits_.payload_bytes));
  }
  if (preamble.fds > limits_.fds) {
    return Fault(
        FrameFaultKind::kMalformed,
        fmt::format("{} descriptors announced; at most {} are allowed", preamble.fds, limits_.fds));
  }
  header_bytes_ = preamble.header_bytes;
  payload_bytes_ = preamble.payload_bytes;
  fd_count_ = preamble.fds;
  return {};
}

std::expected<Message, FrameFault> FrameReader::Finish() {
  if (fds_.size() != fd_count_) {
    return Fault(FrameFaultKind::kMalformed,
                 fmt::format("{} descriptors announced, {} received", fd_count_, fds_.size()));
  }
  Result<Json> header = ParseJson(std::string_view(body_).substr(0, header_bytes_), "header");
  if (!header) return Fault(FrameFaultKind::kMalformed, ToString(header.error()));
  if (!header->is_object()) {
    return Fault(FrameFaultKind::kMalformed, "the header is not a JSON object");
  }
  body_.erase(0, header_bytes_);
  return Message{*std::move(header), std::move(body_), std::move(fds_)};
}

std::expected<std::optional<Message>, FrameFault> FrameReader::Step(int socket) {
  for (;;) {
    if (preamble_filled_ < kPreambleBytes) {
      auto got = Receive(socket, std::span(preamble_).subspan(preamble_filled_));
      if (!got) return std::unexpected(std::move(got).error());
      if (*got == 0) return std::nullopt;
      preamble_filled_ += *got;
      if (preamble_filled_ < kPreambleBytes) continue;
      if (auto ok = ReadPreamble(); !ok) return std::unexpected(std::move(ok).error());
    }
    const std::size_t total = header_bytes_ + payload_bytes_;
    if (filled_ == total) {
      auto message = Finish();
      if (!message) return std::unexpected(std::move(message).error());
      return *std::move(message);
    }
    body_.resize(std::min(total, filled_ + kGrowBytes));
    auto got = Receive(socket, std::span(body_).subspan(filled_));
    if (!got) return std::unexpected(std::move(got).error());
    if (*got == 0) return std::nullopt;
    filled_ += *got;
  }
}

FrameWriter::FrameWriter(const Json& header, std::string_view payload, std::span<const int> fds)
    : payload_(payload), fds_(fds) {
  ASSAY_CHECK(fds.size() <= kMaxFrameFds, "too many descriptors for one frame");
  const std::string text = CompactJson(header);
  const Preamble preamble{kMagic, static_cast<std::uint32_t>(text.size()), payload.size(),
                          static_cast<std::uint32_t>(fds.size()), 0};
  header_bytes_ = text.size();
  head_.resize(sizeof preamble);
  std::memcpy(head_.data(), &preamble, sizeof preamble);
  head_ += text;
}

std::expected<bool, FrameFault> FrameWriter::Step(int socket) {
  const std::size_t total = head_.size() + payload_.size();
  while (sent_ < total) {
    const std::size_t from_head = std::min(sent_, head_.size());
    const std::size_t from_payload = sent_ - from_head;
    std::array<iovec, 2> parts{
        iovec{head_.data() + from_head, head_.size() - from_head},
        iovec{const_cast<char*>(payload_.data()) + from_payload, payload_.size() - from_payload}};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFrameFds)> control{};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    if (sent_ == 0 && !fds_.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds_.size_bytes());
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(fds_.size_bytes());
      std::memcpy(CMSG_DATA(c), fds_.data(), fds_.size_bytes());
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      return SocketFault("send");
    }
    sent_ += static_cast<std::size_t>(sent);
  }
  return true;
}

std::expected<void, FrameFault> Send(int socket, const Json& header, std::string_view payload,
                                     std::span<const int> fds, std::optional<Deadline> deadline) {
  FrameWriter writer(header, payload, fds);
  for (;;) {
    auto done = writer.Step(socket);
    if (!done) return std::unexpected(std::move(done).error());
    if (*done) return {};
    if (auto ready = WaitFor(socket, POLLOUT, deadline); !ready) return ready;
  }
}

std::expected<Message, FrameFault> Receive(int socket, FrameLimits limits,
                                           std::optional<Deadline> deadline) {
  FrameReader reader(limits);
  for (;;) {
    auto step = reader.Step(socket);
    if (!step) return std::unexpected(std::move(step).error());
    if (std::optional<Message> message = *std::move(step)) return *std::move(message);
    if (auto ready = WaitFor(socket, POLLIN, deadline); !ready) {
      return std::unexpected(std::move(ready).error());
    }
  }
}

Result<SocketPair> MakeSocketPair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    const int error = errno;
    return Fail(ErrorKind::kEnvironment,
                fmt::format("cannot make a socket pair: {}", std::strerror(error)), "worker",
                CureOf(error, {}, "raise the limit of open files (ulimit -n)"));
  }
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace assay::sandbox

// Framed messages over a stream socket between the orchestrator and a worker.
//
// One frame is a fixed preamble (magic, sizes, number of descriptors), a JSON header, an opaque
// payload, and up to 64 descriptors that travel with the first byte (SCM_RIGHTS):
//
//   "ASY1"  u32 header bytes  u64 payload bytes  u32 descriptors  u32 zero  |  header  |  payload
//   (little-endian)
//
// The peer is assumed hostile: every size is checked against FrameLimits before it is believed,
// memory grows only with bytes that have arrived, descriptors that were not announced are closed
// and end the conversation, and every wait has a deadline. A fault says what was wrong; after one
// the stream has lost its frame boundaries and must be closed.
//
// FrameReader and FrameWriter never block, so that one poll loop can serve both directions, watch
// the process and its memory. The free functions Send and Receive block up to a deadline. Nothing
// here is internally synchronised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "sandbox/process.h"

namespace assay::sandbox {

inline constexpr std::size_t kMaxFrameFds = 64;

struct FrameLimits {
  std::size_t header_bytes = 16u << 20;
  std::size_t payload_bytes = 256u << 20;
  std::size_t fds = kMaxFrameFds;  ///< A reader of replies that need none sets 0.
};

/// One message, as received: it owns its descriptors.
struct Message {
  Json header;
  std::string payload;
  std::vector<UniqueFd> fds;
};

enum class FrameFaultKind {
  kClosed,     ///< The peer closed the stream between two frames, or died.
  kTruncated,  ///< The peer closed the stream in the middle of a frame.
  kTimedOut,   ///< The deadline passed.
  kMalformed,  ///< The peer sent something that is no frame, or is beyond the limits.
  kSystem,     ///< The socket failed.
};

struct FrameFault {
  FrameFaultKind kind = FrameFaultKind::kSystem;
  std::string detail;
};

/// Assembles one frame from a non-blocking socket.
class FrameReader {
 public:
  explicit FrameReader(FrameLimits limits = {});

  /// Takes what has arrived. An empty optional means "not yet complete: poll for POLLIN and call
  /// again".
  std::expected<std::optional<Message>, FrameFault> Step(int socket);
  /// The peer's process id as the kernel knows it here, when the socket has SO_PASSCRED; 0 before.
  pid_t sender() const { return sender_; }

 private:
  static constexpr std::size_t kPreambleBytes = 24;

  std::expected<std::size_t, FrameFault> Receive(int socket, std::span<char> into);
  std::expected<void, FrameFault> ReadPreamble();
  std::expected<Message, FrameFault> Finish();

  FrameLimits limits_;
  std::array<char, kPreambleBytes> preamble_{};
  std::size_t preamble_filled_ = 0;
  std::size_t header_bytes_ = 0;
  std::size_t payload_bytes_ = 0;
  std::size_t fd_count_ = 0;
  std::string body_;  ///< Header, then payload; only as long as what has arrived.
  std::size_t filled_ = 0;
  std::vector<UniqueFd> fds_;
  pid_t sender_ = 0;
};

/// Sends one frame over a non-blocking socket.
class FrameWriter {
 public:
  /// `payload` and `fds` are borrowed until Step has returned true.
  FrameWriter(const Json& header, std::string_view payload, std::span<const int> fds);

  /// Sends what fits. True once all is sent; false means "poll for POLLOUT and call again".
  std::expected<bool, FrameFault> Step(int socket);

  /// Bytes of the header as it is sent.
  std::size_t header_bytes() const { return header_bytes_; }

 private:
  std::size_t header_bytes_ = 0;
  std::string head_;  ///< Preamble and header.
  std::string_view payload_;
  std::span<const int> fds_;
  std::size_t sent_ = 0;
};

std::expected<void, FrameFault> Send(int socket, const Json& header, std::string_view payload,
                                     std::span<const int> fds, std::optional<Deadline> deadline);
std::expected<Message, FrameFault> Receive(int socket, FrameLimits limits,
                                           std::optional<Deadline> deadline);

/// A connected pair of non-blocking, close-on-exec stream sockets.
struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};
Result<SocketPair> MakeSocketPair();

}  // namespace assay::sandbox

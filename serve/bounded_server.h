// An HTTP server whose clients cannot hold it up: cpp-httplib with limits on what a connection may
// take.
//
// cpp-httplib limits the time between two bytes; a client that sends one every few seconds keeps a
// thread for ever, and one that sends no line's end fills memory. Here a request has a time for all
// of it and a number of bytes, few until somebody has said who it is from; an answer has a time for
// each write, there are so many connections at a time (one more is told 503 and closed),
// and one request a connection. Thread-safe as httplib::Server is.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>

namespace assay::serve {

struct ConnectionLimits {
  std::size_t connections = 64;
  std::size_t head_bytes = 64u << 10;
  std::size_t request_bytes = (8u << 20) + (64u << 10);  ///< Head and body.
  std::chrono::milliseconds request_time{20'000};        ///< For all of it.
  std::chrono::milliseconds write_time{20'000};          ///< For each piece of an answer.
};

class BoundedServer final : public httplib::Server {
 public:
  explicit BoundedServer(const ConnectionLimits& limits);

  /// From a handler of a request whose head has been read: its body may be read as well. Without
  /// it a request ends with its head.
  static void AllowBody();

 private:
  class Queue;
  bool process_and_close_socket(socket_t sock) override;

  const ConnectionLimits limits_;
  std::atomic<std::size_t> open_{0};
};

}  // namespace assay::serve

#include "serve/bounded_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

namespace assay::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLinger{500};
constexpr std::size_t kMostLingered = 16u << 20;
constexpr std::size_t kHeld = 16u << 10;

// Set while the accepting thread itself closes one connection too many.
thread_local bool refusing = false;

// Until `deadline`; false at its end.
bool Ready(socket_t sock, short what, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd fd{sock, what, 0};
    const int ready = ::poll(&fd, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

void NameOf(const sockaddr_storage& address, socklen_t length, std::string& ip, int& port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                    service.data(), service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  ip = host.data();
  port = std::atoi(service.data());
}

// A socket that may be read for so long and so much.
class Connection final : public httplib::Stream {
 public:
  Connection(socket_t sock, const ConnectionLimits& limits)
      : sock_(sock),
        limits_(limits),
        read_until_(Clock::now() + limits.request_time),
        most_(limits.head_bytes) {
    current = this;
  }

  ~Connection() override { current = nullptr; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void AllowBody() { most_ = limits_.request_bytes; }

  bool is_readable() const override {
    return taken_ < held_.size() || Ready(sock_, POLLIN, read_until_);
  }
  bool is_writable() const override {
    return Ready(sock_, POLLOUT, Clock::now() + limits_.write_time);
  }
  // Heads are asked for byte by byte: what has come is held.
  ssize_t read(char* bytes, std::size_t size) override {
    if (read_ >= most_) return -1;
    if (taken_ == held_.size()) {
      if (!Ready(sock_, POLLIN, read_until_)) return -1;
      held_.resize(kHeld);
      taken_ = 0;
      ssize_t got = 0;
      do {
        got = ::recv(sock_, held_.data(), held_.size(), 0);
      } while (got < 0 && errno == EINTR);
      held_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (got <= 0) return got;
    }
    const std::size_t given = std::min({size, most_ - read_, held_.size() - taken_});
    std::copy_n(held_.data() + taken_, given, bytes);
    taken_ += given;
    read_ += given;
    return static_cast<ssize_t>(given);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    const auto deadline = Clock::now() + limits_.write_time;
    for (std::size_t done = 0; done < size;) {
      if (!Ready(sock_, POLLOUT, deadline)) return -1;
      const ssize_t sent = ::send(sock_, bytes + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (sent < 0) return -1;
      done += static_cast<std::size_t>(sent);
    }
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (::getpeername(sock_, reinterpret_cast<sockaddr*>(&address), &length) == 0)
      NameOf(address, length, ip, port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (::getsockname(sock_, reinterpret_cast<sockaddr*>(&address), &length) == 0)
      NameOf(address, length, ip, port);
  }
  socket_t socket() const override { return sock_; }

 private:
  const socket_t sock_;
  const ConnectionLimits& limits_;
  const Clock::time_point read_until_;
  std::size_t most_;
  std::size_t read_ = 0;
  std::string held_;
  std::size_t taken_ = 0;  ///< Of what is held.

 public:
  static thread_local Connection* current;  ///< The one that this thread serves.
};
thread_local Connection* Connection::current = nullptr;

// What is unread when a socket is closed makes the system throw away the answer as well.
void Linger(socket_t sock) {
  ::shutdown(sock, SHUT_WR);
  std::array<char, 16 * 1024> bytes;
  const auto deadline = Clock::now() + kLinger;
  for (std::size_t read = 0; read < kMostLingered && Ready(sock, POLLIN, deadline);) {
    const ssize_t got = ::recv(sock, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    read += static_cast<std::size_t>(got);
  }
}

}  // namespace

// So many connections have a thread each; the accepting thread turns away the next.
class BoundedServer::Queue final : public httplib::TaskQueue {
 public:
  Queue(std::size_t most, std::atomic<std::size_t>& open) : most_(most), open_(open), pool_(most) {}
  void enqueue(std::function<void()> task) override {
    if (open_.fetch_add(1) >= most_) {
      refusing = true;
      task();
      refusing = false;
      --open_;
      return;
    }
    pool_.enqueue([this, task = std::move(task)] {
      task();
      --open_;
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  const std::size_t most_;
  std::atomic<std::size_t>& open_;
  httplib::ThreadPool pool_;
};

BoundedServer::BoundedServer(const ConnectionLimits& limits) : limits_(limits) {
  new_task_queue = [this] { return new Queue(limits_.connections, open_); };
  set_payload_max_length(limits_.request_bytes);
}

void BoundedServer::AllowBody() {
  if (Connection::current != nullptr) Connection::current->AllowBody();
}

bool BoundedServer::process_and_close_socket(socket_t sock) {
  if (refusing) {
    constexpr std::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
        "Content-Length: 0\r\n\r\n";
    [[maybe_unused]] const ssize_t ignored =
        ::send(sock, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(sock, SHUT_RDWR);
    ::close(sock);
    return false;
  }
  Connection connection(sock, limits_);
  bool closed = false;
  const bool answered = process_request(connection, true, closed, nullptr);
  Linger(sock);
  ::shutdown(sock, SHUT_RDWR);
  ::close(sock);
  return answered;
}

}  // namespace assay::serve

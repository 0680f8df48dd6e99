// sandbox_misbehave KIND [--no-jail]: a worker that does on request what no worker should, for
// worker_pool_test and jail_test. sandbox_misbehave --run ACTION:     the same without a socket or
// a filter, for process_test.
//
// One row an action. Actions report what the system let them do; the tests judge.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/policies.h"
#include "sandbox/serve.h"

extern char** environ;

namespace assay::sandbox {
namespace {

Answer Say(Json header) { return Answer{std::move(header), {}}; }
Answer SayErrno(long result) { return Say({{"errno", result < 0 ? errno : 0}}); }

/// Waits for the end without using time. Not pause(2), which the filter does not know.
[[noreturn]] void Forever() {
  for (;;) ::poll(nullptr, 0, -1);
}

/// Keeps the compiler from proving that a loop ends or that a store is dead.
volatile int sink = 0;

Result<Answer> Echo(Message& m) { return Answer{m.header, m.payload}; }
Result<Answer> Pid(Message&) { return Say({{"pid", ::getpid()}, {"uid", ::getuid()}}); }
Result<Answer> Decline(Message&) {
  return Fail(ErrorKind::kUnsupported, "will not", "here", "ask another");
}

Result<Answer> Crash(Message&) {
  ::raise(SIGSEGV);
  return Say({});
}
Result<Answer> Abort(Message&) { std::abort(); }
Result<Answer> ExitThree(Message&) {
  fmt::print(stderr, "giving \x1b[31mup\n");
  std::fflush(stderr);
  ::_exit(3);
}
Result<Answer> Loop(Message&) {
  for (;;) sink = sink + 1;
}
/// Recurses until the stack ends; the bound keeps the compiler from calling it infinite.
int Recurse(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return depth == 1 << 30 ? 0 : Recurse(depth + 1) + room[0];
}
Result<Answer> Overflow(Message&) { return Say({{"depth", Recurse(0)}}); }

/// Touches anonymous memory without end, or until the system refuses; then reports how much.
Result<Answer> Allocate(Message& m) {
  constexpr std::size_t kChunk = 8u << 20;
  std::size_t total = 0;
  for (;;) {
    void* chunk =
        ::mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) break;
    if (m.header.value("touch", true)) std::memset(chunk, 1, kChunk);
    total += kChunk;
  }
  return Say({{"bytes", total}, {"errno", errno}});
}

/// Keeps so much memory beyond the reply.
Result<Answer> Hold(Message& m) {
  const auto bytes = m.header.value("bytes", std::size_t{0});
  void* chunk = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (chunk == MAP_FAILED) return SayErrno(-1);
  std::memset(chunk, 1, bytes);
  return Say({{"bytes", bytes}});
}

/// Writes to the first file that came along, without mapping it.
Result<Answer> Fill(Message& m) {
  const auto bytes = m.header.value("bytes", std::size_t{0});
  const std::vector<char> block(1 << 20, 'x');
  std::size_t total = 0;
  while (total < bytes) {
    const ssize_t written = ::write(m.fds.at(0).get(), block.data(), block.size());
    if (written <= 0) break;
    total += static_cast<std::size_t>(written);
  }
  return Say({{"bytes", total}});
}

/// Maps the first file that came along so many times, reads all of it, and stays a while.
Result<Answer> Repeat(Message& m) {
  struct stat info{};
  if (m.fds.empty() || ::fstat(m.fds.front().get(), &info) != 0) return SayErrno(-1);
  const auto bytes = static_cast<std::size_t>(info.st_size);
  for (int i = 0; i < m.header.value("times", 1); ++i) {
    void* chunk = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, m.fds.front().get(), 0);
    if (chunk == MAP_FAILED) return SayErrno(-1);
    for (std::size_t at = 0; at < bytes; at += 4096)
      sink = sink + static_cast<int>(static_cast<const std::byte*>(chunk)[at]);
  }
  ::poll(nullptr, 0, 100);
  return Say({{"bytes", bytes}});
}

/// Memory that would stay when all but a page of it is unmapped.
Result<Answer> Shared(Message&) {
  const void* chunk =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return SayErrno(chunk == MAP_FAILED ? -1 : 0);
}

/// Forks until refused. A child that came to be exits at once.
Result<Answer> Fork(Message&) {
  int children = 0;
  for (; children < 10000; ++children) {
    const pid_t pid = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (pid == 0) ::_exit(0);
    if (pid < 0) break;
  }
  return Say({{"children", children}, {"errno", errno}});
}

Result<Answer> Threads(Message&) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 64 << 10);
  int count = 0;
  int error = 0;
  for (; count < 100000 && error == 0; ++count) {
    pthread_t thread;
    error = ::pthread_create(&thread, &attributes, [](void*) -> void* { Forever(); }, nullptr);
  }
  return Say({{"threads", count - 1}, {"errno", error}});
}

Result<Answer> Connect(Message&) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return SayErrno(fd);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return SayErrno(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));
}

Result<Answer> Read(Message& m) {
  const std::string path = m.header.value("path", "");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SayErrno(fd);
  char byte = 0;
  const ssize_t got = ::read(fd, &byte, 1);
  ::close(fd);
  return SayErrno(got);
}

Result<Answer> Write(Message& m) {
  const std::string path = m.header.value("path", "");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return SayErrno(fd);
  const std::vector<char> block(1 << 20, 'x');
  std::size_t total = 0;
  int error = 0;
  ::signal(SIGXFSZ, SIG_IGN);
  for (;;) {
    const ssize_t written = ::write(fd, block.data(), block.size());
    if (written <= 0) {
      error = errno;
      break;
    }
    total += static_cast<std::size_t>(written);
    if (total > (1u << 30)) break;
  }
  ::close(fd);
  return Say({{"errno", total == 0 ? error : 0}, {"bytes", total}});
}

Result<Answer> List(Message& m) {
  Json names = Json::array();
  DIR* folder = ::opendir(m.header.value("path", "/").c_str());
  if (folder == nullptr) return SayErrno(-1);
  while (const dirent* entry = ::readdir(folder)) names.push_back(entry->d_name);
  ::closedir(folder);
  return Say({{"names", names}});
}

Result<Answer> Environment(Message&) {
  Json variables = Json::array();
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  return Say({{"variables", variables}});
}

/// Makes a system call by number with arguments that do no harm if it is let through.
Result<Answer> Syscall(Message& m) {
  return SayErrno(::syscall(m.header.value("number", 0L), 0, 0, 0, 0, 0, 0));
}

Result<Answer> Signal(Message& m) {
  return SayErrno(::kill(m.header.value("pid", 0), m.header.value("signal", 0)));
}

Result<Answer> RaiseLimit(Message&) {
  const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  return SayErrno(::setrlimit(RLIMIT_CORE, &limit));
}

/// Reads, writes and tries to resize the memory file that came along.
Result<Answer> Memory(Message& m) {
  Json files = Json::array();
  for (const UniqueFd& fd : m.fds) {
    struct stat info{};
    ::fstat(fd.get(), &info);
    const auto bytes = static_cast<std::size_t>(info.st_size);
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    const bool writable = data != MAP_FAILED;
    int first = 0;
    if (writable) {
      first = *static_cast<unsigned char*>(data);
      *static_cast<unsigned char*>(data) = static_cast<unsigned char>(first + 1);
      ::munmap(data, bytes);
    }
    const bool shrunk = ::ftruncate(fd.get(), 0) == 0;
    files.push_back(
        {{"bytes", bytes}, {"first", first}, {"writable", writable}, {"shrunk", shrunk}});
  }
  return Say({{"files", files}});
}

Result<Answer> Chatter(Message&) {
  const std::string line(1023, 'c');
  for (int i = 0; i < 4096; ++i) fmt::print(stderr, "{}\n", line);
  return Say({{"said", 4096 * 1024}});
}

Result<Answer> CloseAndStay(Message&) {
  ::close(kWorkerSocket);
  for (;;) sink = sink + 1;
}

/// Sends raw bytes in place of a reply.
Result<Answer> Raw(Message& m) {
  std::string_view left = m.payload;
  while (!left.empty()) {
    const ssize_t sent = ::write(kWorkerSocket, left.data(), left.size());
    if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) break;
  }
  if (m.header.value("die", false)) ::_exit(0);
  Forever();
}

/// Sends a frame of the caller's choice, with so many descriptors.
Result<Answer> Frame(Message& m) {
  const std::vector<int> fds(m.header.value("fds", std::size_t{0}), kWorkerSocket);
  (void)Send(kWorkerSocket, m.header["frame"], m.payload, fds, std::nullopt);
  Forever();
}

/// Runs until killed, with a child that does too and holds descriptor 3. Only without a filter.
Result<Answer> Family(Message&) {
  const pid_t pid = ::fork();
  if (pid < 0) return SayErrno(pid);
  if (pid == 0 && ::write(kWorkerSocket, "c", 1) != 1) ::_exit(1);
  Forever();
}

/// Ends behind its answer, as a worker under a tool does, whose words come last.
Result<Answer> Leave(Message&) {
  fmt::print(stderr, "last words\n");
  Answer answer = Say({{"left", true}});
  answer.last = true;
  return answer;
}

struct ActionRow {
  std::string_view name;
  Result<Answer> (*run)(Message&);
};
constexpr ActionRow kActions[] = {
    {"echo", &Echo},         {"pid", &Pid},
    {"decline", &Decline},   {"crash", &Crash},
    {"abort", &Abort},       {"exit", &ExitThree},
    {"loop", &Loop},         {"overflow", &Overflow},
    {"allocate", &Allocate}, {"fork", &Fork},
    {"threads", &Threads},   {"connect", &Connect},
    {"read", &Read},         {"write", &Write},
    {"list", &List},         {"environment", &Environment},
    {"syscall", &Syscall},   {"signal", &Signal},
    {"limit", &RaiseLimit},  {"memory", &Memory},
    {"chatter", &Chatter},   {"close", &CloseAndStay},
    {"raw", &Raw},           {"frame", &Frame},
    {"family", &Family},     {"hold", &Hold},
    {"fill", &Fill},         {"shared", &Shared},
    {"leave", &Leave},       {"repeat", &Repeat},
};

Result<Answer> Act(Message message) {
  const std::string action = message.header.value("action", "");
  for (const ActionRow& row : kActions) {
    if (row.name == action) return row.run(message);
  }
  return Fail(ErrorKind::kUsage, "no such action", action);
}

int Main(std::span<char*> arguments) {
  if (arguments.size() < 2) return 2;
  if (std::string_view(arguments[1]) == "--run" && arguments.size() == 3) {
    const auto answer = Act(Message{{{"action", arguments[2]}}, {}, {}});
    return answer ? 0 : 1;
  }
  if (std::string_view(arguments[1]) == "--mute") {  // Never says hello.
    Forever();
  }
  const auto kind = ParseWorkerKind(arguments[1]);
  if (!kind) return 2;
  ServeOptions options{arguments[1], kWorkerSocket, PolicyFor(*kind)};
  if (arguments.size() > 2) options.policy.Allow(Weakening::kNoJail);
  return Serve(options, &Act);
}

}  // namespace
}  // namespace assay::sandbox

int main(int argc, char** argv) {
  return assay::sandbox::Main({argv, static_cast<std::size_t>(argc)});
}

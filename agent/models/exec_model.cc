#include "agent/models/exec_model.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>

#include "agent/models/guarded_program.h"
#include "base/file.h"
#include "base/text.h"

namespace assay::models {
namespace {

using std::chrono::milliseconds;
using Time = std::chrono::steady_clock::time_point;

constexpr milliseconds kReapEvery{20};
constexpr std::size_t kStderrKept = 2000;

// What is passed on. A list of what to keep back would miss the next service's key.
constexpr std::string_view kPassedOn[] = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LD_LIBRARY_PATH",
    // locale
    "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "LC_COLLATE",
    // where programs keep their settings
    "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    // the way to the network
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
    "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    // which GPUs a model served here may take
    "CUDA_VISIBLE_DEVICES"};

// write() that answers EPIPE where a reader is gone, without the signal that would end us.
ssize_t WriteQuietly(int fd, const char* data, std::size_t size) {
  sigset_t pipe_signal, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = ::write(fd, data, size);
  const int error = errno;
  if (written < 0 && error == EPIPE && sigismember(&before, SIGPIPE) == 0) {
    const timespec none{};
    sigtimedwait(&pipe_signal, nullptr, &none);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

struct Child {
  GuardedProgram program;
  std::string prompt;
  std::size_t sent = 0;
  std::string text, complaint;
  Time began;
};

// Reads all there is now; closes at the end of the stream.
void Drain(UniqueFd& fd, std::string& into) {
  char buffer[65536];
  while (fd) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got > 0) {
      into.append(buffer, static_cast<std::size_t>(got));
      if (into.size() > (64u << 20)) return;
    } else if (got == 0) {
      fd.Reset();
    } else if (errno != EINTR) {
      if (errno != EAGAIN) fd.Reset();
      return;
    }
  }
}

class ExecModel final : public Model {
 public:
  ExecModel(ExecOptions options, std::vector<std::string> words, UniqueFd waker, Clock& clock)
      : options_(std::move(options)),
        words_(std::move(words)),
        waker_(std::move(waker)),
        clock_(clock) {}

  void Start(Ticket ticket, ModelRequest request) override {
    waiting_.emplace_back(ticket, std::move(request));
  }

  void Cancel(Ticket ticket) override {
    std::erase_if(waiting_, [ticket](const auto& entry) { return entry.first == ticket; });
    children_.erase(ticket);
    std::erase_if(events_, [ticket](const ModelEvent& event) { return event.ticket == ticket; });
  }

  std::vector<ModelEvent> Poll(milliseconds timeout) override {
    while (!waiting_.empty() && children_.size() < options_.max_in_flight) {
      auto [ticket, request] = std::move(waiting_.front());
      waiting_.pop_front();
      if (Status spawned = Spawn(ticket, request); !spawned)
        Done(ticket, std::unexpected(spawned.error()));
    }
    Wait(events_.empty() ? timeout : milliseconds(0));
    std::vector<Ticket> tickets;
    for (auto& [ticket, child] : children_) tickets.push_back(ticket);
    for (const Ticket ticket : tickets) Serve(ticket, children_.at(ticket));
    return std::exchange(events_, {});
  }

  void Wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = ::write(waker_.get(), &one, sizeof one);
  }

 private:
  Status Spawn(Ticket ticket, const ModelRequest& request) {
    ASSAY_TRY(GuardedProgram program, GuardedProgram::Start(words_, options_.environment));
    children_.emplace(ticket, Child{.program = std::move(program),
                                    .prompt = runs::ConversationAsText(request.conversation),
                                    .began = clock_.Now()});
    return {};
  }

  void Wait(milliseconds timeout) {
    std::vector<pollfd> polled = {{waker_.get(), POLLIN, 0}};
    for (const auto& [ticket, child] : children_) {
      if (child.program.in) polled.push_back({child.program.in.get(), POLLOUT, 0});
      if (child.program.out) polled.push_back({child.program.out.get(), POLLIN, 0});
      if (child.program.err) polled.push_back({child.program.err.get(), POLLIN, 0});
      // Exits do not show on a descriptor: look often once the output has ended.
      if (!child.program.out || !child.program.err) timeout = std::min(timeout, kReapEvery);
      timeout = std::min(timeout, std::chrono::ceil<milliseconds>(
                                      child.began + options_.total_timeout - clock_.Now()));
    }
    timeout = std::clamp(timeout, milliseconds(0), milliseconds(60'000));
    ::poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t ignored = ::read(waker_.get(), &count, sizeof count);
  }

  void Serve(Ticket ticket, Child& child) {
    const std::size_t before = child.text.size();
    const bool exited = child.program.Ended();  // before draining: what it wrote is then all there
    Feed(child);
    Drain(child.program.out, child.text);
    Drain(child.program.err, child.complaint);
    if (child.complaint.size() > 4 * kStderrKept) {
      child.complaint.erase(0, child.complaint.size() - kStderrKept);
    }
    if (child.text.size() > options_.max_text_bytes) {
      child.text.resize(options_.max_text_bytes);
      return Reply(ticket, child, StopReason::kLength);
    }
    if (exited) return Exited(ticket, child);
    if (clock_.Now() - child.began >= options_.total_timeout) {
      return Done(ticket, Fail(ErrorKind::kLimit,
                               fmt::format("the program did not finish within {} s",
                                           options_.total_timeout.count() / 1000),
                               Place(), "give it more time, or look at what it waits for"));
    }
    if (child.text.size() > before) {
      ModelEvent event{.ticket = ticket, .kind = ModelEvent::Kind::kProgress};
      event.output_tokens = child.text.size() / 4;
      events_.push_back(std::move(event));
    }
  }

  void Feed(Child& child) {
    while (child.program.in && child.sent < child.prompt.size()) {
      const ssize_t written = WriteQuietly(child.program.in.get(), child.prompt.data() + child.sent,
                                           child.prompt.size() - child.sent);
      if (written > 0) {
        child.sent += static_cast<std::size_t>(written);
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR) {
        break;  // it does not want to read on; that is its choice
      }
    }
    child.program.in.Reset();
  }

  void Exited(Ticket ticket, Child& child) {
    if (WIFEXITED(child.program.status()) && WEXITSTATUS(child.program.status()) == 0)
      return Reply(ticket, child, StopReason::kEnd);
    const std::string how =
        WIFSIGNALED(child.program.status())
            ? fmt::format("was killed by signal {}", WTERMSIG(child.program.status()))
            : fmt::format("ended with exit code {}", WEXITSTATUS(child.program.status()));
    std::string said = ValidUtf8(child.complaint);
    if (said.size() > kStderrKept) said = ValidUtf8(said.substr(said.size() - kStderrKept));
    Done(ticket, Fail(ErrorKind::kEnvironment,
                      "the program " + how + (said.empty() ? "" : ": " + std::string(Strip(said))),
                      Place(), "run it by hand with a prompt on standard input"));
  }

  void Reply(Ticket ticket, Child& child, StopReason stop) {
    ModelReply reply;
    reply.text = ValidUtf8(child.text);
    reply.stop = stop;
    reply.usage = {.input_tokens = (child.prompt.size() + 3) / 4,
                   .cached_input_tokens = 0,
                   .output_tokens = (reply.text.size() + 3) / 4,
                   .estimated = true};
    Done(ticket, std::move(reply));
  }

  void Done(Ticket ticket, Result<ModelReply> reply) {
    children_.erase(ticket);
    ModelEvent event{.ticket = ticket, .kind = ModelEvent::Kind::kDone};
    event.reply = std::move(reply);
    events_.push_back(std::move(event));
  }

  std::string Place() const { return "exec/" + words_.front(); }

  ExecOptions options_;
  std::vector<std::string> words_;
  UniqueFd waker_;
  Clock& clock_;
  std::deque<std::pair<Ticket, ModelRequest>> waiting_;
  std::map<Ticket, Child> children_;
  std::vector<ModelEvent> events_;
};

}  // namespace

Result<std::vector<std::string>> SplitCommand(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\0') return Fail(ErrorKind::kUsage, "the command holds a NUL byte", "exec/");
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      word += command[++i];
      in_word = true;
    } else if (quote != '\0') {
      if (c == quote)
        quote = '\0';
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') {
    return Fail(ErrorKind::kUsage, std::string("the quote ") + quote + " is not closed",
                "exec/" + std::string(command));
  }
  if (in_word) words.push_back(word);
  if (words.empty() || words.front().empty()) {
    return Fail(ErrorKind::kUsage, "no program is named", "exec/",
                "write exec/COMMAND, e.g. --model 'exec/ollama run qwen3'");
  }
  return words;
}

Result<std::vector<std::string>> ExecEnvironment(const VariableReader& read,
                                                 const std::vector<std::string>& named) {
  std::vector<std::string> environment;
  for (const std::string_view name : kPassedOn) {
    if (const auto value = read(std::string(name)))
      environment.push_back(std::string(name) + "=" + *value);
  }
  for (const std::string& name : named) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return Fail(ErrorKind::kUsage, "'" + name + "' is no name of a variable", "--exec-env",
                  "give the name alone; its value comes from the environment");
    }
    const auto value = read(name);
    if (!value) {
      return Fail(ErrorKind::kUsage, "the variable is not set", "$" + name,
                  "set it, or leave out --exec-env " + name);
    }
    if (std::ranges::find(kPassedOn, name) == std::end(kPassedOn))
      environment.push_back(name + "=" + *value);
  }
  return environment;
}

Result<std::unique_ptr<Model>> MakeExecModel(ExecOptions options, Clock& clock) {
  ASSAY_TRY(std::vector<std::string> words, SplitCommand(options.command));
  UniqueFd waker(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!waker)
    return Fail(ErrorKind::kEnvironment, "cannot make an eventfd", "exec/",
                "raise the limit on open files");
  return std::make_unique<ExecModel>(std::move(options), std::move(words), std::move(waker), clock);
}

}  // namespace assay::models

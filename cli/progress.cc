#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "cli/command.h"
#include "validator/verdict/render.h"

namespace assay::cli {
namespace {

std::size_t TerminalWidth() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

std::string Describe(const gates::Progress& progress) {
  std::string text = progress.gate;
  if (!progress.detail.empty()) text += ": " + progress.detail;
  if (progress.fraction >= 0) text += fmt::format(" ({:.0f} %)", 100 * progress.fraction);
  return text;
}

std::string Summary(const verdict::Verdict& verdict) {
  std::string text{Name(verdict.outcome)};
  if (!verdict.reason.empty()) text += ": " + verdict.reason;
  for (const verdict::Counterexample* counterexample : verdict.Counterexamples()) {
    std::istringstream lines(verdict::RenderCounterexample(*counterexample));
    for (std::string line; std::getline(lines, line);) text += "\n      " + line;
  }
  return text;
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace

ProgressPrinter::ProgressPrinter() {
  const char* const term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";  // cannot erase a line
  terminal_ = ::isatty(STDERR_FILENO) == 1 && !dumb;
}

void ProgressPrinter::On(const loop::Notice& notice) {
  std::visit(Overloaded{
                 [this](const loop::RunBegan& began) {
                   Line(fmt::format("{} with {} -> {}{}", began.instance, began.model,
                                    began.folder.string(), began.resumed ? " (resumed)" : ""));
                   if (!began.notice.empty()) Line("  note: " + began.notice);
                 },
                 [this](const loop::AttemptBegan& began) {
                   asked_ = std::chrono::steady_clock::now();
                   prefix_ = fmt::format("attempt {} of {}: ", began.attempt, began.of);
                   named_gates_.clear();
                   Line(prefix_ + began.why);
                 },
                 [this](const loop::Streaming& streaming) {
                   const auto waited = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::steady_clock::now() - asked_);
                   if (streaming.tokens > 0) {
                     Live(fmt::format("  the model writes: {} tokens, {} s", streaming.tokens,
                                      waited.count()));
                   } else if (waited.count() > 0) {
                     Live(fmt::format("  waiting for the model: {} s", waited.count()));
                   }
                 },
                 [this](const loop::Retrying& retrying) {
                   Line(fmt::format("  retrying in {:.1f} s: {}",
                                    static_cast<double>(retrying.wait.count()) / 1000,
                                    ToString(retrying.error)));
                 },
                 [this](const loop::Replied& replied) {
                   if (replied.reply != nullptr)
                     Line(fmt::format("  reply of {} bytes", replied.reply->text.size()));
                 },
                 [this](const loop::Judging& judging) { On(judging.progress); },
                 [this](const loop::Judged& judged) {
                   if (judged.verdict != nullptr) Line("  " + Summary(*judged.verdict));
                 },
                 [this](const loop::Emitted& emitted) {
                   Line("vetted kernel: " + emitted.folder.string());
                 },
                 [this](const loop::RunEnded& ended) {
                   Line(fmt::format("{}: {}", verdict::Name(ended.outcome), ended.reason));
                 },
             },
             notice);
}

void ProgressPrinter::On(const gates::Progress& progress) {
  if (terminal_) return Live("  " + Describe(progress));
  // Gates ask for one another (policy wants what compile makes): each is named once an attempt.
  if (!named_gates_.insert(progress.gate).second) return;
  Line("  " + progress.gate);
}

void ProgressPrinter::Finish() {
  if (terminal_) std::fputs("\r\x1b[K", stderr);
}

void ProgressPrinter::Line(std::string_view text) {
  Finish();
  Say(text);
}

void ProgressPrinter::Live(std::string_view text) {
  if (!terminal_) return;
  const std::string shown = Printable(text).substr(0, TerminalWidth() - 1);
  std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(shown.size()), shown.c_str());
  std::fflush(stderr);
}

Elapsed::Elapsed(std::string what)
    : thread_([this, what = std::move(what)](const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        for (int seconds = 1;; ++seconds) {
          ended_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
          if (stop.stop_requested()) return;
          printer_.Live(fmt::format("  {}: {} s", what, seconds));
        }
      }) {}

Elapsed::~Elapsed() {
  thread_.request_stop();
  thread_.join();
  printer_.Finish();
}

}  // namespace assay::cli

#include "cli/batch_display.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "cli/command.h"

namespace assay::cli {
namespace {

constexpr std::chrono::milliseconds kRedrawEvery{100};

bool IsTerminal() {
  const char* const term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";  // cannot go up a line
  return ::isatty(STDERR_FILENO) == 1 && !dumb;
}

winsize Terminal() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20 || size.ws_row < 4) {
    size.ws_col = 100;
    size.ws_row = 24;
  }
  return size;
}

std::string Duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

// The largest share of any limit that is used up; nothing where there is none.
std::string Share(const loop::Budget& budget, double usd, std::uint64_t tokens, double seconds) {
  double share = -1;
  if (budget.usd > 0) share = std::max(share, usd / budget.usd);
  if (budget.tokens > 0)
    share = std::max(share, static_cast<double>(tokens) / static_cast<double>(budget.tokens));
  if (budget.seconds > 0) share = std::max(share, seconds / static_cast<double>(budget.seconds));
  return share < 0 ? "" : fmt::format(", {:.0f} % of the limit", 100 * share);
}

std::string Money(double usd) { return usd > 0 ? fmt::format(", ${:.4f}", usd) : ""; }

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace

BatchDisplay::BatchDisplay(const batch::Purse& purse)
    : purse_(purse), terminal_(IsTerminal()), began_(std::chrono::steady_clock::now()) {}

BatchDisplay::~BatchDisplay() { Erase(); }

void BatchDisplay::OnBegin(const Path& folder, const batch::Plan& plan, std::size_t todo) {
  plan_ = &plan;
  todo_ = todo;
  Line(fmt::format("{} instances, {} to do -> {}", plan.tasks.size(), todo, folder.string()));
}

void BatchDisplay::OnStarted(std::size_t index, const batch::InstanceStarted& event) {
  rows_[index] = {};
  if (terminal_) return Draw(true);
  Line(event.instance + ": begun" +
       (event.sister.empty() ? "" : ", shown the kernel of " + event.sister));
}

void BatchDisplay::OnNotice(std::size_t index, const loop::Notice& notice) {
  Row& row = rows_[index];
  const std::string name = plan_ == nullptr ? "" : plan_->tasks[index].id();
  std::visit(
      Overloaded{[](const loop::RunBegan&) {}, [](const loop::Emitted&) {},
                 [](const loop::RunEnded&) {},
                 [&](const loop::AttemptBegan& began) {
                   row.attempt = began.attempt;
                   row.of = began.of;
                   row.gate.clear();
                   row.state = "waiting for the model";
                 },
                 [&](const loop::Streaming& streaming) {
                   if (streaming.tokens > 0)
                     row.state = fmt::format("the model writes: {} tokens", streaming.tokens);
                 },
                 [&](const loop::Retrying& retrying) {
                   row.state = fmt::format("retrying in {} s: {}", retrying.wait.count() / 1000,
                                           retrying.error.message);
                   if (!terminal_) Line(name + ": " + row.state);
                 },
                 [&](const loop::Replied& replied) {
                   if (replied.reply != nullptr) row.usage += replied.reply->usage;
                   row.state = "replied";
                 },
                 [&](const loop::Judging& judging) {
                   row.state = judging.progress.gate;
                   if (!judging.progress.detail.empty())
                     row.state += ": " + judging.progress.detail;
                 },
                 [&](const loop::Judged& judged) {
                   if (judged.verdict == nullptr) return;
                   row.state = verdict::Name(judged.verdict->outcome);
                   if (terminal_) return;
                   Line(fmt::format("{}: attempt {} {}: {}", name, judged.attempt, row.state,
                                    Head(judged.verdict->reason, 160)));
                 }},
      notice);
  Draw(false);
}

void BatchDisplay::OnEnded(std::size_t index, const batch::InstanceEnded& event) {
  rows_.erase(index);
  ++done_;
  ++ended_[event.end];
  Line(fmt::format("{}: {} after {} attempt{}: {}", event.instance, batch::Name(event.end),
                   event.attempts, event.attempts == 1 ? "" : "s", event.reason));
}

void BatchDisplay::OnUpToDate(std::size_t, const batch::InstanceUpToDate& event) {
  Line(event.instance + ": up to date, " + event.vetted);
}

void BatchDisplay::OnWord(const std::string& word) { Line(word); }

std::string BatchDisplay::Rendered(std::size_t index, const Row& row) const {
  const batch::Task& task = plan_->tasks[index];
  const double usd = purse_.CostOf(task.request.model.spec, row.usage).value_or(0);
  const std::uint64_t tokens = row.usage.input_tokens + row.usage.output_tokens;
  return fmt::format("  {}  {}/{}  {}  {} tokens{}{}", task.id(), row.attempt, row.of, row.state,
                     tokens, Money(usd), Share(task.request.budget, usd, tokens, 0));
}

std::string BatchDisplay::Totals() const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  const batch::Purse::Total spent = purse_.total();
  std::string text = fmt::format("{} of {} done", done_, todo_);
  for (const auto& [end, count] : ended_) text += fmt::format(", {} {}", count, batch::Name(end));
  text += fmt::format("; {} tokens{}{}; {}", spent.tokens, Money(spent.usd),
                      Share(purse_.budget(), spent.usd, spent.tokens, seconds), Duration(seconds));
  if (done_ > 0 && done_ < todo_) {
    const double left = seconds / static_cast<double>(done_) * static_cast<double>(todo_ - done_);
    text += ", about " + Duration(left) + " left";
  }
  return text;
}

void BatchDisplay::Erase() {
  if (drawn_ == 0) return;
  std::fprintf(stderr, "\r\x1b[%zuA\x1b[J", drawn_);
  drawn_ = 0;
}

void BatchDisplay::Line(const std::string& text) {
  Erase();
  Say(text);
  Draw(true);
}

void BatchDisplay::Draw(bool now) {
  if (!terminal_ || plan_ == nullptr) return;
  const Time time = std::chrono::steady_clock::now();
  if (!now && time - last_ < kRedrawEvery) return;
  last_ = time;
  Erase();
  const winsize size = Terminal();
  const auto show = [&](const std::string& text) {
    std::string line = Printable(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::fprintf(stderr, "%s\n", Head(line, size.ws_col - 1u).c_str());
    ++drawn_;
  };
  const std::size_t room = size.ws_row - 3u;
  std::size_t shown = 0;
  for (const auto& [index, row] : rows_) {
    if (shown++ < room) show(Rendered(index, row));
  }
  if (shown > room) show(fmt::format("  and {} more", shown - room));
  show(Totals());
  std::fflush(stderr);
}

}  // namespace assay::cli

#include "report/run_view.h"

#include <algorithm>

#include "report/words.h"
#include "runs/extract.h"
#include "runs/folder.h"

namespace assay::report {
namespace {

std::string TextAt(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string WhyOf(const runs::Attempt& attempt) {
  const std::string parent = " of attempt " + std::to_string(attempt.parent);
  switch (attempt.kind) {
    case runs::DraftKind::kFirst:
      return "first";
    case runs::DraftKind::kRepair:
      return "repair" + parent;
    case runs::DraftKind::kRestart:
      return "a new conversation";
    case runs::DraftKind::kOptimize:
      return "optimisation" + parent;
  }
  return "";
}

// When things happened to an attempt, by the clock of the process that saw them.
struct Times {
  std::optional<std::uint64_t> planned, replied, judged;
};

std::optional<double> Between(const std::optional<std::uint64_t>& from,
                              const std::optional<std::uint64_t>& to) {
  if (!from || !to || *to < *from) return std::nullopt;
  return static_cast<double>(*to - *from) / 1000;
}

std::vector<Times> TimesOf(const std::vector<runs::StampedEvent>& events, std::size_t attempts) {
  std::vector<Times> times(attempts);
  const auto of = [&](int attempt) { return &times[static_cast<std::size_t>(attempt) - 1]; };
  for (const runs::StampedEvent& event : events) {
    if (const auto* planned = std::get_if<runs::AttemptsPlanned>(&event.event)) {
      for (const auto& each : planned->attempts) of(each.attempt)->planned = event.milliseconds;
    } else if (const auto* reply = std::get_if<runs::ReplyReceived>(&event.event)) {
      of(reply->attempt)->replied = event.milliseconds;
    } else if (const auto* judged = std::get_if<runs::AttemptJudged>(&event.event)) {
      of(judged->attempt)->judged = event.milliseconds;
    } else if (std::holds_alternative<runs::RunResumed>(event.event)) {
      // Another process, another clock: what it only took up began with it.
      for (Times& each : times) {
        if (each.planned && !each.judged) each = {.planned = 0, .replied = {}, .judged = {}};
      }
    }
  }
  return times;
}

AttemptView ViewOf(const runs::Attempt& attempt, const Times& times) {
  AttemptView view;
  view.number = attempt.number;
  view.why = WhyOf(attempt);
  view.base = attempt.parent;
  view.waited = Between(times.planned, times.replied);
  view.judged = Between(times.replied, times.judged);
  const runs::ModelReply reply = attempt.JoinedReply();
  view.usage = reply.usage;
  view.verdict = attempt.verdict;
  view.vetted = attempt.vetted;
  view.state = attempt.verdict    ? std::string(verdict::Name(attempt.verdict->outcome))
               : attempt.answered ? "answered"
                                  : "asked";
  if (!attempt.answered) return view;
  if (auto candidate = runs::ExtractCandidate(reply)) {
    view.kernel = std::move(candidate->kernel);
    view.launch = std::move(candidate->launch);
  }
  return view;
}

}  // namespace

const AttemptView* RunView::Find(int number) const {
  const auto found = std::ranges::find(attempts, number, &AttemptView::number);
  return found == attempts.end() ? nullptr : &*found;
}

std::string EndingGate(const verdict::Verdict& verdict) {
  for (const auto status : {verdict::GateStatus::kRefuted, verdict::GateStatus::kInconclusive}) {
    for (const verdict::GateResult& result : verdict.gates) {
      if (result.status == status) return result.gate;
    }
  }
  return {};
}

Result<RunView> ReadRunView(const Path& folder, const Price& price) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(folder / "events.jsonl", error);
  if (!error && bytes > kLargestLog) {
    return Fail(ErrorKind::kMalformedInput,
                "the run's log has " + Bytes(bytes) + ", more than a page can show",
                (folder / "events.jsonl").string(),
                "keep its first lines in a folder of their own");
  }
  ASSAY_TRY(const std::vector<runs::StampedEvent> events, runs::RunFolder::ReadEvents(folder));
  runs::RunState state;
  for (const runs::StampedEvent& event : events) ASSAY_TRY_VOID(runs::Apply(event, state));
  RunView view;
  const Path plain = folder.lexically_normal();
  view.name = (plain.has_filename() ? plain.filename() : plain.parent_path().filename()).string();
  view.request = state.request;
  view.instance = TextAt(state.request, "instance");
  view.arch = TextAt(state.request, "arch");
  view.model = TextAt(state.request, "model");
  if (const auto op = state.request.find("op"); op != state.request.end())
    view.op = TextAt(*op, "name");
  if (view.op.empty()) view.op = view.instance;
  view.prompts_digest = state.prompts_digest;
  view.started = events.front().time;
  view.ended = events.back().time;
  view.answered = state.answered;
  view.lost = state.lost;
  view.seconds =
      static_cast<double>(state.earlier_milliseconds + state.session_milliseconds) / 1000;
  view.stopped = state.stopped;
  const std::vector<Times> times = TimesOf(events, state.attempts.size());
  const runs::Attempt* const accepted = state.Accepted();
  for (const runs::Attempt& attempt : state.attempts) {
    view.attempts.push_back(ViewOf(attempt, times[view.attempts.size()]));
    if (attempt.verdict && (accepted == nullptr || accepted == &attempt))
      view.result = view.attempts.size() - 1;
  }
  if (price) {
    runs::Usage all = state.answered;
    all += state.lost;
    view.usd = price(view.model, all);
  }
  return view;
}

}  // namespace assay::report

#include "agent/loop/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/loop/strategy.h"
#include "agent/prompts/compose.h"
#include "runs/emit.h"
#include "runs/extract.h"
#include "runs/standing.h"

namespace assay::loop {
namespace {

constexpr std::chrono::milliseconds kLookUpEvery{200};  // for Ctrl-C and time limits
constexpr std::size_t kMaxParts = 3;                    // of one reply, cut off and continued

class Loop {
 public:
  Loop(runs::RunFolder& run, LoopParts& parts)
      : run_(run), parts_(parts), began_(parts.environment.clock.Now()) {}

  Result<runs::RunStopped> Run() {
    while (true) {
      if (const std::optional<Limit> limit = Reached()) return Leave(*limit);
      ASSAY_TRY_VOID(SubmitToJudge());
      ASSAY_TRY_VOID(Prompt());
      if (asking_.empty() && judging_.empty() && Next().empty()) return Conclude({});
      // One request's failure must not lose what came with it.
      Status heard;
      for (models::ModelEvent& event : parts_.model.Poll(kLookUpEvery)) {
        Status status = OnModel(std::move(event));
        if (heard) heard = std::move(status);
      }
      ASSAY_TRY_VOID(std::move(heard));
      ASSAY_TRY_VOID(TakeJudged());
      TellOfWaiting();
      if (state().Accepted() != nullptr && !parts_.request.strategy.optimize) return Conclude({});
      if (const std::optional<Error> stuck = parts_.model.Stuck(); stuck && judging_.empty())
        return OnStuck(*stuck);
    }
  }

  /// After an error: what has been answered is still judged, and a kernel accepted by then is a
  /// result all the same.
  Result<runs::RunStopped> Salvage(Error error) {
    ASSAY_TRY_VOID(CancelRequests());
    ASSAY_TRY_VOID(SubmitToJudge());
    ASSAY_TRY_VOID(FinishJudging(false));
    if (state().Accepted() != nullptr) return Conclude({});
    return std::unexpected(std::move(error));
  }

 private:
  struct Limit {
    std::string why;
    bool at_once = false;  ///< Not even candidates that are there already are judged.
  };

  const runs::RunState& state() const { return run_.state(); }
  std::vector<runs::Draft> Next() const { return NextDrafts(state(), parts_.request.strategy); }

  /// New attempts, as the strategy says, and every request whose answer is missing.
  Status Prompt() {
    runs::AttemptsPlanned planned;
    for (const runs::Draft& draft : Next()) {
      ASSAY_TRY(std::vector<runs::Message> messages,
                prompts::Compose(state(), draft, parts_.request.instance, parts_.prompts,
                                 parts_.request.feedback, parts_.request.sister));
      const int number = static_cast<int>(state().attempts.size() + planned.attempts.size()) + 1;
      planned.attempts.push_back({number, draft.kind, draft.parent, std::move(messages)});
    }
    if (!planned.attempts.empty()) ASSAY_TRY_VOID(run_.Record(std::move(planned)));
    for (const runs::Attempt& attempt : state().attempts) {
      if (attempt.answered || asking_.contains(attempt.number)) continue;
      ASSAY_TRY(const std::string continuation, parts_.prompts.Render("continue.md", {}));
      if (told_.insert(attempt.number).second) {
        Tell(AttemptBegan{attempt.number, parts_.request.strategy.attempts, WhyOf(attempt)});
      }
      models::ModelRequest request{
          .name = runs::RequestName(attempt.number, attempt.replies.size() + 1),
          .conversation = runs::ConversationFor(state(), attempt, continuation),
          .max_output_tokens = parts_.request.model.max_output_tokens,
          .temperature = parts_.request.model.temperature};
      runs::Usage& cost = asking_[attempt.number];
      for (const runs::Message& message : request.conversation.messages)
        cost.input_tokens += message.text.size() / 4;
      cost.estimated = true;
      parts_.model.Start(static_cast<models::Ticket>(attempt.number), std::move(request));
    }
    return {};
  }

  /// Every candidate without a verdict. A reply that holds none is refuted here.
  Status SubmitToJudge() {
    for (const runs::Attempt& attempt : state().attempts) {
      if (!attempt.answered || attempt.verdict || judging_.contains(attempt.number)) continue;
      const auto candidate = runs::ExtractCandidate(attempt.JoinedReply());
      if (!candidate) {
        ASSAY_TRY_VOID(RecordVerdict(
            {attempt.number,
             runs::FormatVerdict(parts_.request.instance, parts_.request.engine, candidate.error()),
             {},
             {}}));
        continue;
      }
      judging_.insert(attempt.number);
      parts_.desk.Submit({.attempt = attempt.number,
                          .candidate = *candidate,
                          .regressions = KnownCounterexamples(state(), attempt)});
    }
    return {};
  }

  Status OnModel(models::ModelEvent event) {
    const int number = static_cast<int>(event.ticket);
    if (event.kind == models::ModelEvent::Kind::kProgress) {
      asking_[number].output_tokens = event.output_tokens;
      Tell(Streaming{number, event.output_tokens});
      return {};
    }
    if (event.kind == models::ModelEvent::Kind::kRetrying) {
      ASSAY_TRY_VOID(run_.Record(runs::TryFailed{number, ToString(event.error), event.lost}));
      asking_[number].output_tokens = 0;
      Tell(Retrying{number, std::move(event.error), event.wait});
      return {};
    }
    asking_.erase(number);
    if (!event.reply) {
      ASSAY_TRY_VOID(
          run_.Record(runs::TryFailed{number, ToString(event.reply.error()), event.lost}));
      return std::unexpected(std::move(event.reply.error()));
    }
    return OnReply(number, *std::move(event.reply));
  }

  /// A reply that was cut off is continued, while that promises anything: it has text, and there
  /// was room for little else.
  Status OnReply(int number, runs::ModelReply reply) {
    if (reply.model.empty()) reply.model = parts_.author;
    runs::Attempt attempt = *state().Find(number);
    attempt.replies.push_back(reply);
    const bool cut = reply.stop == runs::StopReason::kLength && !reply.text.empty() &&
                     !runs::ExtractCandidate(attempt.JoinedReply());
    const bool small = reply.text.size() < std::size_t{8} * parts_.request.model.max_output_tokens;
    const bool final = !(cut && small && attempt.replies.size() < kMaxParts);
    ASSAY_TRY_VOID(run_.Record(runs::ReplyReceived{number, std::move(reply), final}));
    if (final) Tell(Replied{number, &attempt.replies.back()});
    return {};
  }

  Status OnJudged(JudgeDesk::Done done) {
    if (done.broken_off) {
      judging_.erase(done.attempt);
      return {};
    }
    runs::AttemptJudged event{
        done.attempt, std::move(done.judgement.verdict), std::move(done.holdout_seeds), {}};
    const bool emit = done.judgement.vetted && Improves(event.verdict);
    if (emit) {
      // Before the verdict's event: once that stands, the attempt is not judged again, and only a
      // judgement can emit.
      event.vetted = "vetted/" + parts_.request.instance.Id();
      const runs::ModelReply reply = state().Find(done.attempt)->JoinedReply();
      ASSAY_TRY(event.certificate,
                runs::Emit(*done.judgement.vetted,
                           {.author = reply.model,
                            .attempt = done.attempt,
                            .prompts_digest = parts_.prompts.digest(),
                            .versions = parts_.environment.versions,
                            .signer = parts_.environment.signer},
                           parts_.environment.clock, run_.path() / event.vetted));
    }
    const Path folder = run_.path() / event.vetted;
    const std::string certificate = event.certificate;
    ASSAY_TRY_VOID(RecordVerdict(std::move(event)));
    if (!emit) return {};
    ASSAY_TRY_VOID(runs::Publish(folder, certificate));
    Tell(Emitted{done.attempt, folder});
    return {};
  }

  Status RecordVerdict(runs::AttemptJudged event) {
    const int number = event.attempt;
    ASSAY_TRY_VOID(run_.Record(std::move(event)));
    judging_.erase(number);
    const runs::Attempt* const judged = state().Find(number);
    if (judged == nullptr || !judged->verdict)
      return Fail(ErrorKind::kInternal, "a verdict was recorded and is not there");
    const verdict::Verdict& verdict = *judged->verdict;
    Tell(Judged{number, &verdict});
    if (verdict.outcome != verdict::Outcome::kInternalError) return {};
    return Fail(ErrorKind::kInternal, "the judge failed: " + verdict.reason,
                (run_.path() / "attempts" / std::to_string(number) / "verdict.json").string(),
                "please report it with the run's folder");
  }

  /// The first accepted kernel is emitted; later ones (--optimize) only where they run faster.
  bool Improves(const verdict::Verdict& verdict) const {
    const runs::Attempt* const floor = state().Accepted();
    return floor == nullptr || !floor->verdict || runs::RunsFaster(verdict, *floor->verdict);
  }

  /// Models may think for minutes without a word; nobody should wonder whether we still wait.
  void TellOfWaiting() const {
    if (!judging_.empty() || asking_.empty()) return;
    const auto& [number, usage] = *asking_.begin();
    Tell(Streaming{number, usage.output_tokens});
  }

  std::string WhyOf(const runs::Attempt& attempt) const {
    if (attempt.parent == 0) return std::string(Name(attempt.kind));
    return fmt::format("{} of {}", Name(attempt.kind), attempt.parent);
  }

  std::optional<Limit> Reached() const {
    if (parts_.environment.interrupted && parts_.environment.interrupted())
      return Limit{"interrupted", true};
    runs::Usage in_flight;
    for (const auto& [number, usage] : asking_) in_flight += usage;
    const auto spent =
        std::chrono::duration_cast<std::chrono::seconds>(parts_.environment.clock.Now() - began_);
    const auto exceeded =
        parts_.meter.Exceeded(state(), in_flight, static_cast<std::uint64_t>(spent.count()));
    if (!exceeded) return std::nullopt;
    return Limit{exceeded->why, exceeded->time};
  }

  /// A limit or Ctrl-C: nothing more is asked for. What has been paid for is judged, if there is
  /// time.
  Result<runs::RunStopped> Leave(const Limit& limit) {
    ASSAY_TRY_VOID(CancelRequests());
    if (!limit.at_once) ASSAY_TRY_VOID(SubmitToJudge());
    ASSAY_TRY_VOID(FinishJudging(limit.at_once));
    const bool undone =
        std::ranges::any_of(state().attempts, [](const runs::Attempt& a) { return !a.verdict; });
    if (state().Accepted() != nullptr || (!undone && Next().empty())) return Conclude({});
    runs::RunStopped stopped{verdict::Outcome::kInconclusive, limit.why, true};
    ASSAY_TRY_VOID(run_.Record(stopped));
    return stopped;
  }

  Status TakeJudged() {
    for (JudgeDesk::Done& done : parts_.desk.Take()) ASSAY_TRY_VOID(OnJudged(std::move(done)));
    for (const JudgeDesk::Report& report : parts_.desk.TakeProgress())
      Tell(Judging{report.attempt, report.progress});
    return {};
  }

  /// Judgements cannot be broken off; those not begun can be left for a resumption.
  Status FinishJudging(bool drop_queued) {
    if (drop_queued) parts_.desk.DropQueued();
    ASSAY_TRY_VOID(TakeJudged());
    while (parts_.desk.pending() > 0) {
      parts_.model.Poll(kLookUpEvery);  // the desk wakes it
      ASSAY_TRY_VOID(TakeJudged());
    }
    return {};
  }

  Result<runs::RunStopped> OnStuck(const Error& stuck) {
    ASSAY_TRY_VOID(CancelRequests());
    if (stuck.kind != ErrorKind::kLimit) return std::unexpected(stuck);
    return Conclude(stuck.message);
  }

  Result<runs::RunStopped> Conclude(const std::string& why) {
    ASSAY_TRY_VOID(CancelRequests());
    parts_.desk.DropQueued();
    runs::RunStopped stopped{verdict::Outcome::kInconclusive, why, false};
    int refuted = 0;
    int judged = 0;
    for (const runs::Attempt& attempt : state().attempts) {
      if (!attempt.verdict) continue;
      ++judged;
      if (attempt.verdict->outcome == verdict::Outcome::kRefuted) ++refuted;
    }
    if (const runs::Attempt* const accepted = state().Accepted()) {
      stopped.outcome = verdict::Outcome::kAccepted;
      stopped.reason = fmt::format(
          "attempt {} passed every gate{}", accepted->number,
          accepted->vetted.empty() ? "; it is not emitted, because the jail was off" : "");
      if (const std::string missed = accepted->verdict ? runs::MissedBar(*accepted->verdict) : "";
          !missed.empty())
        stopped.reason += "; the op's bar of speed is not met: " + missed;
    } else if (judged > 0 && refuted == judged) {
      stopped.outcome = verdict::Outcome::kRefuted;
      const std::string all =
          judged == 1 ? "the only attempt was" : fmt::format("all {} attempts were", judged);
      stopped.reason = fmt::format("{} refuted{}", all, why.empty() ? "" : "; " + why);
    } else {
      stopped.reason =
          fmt::format("{} of {} attempts were refuted, the others could not be decided{}", refuted,
                      judged, why.empty() ? "" : "; " + why);
    }
    stopped.resumable = stopped.outcome != verdict::Outcome::kAccepted;
    ASSAY_TRY_VOID(run_.Record(stopped));
    return stopped;
  }

  /// What cancelled requests have cost so far is paid for nothing.
  Status CancelRequests() {
    for (const auto& [number, usage] : asking_) {
      parts_.model.Cancel(static_cast<models::Ticket>(number));
      if (usage.output_tokens > 0)
        ASSAY_TRY_VOID(run_.Record(runs::TryFailed{number, "cancelled", usage}));
    }
    asking_.clear();
    return {};
  }

  void Tell(const Notice& notice) const {
    if (parts_.environment.observe) parts_.environment.observe(notice);
  }

  runs::RunFolder& run_;
  LoopParts& parts_;
  std::chrono::steady_clock::time_point began_;
  std::map<int, runs::Usage> asking_;  // requests under way, and what they have cost so far
  std::set<int> judging_;
  std::set<int> told_;
};

}  // namespace

Result<runs::RunStopped> RunLoop(runs::RunFolder& run, LoopParts& parts) {
  Loop loop(run, parts);
  Result<runs::RunStopped> stopped = loop.Run();
  return stopped ? std::move(stopped) : loop.Salvage(std::move(stopped.error()));
}

}  // namespace assay::loop

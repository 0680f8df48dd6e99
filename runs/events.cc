#include "runs/events.h"

#include <array>
#include <optional>

#include "base/fields.h"

namespace assay::runs {
namespace {

constexpr std::array<std::string_view, 4> kDraftKinds = {"first", "repair", "restart", "optimize"};

// "vetted/<instance>", and nothing that leads elsewhere.
bool IsVettedFolder(std::string_view folder) {
  constexpr std::string_view kParent = "vetted/";
  if (!folder.starts_with(kParent)) return false;
  const std::string_view name = folder.substr(kParent.size());
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

/// The number of an attempt; 0 is none.
template <int kLeast>
struct AttemptNumber {
  static Json Write(int number) { return number; }
  static Result<int> Read(const Json& json, const std::string& place) {
    const auto number = ReadJson<int>(json, place);
    if (number && *number >= kLeast && *number <= 1'000'000) return *number;
    return Fail(ErrorKind::kMalformedInput, "must be an attempt's number", place);
  }
};

using RoleWords = Words<Role::kSystem, Role::kUser, Role::kAssistant>;
using OutcomeWords = Words<verdict::Outcome::kAccepted, verdict::Outcome::kRefuted,
                           verdict::Outcome::kInconclusive, verdict::Outcome::kInternalError>;
using VerdictForm = JsonThrough<&verdict::VerdictFromJson>;
using ReplyForm = JsonThrough<&ReplyFromJson>;
using UsageForm = JsonThrough<&UsageFromJson>;

}  // namespace

static constexpr std::span<const std::string_view> JsonWords(const DraftKind*) {
  return kDraftKinds;
}
static constexpr auto JsonFields(const Message*) {
  using M = Message;
  return std::tuple(Required<RoleWords>("role", &M::role), Required("text", &M::text),
                    Sparse("cache", &M::cache_here));
}
static constexpr auto JsonFields(const PlannedAttempt*) {
  using P = PlannedAttempt;
  return std::tuple(Required<AttemptNumber<1>>("attempt", &P::attempt), Required("kind", &P::kind),
                    Required<AttemptNumber<0>>("parent", &P::parent),
                    Required("messages", &P::messages));
}

static constexpr std::string_view JsonTag(const RunStarted*) { return "run_started"; }
static constexpr auto JsonFields(const RunStarted*) {
  return std::tuple(Required("request", &RunStarted::request),
                    Required("prompts", &RunStarted::prompts_digest));
}
static constexpr std::string_view JsonTag(const RunResumed*) { return "run_resumed"; }
static constexpr auto JsonFields(const RunResumed*) {
  return std::tuple(Required("request", &RunResumed::request));
}
static constexpr std::string_view JsonTag(const AttemptsPlanned*) { return "attempts_planned"; }
static constexpr auto JsonFields(const AttemptsPlanned*) {
  return std::tuple(Required("attempts", &AttemptsPlanned::attempts));
}
static constexpr std::string_view JsonTag(const ReplyReceived*) { return "reply_received"; }
static constexpr auto JsonFields(const ReplyReceived*) {
  using R = ReplyReceived;
  return std::tuple(Required<AttemptNumber<1>>("attempt", &R::attempt),
                    Required("final", &R::final), Required<ReplyForm>("reply", &R::reply));
}
static constexpr std::string_view JsonTag(const TryFailed*) { return "try_failed"; }
static constexpr auto JsonFields(const TryFailed*) {
  using T = TryFailed;
  return std::tuple(Required<AttemptNumber<1>>("attempt", &T::attempt),
                    Required("error", &T::error), Required<UsageForm>("lost", &T::lost));
}
static constexpr std::string_view JsonTag(const AttemptJudged*) { return "attempt_judged"; }
static constexpr auto JsonFields(const AttemptJudged*) {
  using A = AttemptJudged;
  return std::tuple(Required<AttemptNumber<1>>("attempt", &A::attempt),
                    Required<VerdictForm>("verdict", &A::verdict),
                    Required("holdout_seeds", &A::holdout_seeds), Required("vetted", &A::vetted),
                    Sparse("certificate", &A::certificate));
}
static Status JsonCheck(const AttemptJudged& event, const ObjectReader& reader) {
  if (event.vetted.empty() || IsVettedFolder(event.vetted)) return {};
  return Fail(ErrorKind::kMalformedInput, "must be vetted/<instance>", reader.PlaceOf("vetted"),
              "events.jsonl has been edited; restore it");
}
static constexpr std::string_view JsonTag(const RunStopped*) { return "run_stopped"; }
static constexpr auto JsonFields(const RunStopped*) {
  using R = RunStopped;
  return std::tuple(Required<OutcomeWords>("outcome", &R::outcome), Required("reason", &R::reason),
                    Required("resumable", &R::resumable));
}
static constexpr auto JsonFields(const StampedEvent*) {
  using S = StampedEvent;
  return std::tuple(Required("n", &S::number), Required("time", &S::time),
                    Required("ms", &S::milliseconds),
                    Tagged("type", &S::event, "the run was written by a newer version"));
}

std::string_view Name(DraftKind kind) { return kDraftKinds[static_cast<std::size_t>(kind)]; }

Json ToJson(const StampedEvent& event) { return WriteJson(event); }
Result<StampedEvent> EventFromJson(const Json& json, const std::string& place) {
  return ReadJson<StampedEvent>(json, place);
}

}  // namespace assay::runs

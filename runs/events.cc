#include "runs/events.h"

#include <algorithm>
#include <array>
#include <optional>

namespace assay::runs {
namespace {

constexpr std::array<std::string_view, 4> kDraftKinds = {"first", "repair", "restart", "optimize"};

Result<int> AttemptIn(ObjectReader& reader, std::string_view key, std::int64_t least) {
  constexpr std::int64_t kMost = 1'000'000;
  ASSAY_TRY(const std::int64_t number, reader.Required<std::int64_t>(key));
  if (number < least || number > kMost) {
    return Fail(ErrorKind::kMalformedInput, "must be an attempt's number", reader.PlaceOf(key));
  }
  return static_cast<int>(number);
}

Json ToJson(const PlannedAttempt& attempt) {
  Json messages = Json::array();
  for (const Message& message : attempt.messages) {
    Json entry = {{"role", Name(message.role)}, {"text", message.text}};
    if (message.cache_here) entry["cache"] = true;
    messages.push_back(std::move(entry));
  }
  return {{"attempt", attempt.attempt},
          {"kind", Name(attempt.kind)},
          {"parent", attempt.parent},
          {"messages", std::move(messages)}};
}

Result<Message> MessageFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  Message message;
  ASSAY_TRY(const std::string role, reader.Required<std::string>("role"));
  message.role = role == Name(Role::kSystem)      ? Role::kSystem
                 : role == Name(Role::kAssistant) ? Role::kAssistant
                                                  : Role::kUser;
  ASSAY_TRY(message.text, reader.Required<std::string>("text"));
  ASSAY_TRY(message.cache_here, reader.Optional<bool>("cache", false));
  ASSAY_TRY_VOID(reader.Finish());
  return message;
}

Result<PlannedAttempt> PlannedFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  PlannedAttempt attempt;
  ASSAY_TRY(attempt.attempt, AttemptIn(reader, "attempt", 1));
  ASSAY_TRY(attempt.parent, AttemptIn(reader, "parent", 0));
  ASSAY_TRY(const std::string kind, reader.Required<std::string>("kind"));
  const auto known = std::ranges::find(kDraftKinds, kind);
  if (known == kDraftKinds.end()) {
    return Fail(ErrorKind::kMalformedInput, "unknown kind '" + kind + "'", reader.PlaceOf("kind"));
  }
  attempt.kind = static_cast<DraftKind>(known - kDraftKinds.begin());
  ASSAY_TRY(const Json messages, reader.Required<Json>("messages"));
  if (!messages.is_array()) {
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("messages"));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ASSAY_TRY(Message message,
              MessageFromJson(messages[i], reader.PlaceOf("messages") + "/" + std::to_string(i)));
    attempt.messages.push_back(std::move(message));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return attempt;
}

// "vetted/<instance>", and nothing that leads elsewhere.
bool IsVettedFolder(std::string_view folder) {
  constexpr std::string_view kParent = "vetted/";
  if (!folder.starts_with(kParent)) return false;
  const std::string_view name = folder.substr(kParent.size());
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

template <class T>
struct Codec;  // One per event: its name, what it writes, how it is read.

template <>
struct Codec<RunStarted> {
  static constexpr std::string_view kName = "run_started";
  static void Write(const RunStarted& event, Json& json) {
    json["request"] = event.request;
    json["prompts"] = event.prompts_digest;
  }
  static Result<RunStarted> Read(ObjectReader& reader) {
    RunStarted event;
    ASSAY_TRY(event.request, reader.Required<Json>("request"));
    ASSAY_TRY(event.prompts_digest, reader.Required<std::string>("prompts"));
    return event;
  }
};

template <>
struct Codec<RunResumed> {
  static constexpr std::string_view kName = "run_resumed";
  static void Write(const RunResumed& event, Json& json) { json["request"] = event.request; }
  static Result<RunResumed> Read(ObjectReader& reader) {
    RunResumed event;
    ASSAY_TRY(event.request, reader.Required<Json>("request"));
    return event;
  }
};

template <>
struct Codec<AttemptsPlanned> {
  static constexpr std::string_view kName = "attempts_planned";
  static void Write(const AttemptsPlanned& event, Json& json) {
    json["attempts"] = Json::array();
    for (const PlannedAttempt& attempt : event.attempts)
      json["attempts"].push_back(ToJson(attempt));
  }
  static Result<AttemptsPlanned> Read(ObjectReader& reader) {
    AttemptsPlanned event;
    ASSAY_TRY(const Json attempts, reader.Required<Json>("attempts"));
    const std::string place = reader.PlaceOf("attempts");
    if (!attempts.is_array()) return Fail(ErrorKind::kMalformedInput, "must be an array", place);
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      ASSAY_TRY(PlannedAttempt attempt,
                PlannedFromJson(attempts[i], place + "/" + std::to_string(i)));
      event.attempts.push_back(std::move(attempt));
    }
    return event;
  }
};

template <>
struct Codec<ReplyReceived> {
  static constexpr std::string_view kName = "reply_received";
  static void Write(const ReplyReceived& event, Json& json) {
    json["attempt"] = event.attempt;
    json["final"] = event.final;
    json["reply"] = ToJson(event.reply);
  }
  static Result<ReplyReceived> Read(ObjectReader& reader) {
    ReplyReceived event;
    ASSAY_TRY(event.attempt, AttemptIn(reader, "attempt", 1));
    ASSAY_TRY(event.final, reader.Required<bool>("final"));
    ASSAY_TRY(const Json reply, reader.Required<Json>("reply"));
    ASSAY_TRY(event.reply, ReplyFromJson(reply, reader.PlaceOf("reply")));
    return event;
  }
};

template <>
struct Codec<TryFailed> {
  static constexpr std::string_view kName = "try_failed";
  static void Write(const TryFailed& event, Json& json) {
    json["attempt"] = event.attempt;
    json["error"] = event.error;
    json["lost"] = ToJson(event.lost);
  }
  static Result<TryFailed> Read(ObjectReader& reader) {
    TryFailed event;
    ASSAY_TRY(event.attempt, AttemptIn(reader, "attempt", 1));
    ASSAY_TRY(event.error, reader.Required<std::string>("error"));
    ASSAY_TRY(const Json lost, reader.Required<Json>("lost"));
    ASSAY_TRY(event.lost, UsageFromJson(lost, reader.PlaceOf("lost")));
    return event;
  }
};

template <>
struct Codec<AttemptJudged> {
  static constexpr std::string_view kName = "attempt_judged";
  static void Write(const AttemptJudged& event, Json& json) {
    json["attempt"] = event.attempt;
    json["verdict"] = verdict::ToJson(event.verdict);
    json["holdout_seeds"] = event.holdout_seeds;
    json["vetted"] = event.vetted;
    if (!event.certificate.empty()) json["certificate"] = event.certificate;
  }
  static Result<AttemptJudged> Read(ObjectReader& reader) {
    AttemptJudged event;
    ASSAY_TRY(event.attempt, AttemptIn(reader, "attempt", 1));
    ASSAY_TRY(const Json verdict, reader.Required<Json>("verdict"));
    ASSAY_TRY(event.verdict, verdict::VerdictFromJson(verdict, reader.PlaceOf("verdict")));
    ASSAY_TRY(const Json seeds, reader.Required<Json>("holdout_seeds"));
    if (!seeds.is_array()) {
      return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("holdout_seeds"));
    }
    for (const Json& seed : seeds) {
      ASSAY_TRY(const std::uint64_t value,
                json_detail::Convert<std::uint64_t>(seed, reader.PlaceOf("holdout_seeds")));
      event.holdout_seeds.push_back(value);
    }
    ASSAY_TRY(event.vetted, reader.Required<std::string>("vetted"));
    ASSAY_TRY(event.certificate, reader.Optional<std::string>("certificate", ""));
    if (!event.vetted.empty() && !IsVettedFolder(event.vetted)) {
      return Fail(ErrorKind::kMalformedInput, "must be vetted/<instance>", reader.PlaceOf("vetted"),
                  "events.jsonl has been edited; restore it");
    }
    return event;
  }
};

template <>
struct Codec<RunStopped> {
  static constexpr std::string_view kName = "run_stopped";
  static void Write(const RunStopped& event, Json& json) {
    json["outcome"] = verdict::Name(event.outcome);
    json["reason"] = event.reason;
    json["resumable"] = event.resumable;
  }
  static Result<RunStopped> Read(ObjectReader& reader) {
    RunStopped event;
    ASSAY_TRY(const std::string outcome, reader.Required<std::string>("outcome"));
    std::optional<verdict::Outcome> known;
    for (const verdict::Outcome candidate :
         {verdict::Outcome::kAccepted, verdict::Outcome::kRefuted, verdict::Outcome::kInconclusive,
          verdict::Outcome::kInternalError}) {
      if (verdict::Name(candidate) == outcome) known = candidate;
    }
    if (!known) {
      return Fail(ErrorKind::kMalformedInput, "unknown outcome '" + outcome + "'",
                  reader.PlaceOf("outcome"));
    }
    event.outcome = *known;
    ASSAY_TRY(event.reason, reader.Required<std::string>("reason"));
    ASSAY_TRY(event.resumable, reader.Required<bool>("resumable"));
    return event;
  }
};

// Tries the codecs one after the other.
template <std::size_t I = 0>
Result<Event> ReadAs(const std::string& type, ObjectReader& reader) {
  if constexpr (I == std::variant_size_v<Event>) {
    return Fail(ErrorKind::kMalformedInput, "unknown type '" + type + "'", reader.PlaceOf("type"),
                "the run was written by a newer version");
  } else {
    using T = std::variant_alternative_t<I, Event>;
    if (Codec<T>::kName != type) return ReadAs<I + 1>(type, reader);
    ASSAY_TRY(T event, Codec<T>::Read(reader));
    return Event(std::move(event));
  }
}

}  // namespace

std::string_view Name(DraftKind kind) { return kDraftKinds[static_cast<std::size_t>(kind)]; }

Json ToJson(const StampedEvent& event) {
  return std::visit(
      [&]<class T>(const T& value) {
        Json json = {{"n", event.number},
                     {"time", event.time},
                     {"ms", event.milliseconds},
                     {"type", Codec<T>::kName}};
        Codec<T>::Write(value, json);
        return json;
      },
      event.event);
}

Result<StampedEvent> EventFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  StampedEvent event;
  ASSAY_TRY(event.number, reader.Required<std::uint64_t>("n"));
  ASSAY_TRY(event.time, reader.Required<std::string>("time"));
  ASSAY_TRY(event.milliseconds, reader.Required<std::uint64_t>("ms"));
  ASSAY_TRY(const std::string type, reader.Required<std::string>("type"));
  ASSAY_TRY(event.event, ReadAs(type, reader));
  ASSAY_TRY_VOID(reader.Finish());
  return event;
}

}  // namespace assay::runs

#include "batch/events.h"

namespace assay::batch {
namespace {

Json UsageToJson(const runs::Usage& usage) {
  return {{"input", usage.input_tokens},
          {"cached_input", usage.cached_input_tokens},
          {"output", usage.output_tokens}};
}

Result<runs::Usage> ReadUsage(ObjectReader& parent, std::string_view key) {
  ASSAY_TRY(const Json json, parent.Required<Json>(key));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, parent.PlaceOf(key)));
  runs::Usage usage;
  ASSAY_TRY(usage.input_tokens, reader.Required<std::uint64_t>("input"));
  ASSAY_TRY(usage.cached_input_tokens, reader.Required<std::uint64_t>("cached_input"));
  ASSAY_TRY(usage.output_tokens, reader.Required<std::uint64_t>("output"));
  ASSAY_TRY_VOID(reader.Finish());
  return usage;
}

Result<End> ReadEnd(ObjectReader& reader) {
  ASSAY_TRY(const std::string word, reader.Required<std::string>("outcome"));
  if (const std::optional<End> end = ParseEnd(word)) return *end;
  return Fail(ErrorKind::kMalformedInput, "unknown outcome '" + word + "'",
              reader.PlaceOf("outcome"));
}

Result<InstanceEnded> ReadEnded(ObjectReader& reader) {
  InstanceEnded ended;
  ASSAY_TRY(ended.instance, reader.Required<std::string>("instance"));
  ASSAY_TRY(ended.end, ReadEnd(reader));
  ASSAY_TRY(ended.reason, reader.Required<std::string>("reason"));
  ASSAY_TRY(ended.resumable, reader.Required<bool>("resumable"));
  ASSAY_TRY(const std::uint64_t attempts, reader.Required<std::uint64_t>("attempts"));
  ended.attempts = static_cast<int>(std::min<std::uint64_t>(attempts, 1'000'000));
  ASSAY_TRY(ended.tokens, ReadUsage(reader, "tokens"));
  ASSAY_TRY(ended.lost, ReadUsage(reader, "lost"));
  ASSAY_TRY(const Json usd, reader.Required<Json>("usd"));
  if (!usd.is_null()) {
    ASSAY_TRY(ended.usd, json_detail::Convert<double>(usd, reader.PlaceOf("usd")));
  }
  ASSAY_TRY(ended.vetted, reader.Required<std::string>("vetted"));
  ASSAY_TRY(ended.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(ended.where, reader.Required<std::string>("where"));
  ASSAY_TRY(ended.seconds, reader.Required<double>("seconds"));
  ASSAY_TRY(ended.cpu_seconds, reader.Required<double>("cpu_seconds"));
  ASSAY_TRY(ended.max_rss_bytes, reader.Required<std::uint64_t>("max_rss_bytes"));
  return ended;
}

Json ToJson(const BatchStarted& event) {
  return {{"type", "batch_started"}, {"batch", event.batch}};
}
Json ToJson(const BatchResumed& event) {
  return {{"type", "batch_resumed"}, {"batch", event.batch}};
}
Json ToJson(const InstanceStarted& event) {
  return {{"type", "instance_started"},
          {"instance", event.instance},
          {"where", event.where},
          {"sister", event.sister}};
}
Json ToJson(const InstanceUpToDate& event) {
  return {{"type", "instance_up_to_date"},
          {"instance", event.instance},
          {"key", event.key},
          {"kernel", event.kernel},
          {"vetted", event.vetted}};
}
Json ToJson(const InstanceRechecked& event) {
  return {{"type", "instance_rechecked"}, {"drift", ToJson(event.drift)}};
}
Json ToJson(const BatchStopped& event) {
  return {{"type", "batch_stopped"}, {"reason", event.reason}, {"resumable", event.resumable}};
}
Json EventToJson(const InstanceEnded& event) {
  Json json = {{"type", "instance_ended"}};
  json.update(ToJson(event));
  return json;
}
template <class T>
Json EventToJson(const T& event) {
  return ToJson(event);
}

Result<Event> ReadEvent(ObjectReader& reader) {
  ASSAY_TRY(const std::string type, reader.Required<std::string>("type"));
  if (type == "batch_started" || type == "batch_resumed") {
    ASSAY_TRY(Json batch, reader.Required<Json>("batch"));
    if (type == "batch_started") return BatchStarted{std::move(batch)};
    return BatchResumed{std::move(batch)};
  }
  if (type == "instance_started") {
    InstanceStarted event;
    ASSAY_TRY(event.instance, reader.Required<std::string>("instance"));
    ASSAY_TRY(event.where, reader.Required<std::string>("where"));
    ASSAY_TRY(event.sister, reader.Required<std::string>("sister"));
    return event;
  }
  if (type == "instance_up_to_date") {
    InstanceUpToDate event;
    ASSAY_TRY(event.instance, reader.Required<std::string>("instance"));
    ASSAY_TRY(event.key, reader.Required<std::string>("key"));
    ASSAY_TRY(event.kernel, reader.Required<std::string>("kernel"));
    ASSAY_TRY(event.vetted, reader.Required<std::string>("vetted"));
    return event;
  }
  if (type == "instance_ended") {
    ASSAY_TRY(InstanceEnded event, ReadEnded(reader));
    return event;
  }
  if (type == "instance_rechecked") {
    ASSAY_TRY(const Json drift, reader.Required<Json>("drift"));
    ASSAY_TRY(DriftRow row, DriftFromJson(drift, reader.PlaceOf("drift")));
    return InstanceRechecked{std::move(row)};
  }
  if (type == "batch_stopped") {
    BatchStopped event;
    ASSAY_TRY(event.reason, reader.Required<std::string>("reason"));
    ASSAY_TRY(event.resumable, reader.Required<bool>("resumable"));
    return event;
  }
  return Fail(ErrorKind::kMalformedInput, "unknown event '" + type + "'", reader.PlaceOf("type"),
              "continue the batch with the version that began it");
}

}  // namespace

Json ToJson(const InstanceEnded& ended) {
  return {{"instance", ended.instance},
          {"outcome", Name(ended.end)},
          {"reason", ended.reason},
          {"resumable", ended.resumable},
          {"attempts", ended.attempts},
          {"tokens", UsageToJson(ended.tokens)},
          {"lost", UsageToJson(ended.lost)},
          {"usd", ended.usd ? Json(*ended.usd) : Json(nullptr)},
          {"vetted", ended.vetted},
          {"kernel", ended.kernel},
          {"where", ended.where},
          {"seconds", ended.seconds},
          {"cpu_seconds", ended.cpu_seconds},
          {"max_rss_bytes", ended.max_rss_bytes}};
}

Result<InstanceEnded> EndedFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(InstanceEnded ended, ReadEnded(reader));
  ASSAY_TRY_VOID(reader.Finish());
  return ended;
}

Json ToJson(const DriftRow& row) {
  Json changed = Json::array();
  for (const ChangedPart& part : row.changed) {
    changed.push_back({{"cause", part.cause},
                       {"part", part.part},
                       {"before", part.before},
                       {"after", part.after}});
  }
  return {{"instance", row.instance}, {"kernel", row.kernel},   {"before", row.before},
          {"after", row.after},       {"reason", row.reason},   {"gate", row.gate},
          {"finding", row.finding},   {"drifted", row.drifted}, {"changed", std::move(changed)}};
}

Result<DriftRow> DriftFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  DriftRow row;
  ASSAY_TRY(row.instance, reader.Required<std::string>("instance"));
  ASSAY_TRY(row.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(row.before, reader.Required<std::string>("before"));
  ASSAY_TRY(row.after, reader.Required<std::string>("after"));
  ASSAY_TRY(row.reason, reader.Required<std::string>("reason"));
  ASSAY_TRY(row.gate, reader.Required<std::string>("gate"));
  ASSAY_TRY(row.finding, reader.Required<std::string>("finding"));
  ASSAY_TRY(row.drifted, reader.Required<bool>("drifted"));
  ASSAY_TRY(const Json changed, reader.Required<Json>("changed"));
  ASSAY_TRY_VOID(reader.Finish());
  for (std::size_t i = 0; i < changed.size(); ++i) {
    ASSAY_TRY(ObjectReader part,
              ObjectReader::Of(changed[i], reader.PlaceOf("changed") + "/" + std::to_string(i)));
    ChangedPart& into = row.changed.emplace_back();
    ASSAY_TRY(into.cause, part.Required<std::string>("cause"));
    ASSAY_TRY(into.part, part.Required<std::string>("part"));
    ASSAY_TRY(into.before, part.Required<std::string>("before"));
    ASSAY_TRY(into.after, part.Required<std::string>("after"));
    ASSAY_TRY_VOID(part.Finish());
  }
  return row;
}

Json ToJson(const StampedEvent& stamped) {
  Json json = {{"n", stamped.number}, {"time", stamped.time}, {"ms", stamped.milliseconds}};
  json.update(std::visit([](const auto& event) { return EventToJson(event); }, stamped.event));
  return json;
}

Result<StampedEvent> EventFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  StampedEvent stamped;
  ASSAY_TRY(stamped.number, reader.Required<std::uint64_t>("n"));
  ASSAY_TRY(stamped.time, reader.Required<std::string>("time"));
  ASSAY_TRY(stamped.milliseconds, reader.Required<std::uint64_t>("ms"));
  ASSAY_TRY(stamped.event, ReadEvent(reader));
  ASSAY_TRY_VOID(reader.Finish());
  return stamped;
}

bool BatchState::Done(const std::string& instance) const {
  const auto found = instances.find(instance);
  if (found == instances.end()) return false;
  const InstanceState& state = found->second;
  return state.up_to_date ||
         (state.ended && !state.ended->resumable && state.ended->end != End::kFailed);
}

void Apply(const StampedEvent& stamped, BatchState& state) {
  const auto of = [&](const std::string& instance) -> InstanceState& {
    InstanceState& known = state.instances[instance];
    known.cost.instance = instance;
    return known;
  };
  if (state.began.empty()) state.began = stamped.time;
  state.last = stamped.time;
  if (const auto* started = std::get_if<BatchStarted>(&stamped.event)) {
    state.batch = started->batch;
    ++state.starts;
  } else if (const auto* resumed = std::get_if<BatchResumed>(&stamped.event)) {
    state.batch = resumed->batch;
    ++state.starts;
    state.earlier_milliseconds += std::exchange(state.session_milliseconds, 0);
    state.stopped.reset();
  } else if (const auto* began = std::get_if<InstanceStarted>(&stamped.event)) {
    InstanceState& instance = of(began->instance);
    instance.sister = began->sister;
    instance.ended.reset();
    if (instance.cost.began.empty()) instance.cost.began = stamped.time;
    instance.cost.where = began->where;
    ++instance.cost.starts;
  } else if (const auto* known = std::get_if<InstanceUpToDate>(&stamped.event)) {
    of(known->instance).up_to_date = *known;
  } else if (const auto* ended = std::get_if<InstanceEnded>(&stamped.event)) {
    InstanceState& instance = of(ended->instance);
    instance.ended = *ended;
    instance.cost.ended = stamped.time;
    if (!ended->where.empty()) instance.cost.where = ended->where;
    instance.cost.seconds += ended->seconds;
    instance.cost.cpu_seconds += ended->cpu_seconds;
    instance.cost.max_rss_bytes = std::max(instance.cost.max_rss_bytes, ended->max_rss_bytes);
    instance.cost.lost_tokens = ended->lost.input_tokens + ended->lost.output_tokens;
  } else if (const auto* rechecked = std::get_if<InstanceRechecked>(&stamped.event)) {
    state.drift.push_back(rechecked->drift);
  } else if (const auto* stopped = std::get_if<BatchStopped>(&stamped.event)) {
    state.stopped = *stopped;
  }
  state.session_milliseconds = stamped.milliseconds;
}

}  // namespace assay::batch

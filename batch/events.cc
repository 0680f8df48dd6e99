#include "batch/events.h"

#include "batch/fields.h"

namespace assay::batch {

static constexpr std::string_view JsonTag(const BatchStarted*) { return "batch_started"; }
static constexpr auto JsonFields(const BatchStarted*) {
  return std::tuple(Required("batch", &BatchStarted::batch));
}
static constexpr std::string_view JsonTag(const BatchResumed*) { return "batch_resumed"; }
static constexpr auto JsonFields(const BatchResumed*) {
  return std::tuple(Required("batch", &BatchResumed::batch));
}
static constexpr std::string_view JsonTag(const InstanceStarted*) { return "instance_started"; }
static constexpr auto JsonFields(const InstanceStarted*) {
  using I = InstanceStarted;
  return std::tuple(Required("instance", &I::instance), Required("where", &I::where),
                    Required("sister", &I::sister));
}
static constexpr std::string_view JsonTag(const InstanceUpToDate*) { return "instance_up_to_date"; }
static constexpr auto JsonFields(const InstanceUpToDate*) {
  using I = InstanceUpToDate;
  return std::tuple(Required("instance", &I::instance), Required("key", &I::key),
                    Required("kernel", &I::kernel), Required("vetted", &I::vetted));
}
static constexpr std::string_view JsonTag(const InstanceEnded*) { return "instance_ended"; }
static constexpr auto JsonFields(const InstanceEnded*) {
  using I = InstanceEnded;
  return std::tuple(Required("instance", &I::instance), Required("outcome", &I::end),
                    Required("reason", &I::reason), Required("resumable", &I::resumable),
                    Required("attempts", &I::attempts), Required<Tokens>("tokens", &I::tokens),
                    Required<Tokens>("lost", &I::lost), Required("usd", &I::usd),
                    Required("vetted", &I::vetted), Required("kernel", &I::kernel),
                    Required("where", &I::where), Required("seconds", &I::seconds),
                    Required("cpu_seconds", &I::cpu_seconds),
                    Required("max_rss_bytes", &I::max_rss_bytes));
}
static constexpr std::string_view JsonTag(const InstanceRechecked*) { return "instance_rechecked"; }
static constexpr auto JsonFields(const InstanceRechecked*) {
  return std::tuple(Required("drift", &InstanceRechecked::drift));
}
static constexpr std::string_view JsonTag(const BatchStopped*) { return "batch_stopped"; }
static constexpr auto JsonFields(const BatchStopped*) {
  return std::tuple(Required("reason", &BatchStopped::reason),
                    Required("resumable", &BatchStopped::resumable));
}
static constexpr auto JsonFields(const StampedEvent*) {
  using S = StampedEvent;
  return std::tuple(Required("n", &S::number), Required("time", &S::time),
                    Required("ms", &S::milliseconds),
                    Tagged("type", &S::event, "continue the batch with the version that began it"));
}

Json Tokens::Write(const runs::Usage& usage) {
  return {{"input", usage.input_tokens},
          {"cached_input", usage.cached_input_tokens},
          {"output", usage.output_tokens}};
}

Result<runs::Usage> Tokens::Read(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  runs::Usage usage;
  ASSAY_TRY(usage.input_tokens, reader.Required<std::uint64_t>("input"));
  ASSAY_TRY(usage.cached_input_tokens, reader.Required<std::uint64_t>("cached_input"));
  ASSAY_TRY(usage.output_tokens, reader.Required<std::uint64_t>("output"));
  ASSAY_TRY_VOID(reader.Finish());
  return usage;
}

Json ToJson(const InstanceEnded& ended) { return WriteJson(ended); }
Result<InstanceEnded> EndedFromJson(const Json& json, const std::string& place) {
  return ReadJson<InstanceEnded>(json, place);
}
Json ToJson(const DriftRow& row) { return WriteJson(row); }
Json ToJson(const StampedEvent& stamped) { return WriteJson(stamped); }
Result<StampedEvent> EventFromJson(const Json& json, const std::string& place) {
  return ReadJson<StampedEvent>(json, place);
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

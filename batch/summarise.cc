#include "batch/summarise.h"

#include <algorithm>
#include <tuple>

#include "runs/folder.h"

namespace assay::batch {
namespace {

std::string TextAt(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json ObjectAt(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_object() ? *found : Json::object();
}

Json ArrayAt(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_array() ? *found : Json::array();
}

AttemptRow RowOf(const runs::Attempt& attempt) {
  AttemptRow row{.attempt = attempt.number,
                 .kind = std::string(runs::Name(attempt.kind)),
                 .parent = attempt.parent,
                 .outcome = std::string(verdict::Name(attempt.verdict->outcome))};
  const auto counterexamples = attempt.verdict->Counterexamples();
  if (counterexamples.empty()) return row;
  row.gate = counterexamples.front()->gate;
  if (!counterexamples.front()->findings.empty())
    row.finding = Name(counterexamples.front()->findings.front().kind);
  return row;
}

Status ReadRun(const Path& folder, InstanceRow& row) {
  ASSAY_TRY(const std::vector<runs::StampedEvent> events, runs::RunFolder::ReadEvents(folder));
  runs::RunState state;
  for (const runs::StampedEvent& event : events) ASSAY_TRY_VOID(runs::Apply(event, state));
  row.tokens = state.answered;
  const runs::Attempt* counts = state.Accepted();
  for (const runs::Attempt& attempt : state.attempts) {
    if (!attempt.verdict) continue;
    row.attempts.push_back(RowOf(attempt));
    if (state.Accepted() == nullptr) counts = &attempt;
  }
  if (counts == nullptr) return {};
  for (const verdict::GateResult& gate : counts->verdict->gates)
    row.gates.push_back({gate.gate, std::string(verdict::Name(gate.status))});
  return {};
}

InstanceRow RowOf(const Json& planned, const BatchState& state, const Path& folder,
                  std::vector<InstanceCost>& costs) {
  const Json request = ObjectAt(planned, "request");
  const Json op = ObjectAt(request, "op");
  InstanceRow row{.instance = TextAt(planned, "instance"),
                  .op = TextAt(op, "name"),
                  .op_sha256 = TextAt(op, "sha256"),
                  .arch = TextAt(request, "arch"),
                  .model = TextAt(request, "model")};
  const Json binding = ObjectAt(request, "binding");
  for (const auto& [variable, dtype] : binding.items()) {
    if (dtype.is_string()) row.binding[variable] = dtype.get<std::string>();
  }
  const auto found = state.instances.find(row.instance);
  if (found == state.instances.end()) {
    row.reason = "not begun";
    return row;
  }
  const InstanceState& instance = found->second;
  if (instance.up_to_date) {
    row.end = End::kAccepted;
    row.up_to_date = true;
    row.reason = "up to date";
    row.kernel = instance.up_to_date->kernel;
    row.vetted = instance.up_to_date->vetted;
    return row;
  }
  row.run = "runs/" + row.instance;
  row.sister = instance.sister;
  costs.push_back(instance.cost);
  const Status read = ReadRun(folder / row.run, row);
  if (!instance.ended) {
    row.reason = "under way when it was last heard of";
    return row;
  }
  const InstanceEnded& ended = *instance.ended;
  row.end = ended.end;
  row.reason = ended.reason;
  if (!read && ended.end != End::kFailed)
    row.reason += "; its run cannot be read: " + read.error().message;
  row.resumable = ended.resumable;
  row.usd = ended.usd;
  row.kernel = ended.kernel;
  row.vetted = ended.vetted;
  return row;
}

}  // namespace

Summary Summarise(const BatchState& state, const Path& folder) {
  Summary summary;
  summary.kind = TextAt(state.batch, "kind");
  const Json planned = ArrayAt(state.batch, "instances");
  if (summary.kind != "recheck") {
    for (const Json& instance : planned)
      summary.instances.push_back(RowOf(instance, state, folder, summary.measured.instances));
  }
  summary.totals = Sum(summary.instances);
  summary.drift = state.drift;
  std::ranges::sort(summary.drift, {},
                    [](const DriftRow& row) { return std::tie(row.instance, row.kernel); });
  Measured& measured = summary.measured;
  measured.batch = TextAt(state.batch, "id");
  measured.executor = TextAt(state.batch, "executor");
  measured.began = state.began;
  measured.ended = state.last;
  measured.seconds =
      static_cast<double>(state.earlier_milliseconds + state.session_milliseconds) / 1000;
  measured.starts = state.starts;
  if (state.stopped) measured.stopped = state.stopped->reason;
  return summary;
}

Result<Summary> WriteSummary(const BatchState& state, const Path& folder) {
  Summary summary = Summarise(state, folder);
  ASSAY_TRY_VOID(WriteFileAtomically(folder / "summary.json", PrettyJson(ToJson(summary))));
  return summary;
}

}  // namespace assay::batch

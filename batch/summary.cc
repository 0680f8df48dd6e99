#include "batch/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "batch/events.h"

namespace assay::batch {
namespace {

constexpr std::array<std::string_view, 5> kEnds = {"accepted", "refuted", "inconclusive", "failed",
                                                   "waiting"};

Json UsageToJson(const runs::Usage& usage) {
  return {{"input", usage.input_tokens},
          {"cached_input", usage.cached_input_tokens},
          {"output", usage.output_tokens}};
}

Json UsdToJson(const std::optional<double>& usd) { return usd ? Json(*usd) : Json(nullptr); }

Json ToJson(const InstanceRow& row) {
  Json binding = Json::object();
  for (const auto& [variable, dtype] : row.binding) binding[variable] = dtype;
  Json attempts = Json::array();
  for (const AttemptRow& attempt : row.attempts) {
    attempts.push_back({{"attempt", attempt.attempt},
                        {"kind", attempt.kind},
                        {"parent", attempt.parent},
                        {"outcome", attempt.outcome},
                        {"gate", attempt.gate},
                        {"finding", attempt.finding}});
  }
  Json gates = Json::array();
  for (const GateRow& gate : row.gates)
    gates.push_back({{"gate", gate.gate}, {"status", gate.status}});
  return {{"instance", row.instance},
          {"op", row.op},
          {"op_sha256", row.op_sha256},
          {"binding", std::move(binding)},
          {"arch", row.arch},
          {"model", row.model},
          {"outcome", Name(row.end)},
          {"reason", row.reason},
          {"up_to_date", row.up_to_date},
          {"resumable", row.resumable},
          {"sister", row.sister},
          {"attempts", std::move(attempts)},
          {"gates", std::move(gates)},
          {"tokens", UsageToJson(row.tokens)},
          {"usd", UsdToJson(row.usd)},
          {"kernel", row.kernel},
          {"run", row.run},
          {"vetted", row.vetted}};
}

Json ToJson(const Totals& totals) {
  Json outcomes = Json::object();
  for (const auto& [name, count] : totals.ends) outcomes[name] = count;
  return {{"instances", totals.instances},        {"outcomes", std::move(outcomes)},
          {"up_to_date", totals.up_to_date},      {"attempts", totals.attempts},
          {"tokens", UsageToJson(totals.tokens)}, {"usd", totals.usd}};
}

Json ToJson(const Measured& measured) {
  Json instances = Json::array();
  for (const InstanceCost& cost : measured.instances) {
    instances.push_back({{"instance", cost.instance},
                         {"began", cost.began},
                         {"ended", cost.ended},
                         {"seconds", cost.seconds},
                         {"where", cost.where},
                         {"starts", cost.starts},
                         {"cpu_seconds", cost.cpu_seconds},
                         {"max_rss_bytes", cost.max_rss_bytes},
                         {"lost_tokens", cost.lost_tokens}});
  }
  return {{"batch", measured.batch},     {"executor", measured.executor},
          {"began", measured.began},     {"ended", measured.ended},
          {"seconds", measured.seconds}, {"starts", measured.starts},
          {"stopped", measured.stopped}, {"instances", std::move(instances)}};
}

// The elements of an array below `reader`, each read as an object by `read`.
template <class Read>
Status EachIn(ObjectReader& reader, std::string_view key, const Read& read) {
  ASSAY_TRY(const Json array, reader.Required<Json>(key));
  if (!array.is_array())
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf(key));
  for (std::size_t i = 0; i < array.size(); ++i) {
    ASSAY_TRY(ObjectReader element,
              ObjectReader::Of(array[i], reader.PlaceOf(key) + "/" + std::to_string(i)));
    ASSAY_TRY_VOID(read(element));
    ASSAY_TRY_VOID(element.Finish());
  }
  return {};
}

Result<runs::Usage> ReadUsage(ObjectReader& parent) {
  ASSAY_TRY(const Json json, parent.Required<Json>("tokens"));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, parent.PlaceOf("tokens")));
  runs::Usage usage;
  ASSAY_TRY(usage.input_tokens, reader.Required<std::uint64_t>("input"));
  ASSAY_TRY(usage.cached_input_tokens, reader.Required<std::uint64_t>("cached_input"));
  ASSAY_TRY(usage.output_tokens, reader.Required<std::uint64_t>("output"));
  ASSAY_TRY_VOID(reader.Finish());
  return usage;
}

Result<int> Number(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(const std::uint64_t value, reader.Required<std::uint64_t>(key));
  return static_cast<int>(std::min<std::uint64_t>(value, 1'000'000'000));
}

Status ReadInstance(ObjectReader& reader, InstanceRow& row) {
  ASSAY_TRY(row.instance, reader.Required<std::string>("instance"));
  ASSAY_TRY(row.op, reader.Required<std::string>("op"));
  ASSAY_TRY(row.op_sha256, reader.Required<std::string>("op_sha256"));
  ASSAY_TRY(const Json binding, reader.Required<Json>("binding"));
  if (!binding.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("binding"));
  for (const auto& [variable, dtype] : binding.items()) {
    ASSAY_TRY(row.binding[variable],
              json_detail::Convert<std::string>(dtype, reader.PlaceOf("binding")));
  }
  ASSAY_TRY(row.arch, reader.Required<std::string>("arch"));
  ASSAY_TRY(row.model, reader.Required<std::string>("model"));
  ASSAY_TRY(const std::string outcome, reader.Required<std::string>("outcome"));
  const std::optional<End> end = ParseEnd(outcome);
  if (!end) {
    return Fail(ErrorKind::kMalformedInput, "unknown outcome '" + outcome + "'",
                reader.PlaceOf("outcome"));
  }
  row.end = *end;
  ASSAY_TRY(row.reason, reader.Required<std::string>("reason"));
  ASSAY_TRY(row.up_to_date, reader.Required<bool>("up_to_date"));
  ASSAY_TRY(row.resumable, reader.Required<bool>("resumable"));
  ASSAY_TRY(row.sister, reader.Required<std::string>("sister"));
  ASSAY_TRY_VOID(EachIn(reader, "attempts", [&row](ObjectReader& at) -> Status {
    AttemptRow& attempt = row.attempts.emplace_back();
    ASSAY_TRY(attempt.attempt, Number(at, "attempt"));
    ASSAY_TRY(attempt.kind, at.Required<std::string>("kind"));
    ASSAY_TRY(attempt.parent, Number(at, "parent"));
    ASSAY_TRY(attempt.outcome, at.Required<std::string>("outcome"));
    ASSAY_TRY(attempt.gate, at.Required<std::string>("gate"));
    ASSAY_TRY(attempt.finding, at.Required<std::string>("finding"));
    return {};
  }));
  ASSAY_TRY_VOID(EachIn(reader, "gates", [&row](ObjectReader& at) -> Status {
    GateRow& gate = row.gates.emplace_back();
    ASSAY_TRY(gate.gate, at.Required<std::string>("gate"));
    ASSAY_TRY(gate.status, at.Required<std::string>("status"));
    return {};
  }));
  ASSAY_TRY(row.tokens, ReadUsage(reader));
  ASSAY_TRY(const Json usd, reader.Required<Json>("usd"));
  if (!usd.is_null()) {
    ASSAY_TRY(row.usd, json_detail::Convert<double>(usd, reader.PlaceOf("usd")));
  }
  ASSAY_TRY(row.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(row.run, reader.Required<std::string>("run"));
  ASSAY_TRY(row.vetted, reader.Required<std::string>("vetted"));
  return {};
}

Result<Measured> ReadMeasured(ObjectReader& parent) {
  ASSAY_TRY(const Json json, parent.Required<Json>("measured"));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, parent.PlaceOf("measured")));
  Measured measured;
  ASSAY_TRY(measured.batch, reader.Required<std::string>("batch"));
  ASSAY_TRY(measured.executor, reader.Required<std::string>("executor"));
  ASSAY_TRY(measured.began, reader.Required<std::string>("began"));
  ASSAY_TRY(measured.ended, reader.Required<std::string>("ended"));
  ASSAY_TRY(measured.seconds, reader.Required<double>("seconds"));
  ASSAY_TRY(measured.starts, reader.Required<std::uint64_t>("starts"));
  ASSAY_TRY(measured.stopped, reader.Required<std::string>("stopped"));
  ASSAY_TRY_VOID(EachIn(reader, "instances", [&measured](ObjectReader& at) -> Status {
    InstanceCost& cost = measured.instances.emplace_back();
    ASSAY_TRY(cost.instance, at.Required<std::string>("instance"));
    ASSAY_TRY(cost.began, at.Required<std::string>("began"));
    ASSAY_TRY(cost.ended, at.Required<std::string>("ended"));
    ASSAY_TRY(cost.seconds, at.Required<double>("seconds"));
    ASSAY_TRY(cost.where, at.Required<std::string>("where"));
    ASSAY_TRY(cost.starts, at.Required<std::uint64_t>("starts"));
    ASSAY_TRY(cost.cpu_seconds, at.Required<double>("cpu_seconds"));
    ASSAY_TRY(cost.max_rss_bytes, at.Required<std::uint64_t>("max_rss_bytes"));
    ASSAY_TRY(cost.lost_tokens, at.Required<std::uint64_t>("lost_tokens"));
    return {};
  }));
  ASSAY_TRY_VOID(reader.Finish());
  return measured;
}

std::string Plural(std::uint64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// What a table's row says in its last column.
std::string Remark(const InstanceRow& row) {
  if (row.up_to_date) return "up to date";
  if (row.end == End::kRefuted && !row.attempts.empty() && !row.attempts.back().finding.empty())
    return row.attempts.back().gate + ": " + row.attempts.back().finding;
  if (row.end == End::kAccepted) return row.sister.empty() ? "" : "from " + row.sister;
  return Head(row.reason, 90);
}

std::string RenderDrift(const Summary& summary) {
  std::string text;
  std::size_t drifted = 0;
  for (const DriftRow& row : summary.drift) {
    if (!row.drifted) continue;
    ++drifted;
    text += fmt::format("{}  {} -> {}{}\n", row.instance, row.before,
                        row.after.empty() ? "not judged" : row.after,
                        row.finding.empty() ? "" : " (" + row.gate + ": " + row.finding + ")");
    if (!row.reason.empty()) text += "    " + Head(row.reason, 160) + "\n";
    for (const ChangedPart& part : row.changed) {
      text += fmt::format("    {} changed: {}  {} -> {}\n", part.cause, part.part,
                          part.before.empty() ? "-" : Head(part.before, 40),
                          part.after.empty() ? "-" : Head(part.after, 40));
    }
  }
  return text +
         fmt::format("{} judged again or known, {}\n", Plural(summary.drift.size(), "kernel"),
                     drifted == 0 ? "no verdict changed" : Plural(drifted, "verdict") + " changed");
}

}  // namespace

std::string_view Name(End end) { return kEnds[static_cast<std::size_t>(end)]; }

std::optional<End> ParseEnd(std::string_view name) {
  const auto found = std::ranges::find(kEnds, name);
  if (found == kEnds.end()) return std::nullopt;
  return static_cast<End>(found - kEnds.begin());
}

Totals Sum(const std::vector<InstanceRow>& instances) {
  Totals totals;
  for (const std::string_view name : kEnds) totals.ends[std::string(name)] = 0;
  for (const InstanceRow& row : instances) {
    ++totals.instances;
    ++totals.ends[std::string(Name(row.end))];
    totals.up_to_date += row.up_to_date ? 1u : 0u;
    totals.attempts += row.attempts.size();
    totals.tokens += row.tokens;
    totals.usd += row.usd.value_or(0);
  }
  return totals;
}

Json ToJson(const Summary& summary) {
  Json instances = Json::array();
  for (const InstanceRow& row : summary.instances) instances.push_back(ToJson(row));
  Json drift = Json::array();
  for (const DriftRow& row : summary.drift) drift.push_back(ToJson(row));
  return {{"schema", kSummarySchema},          {"kind", summary.kind},
          {"instances", std::move(instances)}, {"totals", ToJson(summary.totals)},
          {"drift", std::move(drift)},         {"measured", ToJson(summary.measured)}};
}

Result<Summary> SummaryFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != kSummarySchema) {
    return Fail(ErrorKind::kMalformedInput, "schema '" + schema + "' is not known",
                reader.PlaceOf("schema"), "use the version of assay that wrote the file");
  }
  Summary summary;
  ASSAY_TRY(summary.kind, reader.Required<std::string>("kind"));
  ASSAY_TRY_VOID(EachIn(reader, "instances", [&summary](ObjectReader& at) {
    return ReadInstance(at, summary.instances.emplace_back());
  }));
  reader.Ignore("totals");  // they follow
  summary.totals = Sum(summary.instances);
  ASSAY_TRY(const Json drift, reader.Required<Json>("drift"));
  if (!drift.is_array())
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("drift"));
  for (std::size_t i = 0; i < drift.size(); ++i) {
    ASSAY_TRY(DriftRow row,
              DriftFromJson(drift[i], reader.PlaceOf("drift") + "/" + std::to_string(i)));
    summary.drift.push_back(std::move(row));
  }
  ASSAY_TRY(summary.measured, ReadMeasured(reader));
  ASSAY_TRY_VOID(reader.Finish());
  return summary;
}

Json Compared(Json summary) {
  summary.erase("measured");
  return summary;
}

std::string RenderTable(const Summary& summary) {
  if (summary.kind == "recheck") return RenderDrift(summary);
  std::size_t width = 8;
  for (const InstanceRow& row : summary.instances) width = std::max(width, row.instance.size());
  width = std::min<std::size_t>(width, 60);
  std::string text = fmt::format("{:<{}}  {:<12} {:>8} {:>9} {:>9}\n", "instance", width, "outcome",
                                 "attempts", "tokens", "usd");
  for (const InstanceRow& row : summary.instances) {
    std::string line =
        fmt::format("{:<{}}  {:<12} {:>8} {:>9} {:>9}  {}", row.instance, width, Name(row.end),
                    row.attempts.size(), row.tokens.input_tokens + row.tokens.output_tokens,
                    row.usd ? fmt::format("{:.4f}", *row.usd) : "-", Remark(row));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const Totals& totals = summary.totals;
  text += Plural(totals.instances, "instance") + ":";
  std::string parts;
  for (const std::string_view name : kEnds) {
    const auto count = totals.ends.find(std::string(name));
    if (count != totals.ends.end() && count->second > 0)
      parts += fmt::format("{} {} {}", parts.empty() ? "" : ",", count->second, name);
  }
  text += parts;
  if (totals.up_to_date > 0) text += fmt::format("; {} up to date", totals.up_to_date);
  text += fmt::format("; {}, {} tokens, ${:.4f}\n", Plural(totals.attempts, "attempt"),
                      totals.tokens.input_tokens + totals.tokens.output_tokens, totals.usd);
  if (!summary.measured.stopped.empty()) text += "stopped: " + summary.measured.stopped + "\n";
  return text;
}

}  // namespace assay::batch

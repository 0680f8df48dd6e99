#include "batch/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "batch/fields.h"

namespace assay::batch {
namespace {

constexpr std::array<std::string_view, 5> kEnds = {"accepted", "refuted", "inconclusive", "failed",
                                                   "waiting"};

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

static constexpr auto JsonFields(const AttemptRow*) {
  using A = AttemptRow;
  return std::tuple(Required("attempt", &A::attempt), Required("kind", &A::kind),
                    Required("parent", &A::parent), Required("outcome", &A::outcome),
                    Required("gate", &A::gate), Required("finding", &A::finding));
}
static constexpr auto JsonFields(const GateRow*) {
  return std::tuple(Required("gate", &GateRow::gate), Required("status", &GateRow::status));
}
static constexpr auto JsonFields(const InstanceRow*) {
  using I = InstanceRow;
  return std::tuple(Required("instance", &I::instance), Required("op", &I::op),
                    Required("op_sha256", &I::op_sha256), Required("binding", &I::binding),
                    Required("arch", &I::arch), Required("model", &I::model),
                    Required("outcome", &I::end), Required("reason", &I::reason),
                    Required("up_to_date", &I::up_to_date), Required("resumable", &I::resumable),
                    Required("sister", &I::sister), Required("attempts", &I::attempts),
                    Required("gates", &I::gates), Required<Tokens>("tokens", &I::tokens),
                    Required("usd", &I::usd), Required("kernel", &I::kernel),
                    Required("run", &I::run), Required("vetted", &I::vetted));
}
static constexpr auto JsonFields(const Totals*) {
  using T = Totals;
  return std::tuple(Required("instances", &T::instances), Required("outcomes", &T::ends),
                    Required("up_to_date", &T::up_to_date), Required("attempts", &T::attempts),
                    Required<Tokens>("tokens", &T::tokens), Required("usd", &T::usd));
}
static constexpr auto JsonFields(const InstanceCost*) {
  using I = InstanceCost;
  return std::tuple(
      Required("instance", &I::instance), Required("began", &I::began),
      Required("ended", &I::ended), Required("seconds", &I::seconds), Required("where", &I::where),
      Required("starts", &I::starts), Required("cpu_seconds", &I::cpu_seconds),
      Required("max_rss_bytes", &I::max_rss_bytes), Required("lost_tokens", &I::lost_tokens));
}
static constexpr auto JsonFields(const Measured*) {
  using M = Measured;
  return std::tuple(Required("batch", &M::batch), Required("executor", &M::executor),
                    Required("began", &M::began), Required("ended", &M::ended),
                    Required("seconds", &M::seconds), Required("starts", &M::starts),
                    Required("stopped", &M::stopped), Required("instances", &M::instances));
}
static constexpr auto JsonFields(const Summary*) {
  using S = Summary;
  return std::tuple(Schema(kSummarySchema), Required("kind", &S::kind),
                    Required("instances", &S::instances), Required("totals", &S::totals),
                    Required("drift", &S::drift), Required("measured", &S::measured));
}

std::span<const std::string_view> JsonWords(const End*) { return kEnds; }

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

Json ToJson(const Summary& summary) { return WriteJson(summary); }

Result<Summary> SummaryFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(Summary summary, ReadJson<Summary>(json, place));
  summary.totals =
      Sum(summary.instances);  // They follow; what is written of them counts for nothing.
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

#include "validator/verdict/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "validator/verdict/read_json.h"

namespace assay::verdict {
namespace {

constexpr std::string_view kVerdictSchema = "assay.verdict/1";
constexpr std::array<std::string_view, 4> kOutcomes = {"accepted", "refuted", "inconclusive",
                                                       "internal_error"};
constexpr std::array<std::string_view, 4> kStatuses = {"passed", "refuted", "inconclusive",
                                                       "skipped"};

template <class E>
Result<E> WordFromJson(ObjectReader& reader, std::string_view key,
                       std::span<const std::string_view> words) {
  ASSAY_TRY(const std::string word, reader.Required<std::string>(key));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return static_cast<E>(i);
  }
  const std::vector<std::string> known(words.begin(), words.end());
  const std::string nearest = Nearest(word, known);
  return Fail(
      ErrorKind::kMalformedInput, "unknown value '" + word + "'", reader.PlaceOf(key),
      nearest.empty() ? "one of them: " + known.front() : "did you mean '" + nearest + "'?");
}

// JSON has no NaN and no infinity; statistics of broken kernels do.
Json NumberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Result<double> NumberFromJson(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(const Json json, reader.Required<Json>(key));
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::nan("");
  if (json == "inf") return HUGE_VAL;
  if (json == "-inf") return -HUGE_VAL;
  return Fail(ErrorKind::kMalformedInput, "must be a number, \"nan\", \"inf\" or \"-inf\"",
              reader.PlaceOf(key));
}

Json StatisticToJson(const Statistic& statistic) {
  return {{"name", statistic.name},
          {"value", NumberToJson(statistic.value)},
          {"limit", NumberToJson(statistic.limit)},
          {"note", statistic.note}};
}

Result<Statistic> StatisticFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Statistic statistic;
  ASSAY_TRY(statistic.name, reader.Required<std::string>("name"));
  ASSAY_TRY(statistic.value, NumberFromJson(reader, "value"));
  ASSAY_TRY(statistic.limit, NumberFromJson(reader, "limit"));
  ASSAY_TRY(statistic.note, reader.Optional<std::string>("note", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return statistic;
}

Json GateToJson(const GateResult& result) {
  Json statistics = Json::array();
  for (const Statistic& statistic : result.statistics)
    statistics.push_back(StatisticToJson(statistic));
  Json counterexamples = Json::array();
  for (const Counterexample& counterexample : result.counterexamples) {
    counterexamples.push_back(ToJson(counterexample));
  }
  Json json = {{"gate", result.gate},
               {"status", Name(result.status)},
               {"reason", result.reason},
               {"cases", result.cases},
               {"steps", result.steps},
               {"seeds", result.seeds},
               {"statistics", std::move(statistics)},
               {"counterexamples", std::move(counterexamples)},
               {"seconds", result.seconds}};
  if (!result.errors.empty()) {
    Json& errors = json["errors"] = Json::array();
    for (const ErrorProfile& profile : result.errors) errors.push_back(ToJson(profile));
  }
  return json;
}

Result<GateResult> GateFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  GateResult result;
  ASSAY_TRY(result.gate, reader.Required<std::string>("gate"));
  ASSAY_TRY(result.status, WordFromJson<GateStatus>(reader, "status", kStatuses));
  ASSAY_TRY(result.reason, reader.Optional<std::string>("reason", ""));
  ASSAY_TRY(result.cases, reader.Optional<std::uint64_t>("cases", 0));
  ASSAY_TRY(result.steps, reader.Optional<std::uint64_t>("steps", 0));
  ASSAY_TRY(result.seeds,
            ListFromJson<std::uint64_t>(reader, "seeds", [](const Json& item, std::string at) {
              return json_detail::Convert<std::uint64_t>(item, at);
            }));
  ASSAY_TRY(result.statistics, ListFromJson<Statistic>(reader, "statistics", StatisticFromJson));
  ASSAY_TRY(result.counterexamples,
            ListFromJson<Counterexample>(reader, "counterexamples", CounterexampleFromJson));
  ASSAY_TRY(result.errors, ListFromJson<ErrorProfile>(reader, "errors", ErrorProfileFromJson));
  ASSAY_TRY(result.seconds, reader.Optional<double>("seconds", 0));
  ASSAY_TRY_VOID(reader.Finish());
  return result;
}

}  // namespace

std::string_view Name(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::string_view Name(GateStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

int ExitCode(Outcome outcome) {
  constexpr std::array kCodes = {0, 1, 2, 4};
  return kCodes[static_cast<std::size_t>(outcome)];
}

void SetInconclusive(GateResult& result, std::string reason) {
  result.status = GateStatus::kInconclusive;
  result.reason = std::move(reason);
}

std::vector<const Counterexample*> Verdict::Counterexamples() const {
  std::vector<const Counterexample*> all;
  for (const GateResult& result : gates) {
    for (const Counterexample& counterexample : result.counterexamples)
      all.push_back(&counterexample);
  }
  return all;
}

Json ToJson(const Verdict& verdict) {
  Json gates = Json::array();
  for (const GateResult& result : verdict.gates) gates.push_back(GateToJson(result));
  return {{"schema", kVerdictSchema},
          {"outcome", Name(verdict.outcome)},
          {"reason", verdict.reason},
          {"instance", verdict.instance},
          {"engine", verdict.engine},
          {"truth", verdict.truth},
          {"unsafe_no_jail", verdict.unsafe_no_jail},
          {"gates", std::move(gates)},
          {"ledger", ToJson(verdict.ledger)}};
}

Result<Verdict> VerdictFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ASSAY_TRY_VOID(CheckSchema(reader, kVerdictSchema));
  Verdict verdict;
  ASSAY_TRY(verdict.outcome, WordFromJson<Outcome>(reader, "outcome", kOutcomes));
  ASSAY_TRY(verdict.reason, reader.Optional<std::string>("reason", ""));
  ASSAY_TRY(verdict.instance, reader.Required<std::string>("instance"));
  ASSAY_TRY(verdict.engine, reader.Required<std::string>("engine"));
  ASSAY_TRY(verdict.truth, reader.Optional<std::string>("truth", verdict.truth));
  ASSAY_TRY(verdict.unsafe_no_jail, reader.Required<bool>("unsafe_no_jail"));
  ASSAY_TRY(verdict.gates, ListFromJson<GateResult>(reader, "gates", GateFromJson));
  // Verdicts written before there was a ledger have none.
  ASSAY_TRY(const Json ledger, reader.Optional<Json>("ledger", ToJson(Ledger{})));
  ASSAY_TRY(verdict.ledger, LedgerFromJson(ledger, reader.PlaceOf("ledger")));
  ASSAY_TRY_VOID(reader.Finish());
  return verdict;
}

}  // namespace assay::verdict

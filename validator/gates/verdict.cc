#include "validator/gates/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::gates {
namespace {

constexpr std::string_view kCounterexampleSchema = "assay.counterexample/1";
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

Status CheckSchema(ObjectReader& reader, std::string_view schema) {
  ASSAY_TRY(const std::string given, reader.Required<std::string>("schema"));
  if (given == schema) return {};
  return Fail(ErrorKind::kMalformedInput,
              "schema '" + given + "' is not '" + std::string(schema) + "'",
              reader.PlaceOf("schema"), "use the version of assay that wrote the file");
}

template <class T>
Result<T> NarrowFromJson(ObjectReader& reader, std::string_view key, T limit) {
  ASSAY_TRY(const std::uint64_t value, reader.Required<std::uint64_t>(key));
  if (value > limit) return Fail(ErrorKind::kMalformedInput, "is too large", reader.PlaceOf(key));
  return static_cast<T>(value);
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

template <class T, class Read>
Result<std::vector<T>> ListFromJson(ObjectReader& reader, std::string_view key, Read read) {
  ASSAY_TRY(const Json list, reader.Optional<Json>(key, Json::array()));
  const std::string place = reader.PlaceOf(key);
  if (!list.is_array()) return Fail(ErrorKind::kMalformedInput, "must be an array", place);
  std::vector<T> items;
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSAY_TRY(T item, read(list[i], place + "/" + std::to_string(i)));
    items.push_back(std::move(item));
  }
  return items;
}

Json GateToJson(const GateResult& result) {
  Json statistics = Json::array();
  for (const Statistic& statistic : result.statistics)
    statistics.push_back(StatisticToJson(statistic));
  Json counterexamples = Json::array();
  for (const Counterexample& counterexample : result.counterexamples) {
    counterexamples.push_back(ToJson(counterexample));
  }
  return {{"gate", result.gate},
          {"status", Name(result.status)},
          {"reason", result.reason},
          {"cases", result.cases},
          {"steps", result.steps},
          {"seeds", result.seeds},
          {"statistics", std::move(statistics)},
          {"counterexamples", std::move(counterexamples)},
          {"seconds", result.seconds}};
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

Json ToJson(const Counterexample& counterexample) {
  Json binding = Json::object();
  for (const auto& [variable, dtype] : counterexample.binding) binding[variable] = dtype;
  // Without a case the keys stand there all the same, with what a probe has by itself.
  const cases::Probe probe = counterexample.probe.value_or(cases::Probe{});
  Json prelude = Json::array();
  for (const cases::Case& before : probe.prelude) prelude.push_back(ToJson(before));
  return {{"schema", kCounterexampleSchema},
          {"gate", counterexample.gate},
          {"op", counterexample.op},
          {"op_digest", counterexample.op_digest},
          {"binding", std::move(binding)},
          {"arch", counterexample.arch},
          {"engine", counterexample.engine},
          {"case", counterexample.probe ? ToJson(probe.case_) : Json(nullptr)},
          {"description", counterexample.description},
          {"prelude", std::move(prelude)},
          {"reuse_addresses", probe.reuse_addresses},
          {"schedule", ToJson(probe.schedule)},
          {"perturbation_seed", probe.perturbation_seed},
          {"poison", probe.poison},
          {"misalign", probe.misalign},
          {"ends_only", probe.ends_only},
          {"property", counterexample.property},
          {"findings", ToJson(counterexample.findings)},
          {"kernel", counterexample.kernel},
          {"launch", counterexample.launch}};
}

Result<Counterexample> CounterexampleFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ASSAY_TRY_VOID(CheckSchema(reader, kCounterexampleSchema));
  Counterexample counterexample;
  ASSAY_TRY(counterexample.gate, reader.Required<std::string>("gate"));
  ASSAY_TRY(counterexample.op, reader.Required<std::string>("op"));
  ASSAY_TRY(counterexample.op_digest, reader.Required<std::string>("op_digest"));
  ASSAY_TRY(const Json binding, reader.Required<Json>("binding"));
  if (!binding.is_object()) {
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("binding"));
  }
  for (const auto& [variable, dtype] : binding.items()) {
    ASSAY_TRY(counterexample.binding[variable],
              json_detail::Convert<std::string>(dtype, reader.PlaceOf("binding") + "/" + variable));
  }
  ASSAY_TRY(counterexample.arch, reader.Required<std::string>("arch"));
  ASSAY_TRY(counterexample.engine, reader.Required<std::string>("engine"));
  cases::Probe probe;
  ASSAY_TRY(const Json value, reader.Required<Json>("case"));
  if (!value.is_null()) {
    ASSAY_TRY(probe.case_, cases::CaseFromJson(value, reader.PlaceOf("case")));
  }
  ASSAY_TRY(counterexample.description, reader.Optional<std::string>("description", ""));
  ASSAY_TRY(probe.prelude, ListFromJson<cases::Case>(reader, "prelude", cases::CaseFromJson));
  ASSAY_TRY(probe.reuse_addresses, reader.Optional<bool>("reuse_addresses", false));
  ASSAY_TRY(const Json schedule, reader.Required<Json>("schedule"));
  ASSAY_TRY(probe.schedule, ScheduleFromJson(schedule, reader.PlaceOf("schedule")));
  ASSAY_TRY(probe.perturbation_seed, reader.Optional<std::uint64_t>("perturbation_seed", 0));
  ASSAY_TRY(probe.poison, NarrowFromJson<std::uint8_t>(reader, "poison", 0xff));
  ASSAY_TRY(probe.misalign, NarrowFromJson<std::uint32_t>(reader, "misalign", 255));
  ASSAY_TRY(probe.ends_only, reader.Optional<bool>("ends_only", false));
  ASSAY_TRY(counterexample.property, reader.Optional<std::string>("property", ""));
  ASSAY_TRY(const Json findings, reader.Required<Json>("findings"));
  ASSAY_TRY(counterexample.findings, FindingsFromJson(findings, reader.PlaceOf("findings")));
  ASSAY_TRY(counterexample.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(counterexample.launch, reader.Required<std::string>("launch"));
  ASSAY_TRY_VOID(reader.Finish());
  if (!value.is_null()) counterexample.probe = std::move(probe);
  return counterexample;
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
  return {{"schema", kVerdictSchema}, {"outcome", Name(verdict.outcome)},
          {"reason", verdict.reason}, {"instance", verdict.instance},
          {"engine", verdict.engine}, {"unsafe_no_jail", verdict.unsafe_no_jail},
          {"gates", std::move(gates)}};
}

Result<Verdict> VerdictFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ASSAY_TRY_VOID(CheckSchema(reader, kVerdictSchema));
  Verdict verdict;
  ASSAY_TRY(verdict.outcome, WordFromJson<Outcome>(reader, "outcome", kOutcomes));
  ASSAY_TRY(verdict.reason, reader.Optional<std::string>("reason", ""));
  ASSAY_TRY(verdict.instance, reader.Required<std::string>("instance"));
  ASSAY_TRY(verdict.engine, reader.Required<std::string>("engine"));
  ASSAY_TRY(verdict.unsafe_no_jail, reader.Required<bool>("unsafe_no_jail"));
  ASSAY_TRY(verdict.gates, ListFromJson<GateResult>(reader, "gates", GateFromJson));
  ASSAY_TRY_VOID(reader.Finish());
  return verdict;
}

}  // namespace assay::gates

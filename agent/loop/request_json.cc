#include "agent/loop/request_json.h"

#include <array>

#include "agent/models/secret.h"

namespace assay::loop {
namespace {

constexpr std::array<std::string_view, 3> kEfforts = {"quick", "standard", "thorough"};

template <class T, class Parse>
Result<T> Word(ObjectReader& reader, std::string_view key, const Parse& parse) {
  ASSAY_TRY(const std::string word, reader.Required<std::string>(key));
  const std::optional<T> value = parse(word);
  if (!value)
    return Fail(ErrorKind::kMalformedInput, "unknown value '" + word + "'", reader.PlaceOf(key));
  return *value;
}

template <class T>
Result<T> Count(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(const std::uint64_t value, reader.Required<std::uint64_t>(key));
  constexpr std::uint64_t kMost = 1'000'000'000;
  if (value > kMost)
    return Fail(ErrorKind::kMalformedInput, "the number is too large", reader.PlaceOf(key));
  return static_cast<T>(value);
}

Status ReadModel(const Json& json, const std::string& place, models::ModelSpec& model) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(model.base_url, reader.Required<std::string>("base_url"));
  ASSAY_TRY(const std::string key_file, reader.Required<std::string>("key_file"));
  model.key_file = key_file;
  ASSAY_TRY(const Json variables, reader.Optional<Json>("exec_variables", Json::array()));
  if (!variables.is_array()) {
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("exec_variables"));
  }
  for (const Json& variable : variables) {
    ASSAY_TRY(std::string name,
              json_detail::Convert<std::string>(variable, reader.PlaceOf("exec_variables")));
    model.exec_variables.push_back(std::move(name));
  }
  ASSAY_TRY(model.max_output_tokens, Count<std::uint32_t>(reader, "max_output_tokens"));
  if (reader.Has("temperature")) {
    ASSAY_TRY(model.temperature, reader.Required<double>("temperature"));
  }
  ASSAY_TRY(model.connect_seconds, Count<std::uint32_t>(reader, "connect_seconds"));
  ASSAY_TRY(model.idle_seconds, Count<std::uint32_t>(reader, "idle_seconds"));
  ASSAY_TRY(model.total_seconds, Count<std::uint32_t>(reader, "total_seconds"));
  ASSAY_TRY(model.tries, Count<std::uint32_t>(reader, "tries"));
  return reader.Finish();
}

Status ReadBudget(const Json& json, const std::string& place, Budget& budget) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(budget.usd, reader.Required<double>("usd"));
  ASSAY_TRY(budget.tokens, reader.Required<std::uint64_t>("tokens"));
  ASSAY_TRY(budget.seconds, reader.Required<std::uint64_t>("seconds"));
  ASSAY_TRY(const std::string prices, reader.Required<std::string>("prices"));
  budget.prices = prices;
  return reader.Finish();
}

Status ReadSettings(const Json& json, const std::string& place, GenerateRequest& request) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  StrategyOptions& strategy = request.strategy;
  ASSAY_TRY(strategy.kind, Word<StrategyKind>(reader, "strategy", ParseStrategyKind));
  ASSAY_TRY(strategy.attempts, Count<int>(reader, "attempts"));
  ASSAY_TRY(strategy.samples, Count<int>(reader, "samples"));
  ASSAY_TRY(strategy.width, Count<int>(reader, "width"));
  ASSAY_TRY(strategy.depth, Count<int>(reader, "depth"));
  ASSAY_TRY(strategy.stagnation, Count<int>(reader, "stagnation"));
  ASSAY_TRY(strategy.optimize, reader.Required<bool>("optimize"));
  ASSAY_TRY(request.feedback,
            Word<prompts::FeedbackMode>(reader, "feedback", prompts::ParseFeedbackMode));
  ASSAY_TRY(request.effort, Word<campaign::Effort>(reader, "effort", ParseEffort));
  ASSAY_TRY(request.engine, reader.Required<std::string>("engine"));
  ASSAY_TRY(request.seed, reader.Required<std::uint64_t>("seed"));
  return reader.Finish();
}

Result<prompts::Sister> SisterFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  prompts::Sister sister;
  ASSAY_TRY(sister.instance, reader.Required<std::string>("instance"));
  ASSAY_TRY(sister.candidate.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(sister.candidate.launch, reader.Required<std::string>("launch"));
  ASSAY_TRY_VOID(reader.Finish());
  return sister;
}

// The library's op of that name, where it has one. Names alone: Library::Find takes paths as well.
Result<ops::OpSpec> FromLibrary(const ops::Library& library, const std::string& name) {
  for (const ops::Library::Entry& entry : library.List()) {
    if (entry.name == name) return ops::LoadOp(entry.folder);
  }
  return Fail(ErrorKind::kUsage, "there is no such op in the library", name);
}

Result<ops::OpSpec> OpOfRun(const std::string& name, const std::string& folder,
                            const std::string& digest, const ops::Library& library,
                            const std::string& given) {
  if (given.empty()) {
    Result<ops::OpSpec> own = FromLibrary(library, name);
    if (own && own->digest == digest) return own;
    const bool moved = own && own->folder.string() == folder;
    return Fail(ErrorKind::kUsage,
                moved ? "the op " + name + " has changed since the run began"
                      : "the run's op " + name + " is not the library's, but stood in " + folder,
                moved ? folder : "the op",
                moved ? "restore the op, or start a new run"
                      : "an op is what a kernel is judged by: name its folder, if you trust it");
  }
  ASSAY_TRY(ops::OpSpec op, library.Find(given));
  if (op.digest == digest) return op;
  return Fail(ErrorKind::kUsage,
              op.name == name ? "the op " + name + " has changed since the run began"
                              : "cannot be changed: the run is about the op " + name,
              "the op", "restore the op, or start a new run");
}

}  // namespace

bool IsOfLibrary(const ops::Library& library, const ops::OpSpec& op) {
  const Result<ops::OpSpec> own = FromLibrary(library, op.name);
  return own && own->digest == op.digest;
}

std::string_view Name(campaign::Effort effort) {
  return kEfforts[static_cast<std::size_t>(effort)];
}

std::optional<campaign::Effort> ParseEffort(std::string_view name) {
  for (std::size_t i = 0; i < kEfforts.size(); ++i) {
    if (kEfforts[i] == name) return static_cast<campaign::Effort>(i);
  }
  return std::nullopt;
}

Json RequestToJson(const GenerateRequest& request,
                   const std::map<std::string, std::string>& versions,
                   const std::string& prompts_digest) {
  Json binding = Json::object();
  for (const auto& [variable, dtype] : request.instance.binding) binding[variable] = Name(dtype);
  const models::ModelSpec& model = request.model;
  Json options = {{"base_url", models::PublicUrl(model.base_url)},
                  {"key_file", model.key_file.string()},
                  {"exec_variables", model.exec_variables},
                  {"max_output_tokens", model.max_output_tokens}};
  if (model.temperature) options["temperature"] = *model.temperature;
  options["connect_seconds"] = model.connect_seconds;
  options["idle_seconds"] = model.idle_seconds;
  options["total_seconds"] = model.total_seconds;
  options["tries"] = model.tries;
  const StrategyOptions& strategy = request.strategy;
  Json json = {{"schema", "assay.run/1"},
               {"instance", request.instance.Id()},
               {"op",
                {{"name", request.instance.op.name},
                 {"folder", request.instance.op.folder.string()},
                 {"sha256", request.instance.op.digest}}},
               {"binding", std::move(binding)},
               {"arch", request.instance.arch},
               {"model", model.spec},
               {"model_options", std::move(options)},
               {"settings",
                {{"strategy", Name(strategy.kind)},
                 {"attempts", strategy.attempts},
                 {"samples", strategy.samples},
                 {"width", strategy.width},
                 {"depth", strategy.depth},
                 {"stagnation", strategy.stagnation},
                 {"optimize", strategy.optimize},
                 {"feedback", Name(request.feedback)},
                 {"effort", Name(request.effort)},
                 {"engine", request.engine},
                 {"seed", request.seed}}},
               {"budget",
                {{"usd", request.budget.usd},
                 {"tokens", request.budget.tokens},
                 {"seconds", request.budget.seconds},
                 {"prices", request.budget.prices.string()}}},
               {"unsafe_no_jail", request.unsafe_no_jail},
               {"prompts", prompts_digest},
               {"versions", versions}};
  if (request.sister) {
    json["sister"] = {{"instance", request.sister->instance},
                      {"kernel", request.sister->candidate.kernel},
                      {"launch", request.sister->candidate.launch}};
  }
  return json;
}

Result<GenerateRequest> RequestFromJson(const Json& json, const std::string& place,
                                        const ops::Library& library, const std::string& op) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.run/1") {
    return Fail(ErrorKind::kMalformedInput, "the schema is '" + schema + "'",
                reader.PlaceOf("schema"), "continue the run with the version that began it");
  }
  GenerateRequest request;
  ASSAY_TRY(const Json op_json, reader.Required<Json>("op"));
  ASSAY_TRY(ObjectReader op_reader, ObjectReader::Of(op_json, reader.PlaceOf("op")));
  ASSAY_TRY(const std::string name, op_reader.Required<std::string>("name"));
  ASSAY_TRY(const std::string folder, op_reader.Required<std::string>("folder"));
  ASSAY_TRY(const std::string digest, op_reader.Required<std::string>("sha256"));
  ASSAY_TRY_VOID(op_reader.Finish());
  ASSAY_TRY(ops::OpSpec found, OpOfRun(name, folder, digest, library, op));
  ASSAY_TRY(const Json binding, reader.Required<Json>("binding"));
  if (!binding.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("binding"));
  std::map<std::string, std::string> choices;
  for (const auto& [variable, dtype] : binding.items()) {
    ASSAY_TRY(choices[variable],
              json_detail::Convert<std::string>(dtype, reader.PlaceOf("binding") + "/" + variable));
  }
  ASSAY_TRY(const std::string arch, reader.Required<std::string>("arch"));
  ASSAY_TRY(request.instance, ops::MakeInstance(std::move(found), choices, arch));
  ASSAY_TRY(request.model.spec, reader.Required<std::string>("model"));
  ASSAY_TRY(const Json model, reader.Required<Json>("model_options"));
  ASSAY_TRY_VOID(ReadModel(model, reader.PlaceOf("model_options"), request.model));
  ASSAY_TRY(const Json settings, reader.Required<Json>("settings"));
  ASSAY_TRY_VOID(ReadSettings(settings, reader.PlaceOf("settings"), request));
  ASSAY_TRY(const Json budget, reader.Required<Json>("budget"));
  ASSAY_TRY_VOID(ReadBudget(budget, reader.PlaceOf("budget"), request.budget));
  ASSAY_TRY(request.unsafe_no_jail, reader.Required<bool>("unsafe_no_jail"));
  if (reader.Has("sister")) {
    ASSAY_TRY(const Json sister, reader.Required<Json>("sister"));
    ASSAY_TRY(request.sister, SisterFromJson(sister, reader.PlaceOf("sister")));
  }
  for (const char* const key : {"instance", "prompts", "versions"}) reader.Ignore(key);
  ASSAY_TRY_VOID(reader.Finish());
  return request;
}

}  // namespace assay::loop

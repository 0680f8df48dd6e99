#include "cli/service_models.h"

#include <sys/stat.h>

#include <cstdlib>

#include "ops/names.h"

namespace assay::cli {
namespace {

constexpr std::string_view kSchema = "assay.serve_models/1";

Result<std::uint32_t> Count(ObjectReader& reader, const char* key, std::uint32_t fallback) {
  ASSAY_TRY(const std::uint64_t value, reader.Optional<std::uint64_t>(key, fallback));
  if (value == 0 || value > 1u << 20)
    return Fail(ErrorKind::kUsage, "must be between 1 and 1048576", reader.PlaceOf(key));
  return static_cast<std::uint32_t>(value);
}

Result<ServiceModel> ModelFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ServiceModel model;
  models::ModelSpec& spec = model.spec;
  ASSAY_TRY(spec.spec, reader.Required<std::string>("model"));
  ASSAY_TRY(spec.base_url, reader.Optional<std::string>("base_url", ""));
  ASSAY_TRY(spec.key_file, reader.Optional<std::string>("key_file", ""));
  ASSAY_TRY(spec.exec_variables, reader.Optional<std::vector<std::string>>("exec_env", {}));
  if (reader.Has("temperature")) {
    ASSAY_TRY(spec.temperature, reader.Required<double>("temperature"));
    if (!(*spec.temperature >= 0 && *spec.temperature <= 2))
      return Fail(ErrorKind::kUsage, "must be between 0 and 2", reader.PlaceOf("temperature"));
  }
  ASSAY_TRY(spec.max_output_tokens, Count(reader, "max_output_tokens", spec.max_output_tokens));
  ASSAY_TRY(spec.connect_seconds, Count(reader, "connect_seconds", spec.connect_seconds));
  ASSAY_TRY(spec.idle_seconds, Count(reader, "idle_seconds", spec.idle_seconds));
  ASSAY_TRY(spec.total_seconds, Count(reader, "total_seconds", spec.total_seconds));
  ASSAY_TRY(spec.tries, Count(reader, "tries", spec.tries));
  ASSAY_TRY(const std::uint32_t attempts, Count(reader, "attempts", 8));
  if (attempts > 10'000)
    return Fail(ErrorKind::kUsage, "must be between 1 and 10000", reader.PlaceOf("attempts"));
  model.attempts = static_cast<int>(attempts);
  ASSAY_TRY(model.budget.usd, reader.Optional<double>("usd", 0.0));
  if (!(model.budget.usd >= 0 && model.budget.usd <= 1e9))
    return Fail(ErrorKind::kUsage, "must be at least 0", reader.PlaceOf("usd"));
  ASSAY_TRY(model.budget.tokens, reader.Optional<std::uint64_t>("tokens", 0));
  ASSAY_TRY(model.budget.seconds, reader.Optional<std::uint64_t>("seconds", 0));
  ASSAY_TRY(model.budget.prices, reader.Optional<std::string>("prices", ""));
  if (reader.Has("clients")) {
    ASSAY_TRY(const auto names, reader.Required<std::vector<std::string>>("clients"));
    model.clients = std::set<std::string>(names.begin(), names.end());
  }
  ASSAY_TRY_VOID(reader.Finish());
  return model;
}

std::optional<std::string> Variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

Result<ServiceModels> ServiceModels::Load(const Path& file, Clock& clock) {
  struct stat info{};
  if (::stat(file.c_str(), &info) == 0 && (info.st_mode & 022) != 0) {
    return Fail(ErrorKind::kUsage, "others than its owner can write it, and it names programs",
                file.string(), "chmod go-w " + file.string());
  }
  ASSAY_TRY(const Json json, ReadJsonFile(file.string()));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, file.string()));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != kSchema) {
    return Fail(ErrorKind::kMalformedInput, "schema '" + schema + "' is not known",
                reader.PlaceOf("schema"), "write " + std::string(kSchema));
  }
  ASSAY_TRY(const Json rows, reader.Required<Json>("models"));
  ASSAY_TRY_VOID(reader.Finish());
  if (!rows.is_object() || rows.empty())
    return Fail(ErrorKind::kMalformedInput, "must name a model or more", reader.PlaceOf("models"));
  ServiceModels models;
  for (const auto& [name, row] : rows.items()) {
    const std::string place = reader.PlaceOf("models") + "/" + name;
    if (!ops::IsIdentifier(name))
      return Fail(ErrorKind::kUsage, "clients call a model by a plain name", place);
    ASSAY_TRY(ServiceModel model, ModelFromJson(row, place));
    ASSAY_TRY(
        const auto made,
        models::MakeModel(model.spec, {.clock = clock, .variable = &Variable, .rng = Rng(0)}));
    models.models_.emplace(name, std::move(model));
  }
  return models;
}

const ServiceModel* ServiceModels::Find(const std::string& name, const std::string& client) const {
  const auto found = models_.find(name);
  if (found == models_.end()) return nullptr;
  const ServiceModel& model = found->second;
  return !model.clients || model.clients->contains(client) ? &model : nullptr;
}

Json ServiceModels::ShownTo(const std::string& client) const {
  Json shown = Json::object();
  for (const auto& [name, model] : models_) {
    if (Find(name, client) == nullptr) continue;
    Json row = {{"attempts", model.attempts}};
    if (model.budget.tokens > 0) row["tokens"] = model.budget.tokens;
    if (model.budget.usd > 0) row["usd"] = model.budget.usd;
    if (model.budget.seconds > 0) row["seconds"] = model.budget.seconds;
    shown[name] = std::move(row);
  }
  return shown;
}

}  // namespace assay::cli

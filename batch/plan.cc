#include "batch/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/loop/budget.h"
#include "agent/loop/request_json.h"
#include "agent/models/secret.h"

namespace assay::batch {
namespace {

constexpr std::string_view kPlanSchema = "assay.batch_plan/1";
constexpr std::size_t kMostInstances = 100'000;

using Models = std::map<std::string, models::ModelSpec>;

struct Dollars {
  static Json Write(double value) { return value; }
  static Result<double> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const double value, ReadJson<double>(json, place));
    if (value >= 0) return value;
    return Fail(ErrorKind::kMalformedInput, "must be at least 0", place);
  }
};

/// A word that ends up on a command line of a cluster: nothing in it is more than a word.
struct PlainWord {
  static Json Write(const std::string& word) { return word; }
  static Result<std::string> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(std::string word, ReadJson<std::string>(json, place));
    const bool plain = std::ranges::all_of(word, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.' || c == ',';
    });
    if (plain && !word.starts_with("-")) return word;
    return Fail(ErrorKind::kMalformedInput, "'" + word + "' is no name", place);
  }
};

template <std::int64_t kLeast, std::int64_t kMost>
using Count = Between<int, kLeast, kMost>;
template <std::int64_t kMost>
using UpTo = Between<std::uint32_t, 0, kMost>;

// What a file does not say stays as it is: the command line's words, or the plan's defaults.
constexpr auto BudgetRows() {
  using B = loop::Budget;
  return Nested<Presence::kOptional>("budget", Optional<Dollars>("usd", &B::usd),
                                     Optional("tokens", &B::tokens),
                                     Optional("seconds", &B::seconds));
}
constexpr auto WholeRows() {
  using L = models::RequestLimits;
  using R = Resources;
  return std::tuple(
      Within(&Plan::budget, BudgetRows()),
      Within(&Plan::budget, Optional("prices", &loop::Budget::prices)),
      Optional("share", &Plan::share),
      Within(&Plan::limits,
             Nested<Presence::kOptional>("limits", Optional<UpTo<10'000>>("requests", &L::at_once),
                                         Optional("requests_per_minute", &L::requests_per_minute),
                                         Optional("tokens_per_minute", &L::tokens_per_minute))),
      Within(&Plan::resources, Nested<Presence::kOptional>(
                                   "resources", Optional<PlainWord>("partition", &R::partition),
                                   Optional<PlainWord>("account", &R::account),
                                   Optional<UpTo<100'000>>("cpus", &R::cpus),
                                   Optional<PlainWord>("memory", &R::memory),
                                   Optional<UpTo<10'000'000>>("minutes", &R::minutes),
                                   Optional<UpTo<1000>>("gpus", &R::gpus))));
}
constexpr auto SettingsRows() {
  using S = Settings;
  using O = loop::StrategyOptions;
  return std::tuple(Optional("archs", &S::archs),
                    Optional<Count<-1'000'000, 1'000'000>>("priority", &S::priority),
                    Within(&S::strategy, Optional<Count<1, 100'000>>("attempts", &O::attempts)),
                    Within(&S::strategy, Optional<Count<1, 1000>>("samples", &O::samples)),
                    Within(&S::strategy, Optional<Count<1, 1000>>("width", &O::width)),
                    Within(&S::strategy, Optional<Count<0, 1000>>("depth", &O::depth)),
                    Within(&S::strategy, Optional<Count<1, 1000>>("stagnation", &O::stagnation)),
                    Within(&S::strategy, Optional<loop::StrategyWords>("strategy", &O::kind)),
                    Within(&S::strategy, Optional("optimize", &O::optimize)),
                    Optional<loop::FeedbackWords>("feedback", &S::feedback),
                    Optional<loop::EffortWords>("effort", &S::effort), Optional("seed", &S::seed),
                    Within(&S::budget, BudgetRows()));
}
constexpr auto ModelRows() {
  using M = models::ModelSpec;
  return std::tuple(
      Required("model", &M::spec), Optional("base_url", &M::base_url),
      Optional("key_file", &M::key_file), Optional("exec_variables", &M::exec_variables),
      Optional<Between<std::uint32_t, 256, 1 << 20>>("max_output_tokens", &M::max_output_tokens),
      Sparse("temperature", &M::temperature));
}

// Of the command line's model stays how it is asked, not where: no key of one goes to another.
Result<models::ModelSpec> ReadModel(const Json& json, const std::string& place,
                                    models::ModelSpec model) {
  model.base_url.clear();
  model.key_file.clear();
  model.exec_variables.clear();
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY_VOID(ReadRows(ModelRows(), reader, model));
  ASSAY_TRY_VOID(reader.Finish());
  ASSAY_TRY_VOID(models::ParseModelSpec(model.spec));
  return model;
}

Result<Models> ReadModels(ObjectReader& plan, const models::ModelSpec& base) {
  Models known;
  if (!plan.Has("models")) return known;
  ASSAY_TRY(const Json json, plan.Required<Json>("models"));
  if (!json.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object", plan.PlaceOf("models"));
  for (const auto& [name, value] : json.items()) {
    ASSAY_TRY(known[name], ReadModel(value, plan.PlaceOf("models") + "/" + name, base));
  }
  return known;
}

// A name of the plan's, or what --model takes.
Result<models::ModelSpec> ModelOf(const std::string& word, const std::string& place,
                                  const Models& known, models::ModelSpec base) {
  if (const auto found = known.find(word); found != known.end()) return found->second;
  base.spec = word;
  if (models::ParseModelSpec(word)) return base;
  std::vector<std::string> names;
  for (const auto& [name, model] : known) names.push_back(name);
  const std::string nearest = Nearest(word, names);
  return Fail(ErrorKind::kMalformedInput, "'" + word + "' names no model", place,
              (nearest.empty() ? "" : "did you mean '" + nearest + "'? ") +
                  "write a name of \"models\", or " + models::ProviderChoices());
}

Status ReadDtypes(ObjectReader& reader, Settings& settings) {
  if (!reader.Has("dtypes")) return {};
  ASSAY_TRY(const Json json, reader.Required<Json>("dtypes"));
  const std::string place = reader.PlaceOf("dtypes");
  if (json == "all" || json == "default") {
    settings.dtypes = json == "all" ? DtypeChoice::kAll : DtypeChoice::kDefault;
    return {};
  }
  if (!json.is_array() || json.empty()) {
    return Fail(ErrorKind::kMalformedInput, "must be \"all\", \"default\" or a list of bindings",
                place, R"(e.g. [{"T": "bf16"}, {"T": "f16"}])");
  }
  settings.dtypes = DtypeChoice::kListed;
  ASSAY_TRY(settings.bindings, ReadJson<decltype(settings.bindings)>(json, place));
  return {};
}

Result<Settings> ReadSettings(ObjectReader& reader, Settings settings, const Models& known) {
  // Known whether they are there or not: what is misspelled may be meant for one of them.
  for (const char* const key : {"model", "dtypes"}) reader.Ignore(key);
  if (reader.Has("model")) {
    ASSAY_TRY(const std::string word, reader.Required<std::string>("model"));
    ASSAY_TRY(settings.model, ModelOf(word, reader.PlaceOf("model"), known, settings.model));
  }
  ASSAY_TRY_VOID(ReadDtypes(reader, settings));
  ASSAY_TRY_VOID(ReadRows(SettingsRows(), reader, settings));
  if (settings.archs.empty())
    return Fail(ErrorKind::kMalformedInput, "names no target", reader.PlaceOf("archs"));
  return settings;
}

// Every choice of dtypes, the first variable's slowest.
std::vector<std::map<std::string, std::string>> AllBindings(const ops::OpSpec& op) {
  std::vector<std::map<std::string, std::string>> bindings(1);
  for (const auto& [variable, dtypes] : op.dtypes) {
    std::vector<std::map<std::string, std::string>> more;
    for (const auto& binding : bindings) {
      for (const DType dtype : dtypes) {
        more.push_back(binding);
        more.back()[variable] = Name(dtype);
      }
    }
    bindings = std::move(more);
  }
  return bindings;
}

bool Repeats(const models::ModelSpec& asked, const models::ModelSpec& said) {
  const std::string address = models::PublicUrl(asked.base_url);
  const bool variables = std::ranges::all_of(asked.exec_variables, [&](const std::string& name) {
    return std::ranges::find(said.exec_variables, name) != said.exec_variables.end();
  });
  return asked.spec == said.spec && variables &&
         (asked.base_url.empty() || address == models::PublicUrl(said.base_url)) &&
         (asked.key_file.empty() || asked.key_file == said.key_file);
}

}  // namespace

Status AddOp(Plan& plan, const ops::Library& library, const std::string& name,
             const Settings& settings) {
  ASSAY_TRY(const ops::OpSpec op, library.Find(name));
  models::ModelSpec model = settings.model;
  if (model.spec.empty()) {
    if (!op.transcript) {
      return Fail(ErrorKind::kUsage,
                  "no model was given, and the op '" + op.name + "' ships no transcript", "--model",
                  "choose " + models::ProviderChoices());
    }
    model.spec = "replay/" + op.transcript->string();
  }
  const auto bindings = settings.dtypes == DtypeChoice::kAll ? AllBindings(op)
                        : settings.dtypes == DtypeChoice::kListed
                            ? settings.bindings
                            : std::vector<std::map<std::string, std::string>>(1);
  for (const auto& binding : bindings) {
    for (const std::string& arch : settings.archs) {
      Task task{.request = {}, .priority = settings.priority};
      ASSAY_TRY(task.request.instance, ops::MakeInstance(op, binding, arch));
      task.request.model = model;
      task.request.strategy = settings.strategy;
      task.request.budget = settings.budget;
      task.request.budget.prices = plan.budget.prices;
      task.request.feedback = settings.feedback;
      task.request.effort = settings.effort;
      task.request.engine = settings.engine;
      task.request.seed = settings.seed;
      task.request.unsafe_no_jail = settings.unsafe_no_jail;
      if (plan.tasks.size() >= kMostInstances)
        return Fail(ErrorKind::kUsage, "the plan has more than 100000 instances", name);
      plan.tasks.push_back(std::move(task));
    }
  }
  return {};
}

Result<Plan> ReadPlan(const Json& json, const std::string& place, const ops::Library& library,
                      const Settings& base, Plan plan) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != kPlanSchema) {
    return Fail(ErrorKind::kMalformedInput, "the schema is '" + schema + "'",
                reader.PlaceOf("schema"), "this version reads " + std::string(kPlanSchema));
  }
  for (const char* const key : {"models", "defaults"}) reader.Ignore(key);
  ASSAY_TRY_VOID(ReadRows(WholeRows(), reader, plan));
  ASSAY_TRY(const Models known, ReadModels(reader, base.model));
  Settings defaults = base;
  if (reader.Has("defaults")) {
    ASSAY_TRY(const Json object, reader.Required<Json>("defaults"));
    ASSAY_TRY(ObjectReader at, ObjectReader::Of(object, reader.PlaceOf("defaults")));
    ASSAY_TRY(defaults, ReadSettings(at, base, known));
    ASSAY_TRY_VOID(at.Finish());
  }
  ASSAY_TRY(const Json ops, reader.Required<Json>("ops"));
  ASSAY_TRY_VOID(reader.Finish());
  if (!ops.is_array())
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("ops"));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::string at = reader.PlaceOf("ops") + "/" + std::to_string(i);
    ASSAY_TRY(ObjectReader op, ObjectReader::Of(ops[i], at));
    ASSAY_TRY(const std::string name, op.Required<std::string>("op"));
    ASSAY_TRY(const Settings settings, ReadSettings(op, defaults, known));
    ASSAY_TRY_VOID(op.Finish());
    Status added = AddOp(plan, library, name, settings);
    if (!added) return std::unexpected(WithPlace(std::move(added.error()), at));
  }
  return plan;
}

Status CheckPlan(const Plan& plan) {
  if (plan.tasks.empty()) {
    return Fail(ErrorKind::kUsage, "the plan has no instance", "assay batch",
                "name ops, or give --all or --plan; assay ops list shows the ops");
  }
  std::set<std::string> ids;
  for (const Task& task : plan.tasks) {
    if (!ids.insert(task.id()).second) {
      return Fail(ErrorKind::kUsage, "the instance is planned twice", task.id(),
                  "name it once; a batch makes one kernel an instance");
    }
    loop::Budget either = task.request.budget;
    either.usd = std::max(either.usd, plan.budget.usd);
    ASSAY_TRY_VOID(loop::Meter::Make(either, task.request.model.spec));
  }
  return {};
}

Json PlanToJson(const Plan& plan, const std::vector<std::string>& keys,
                const std::map<std::string, std::string>& versions,
                const std::string& prompts_digest) {
  Json instances = Json::array();
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    instances.push_back({{"instance", task.id()},
                         {"key", keys[i]},
                         {"priority", task.priority},
                         {"request", loop::RequestToJson(task.request, versions, prompts_digest)}});
  }
  Json json = {{"instances", std::move(instances)}};
  WriteRows(WholeRows(), plan, json);
  return json;
}

Result<Plan> PlanFromJson(const Json& json, const std::string& place, const ops::Library& library,
                          const std::vector<std::string>& given) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  Plan plan;
  ASSAY_TRY_VOID(ReadRows(WholeRows(), reader, plan));
  ASSAY_TRY(const Json instances, reader.Required<Json>("instances"));
  if (!instances.is_array())
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("instances"));
  // An op of a folder has to be named again.
  std::map<std::string, std::string> named;
  for (const std::string& op : given) {
    ASSAY_TRY(const ops::OpSpec spec, library.Find(op));
    named[spec.name] = op;
  }
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const std::string at = reader.PlaceOf("instances") + "/" + std::to_string(i);
    ASSAY_TRY(ObjectReader instance, ObjectReader::Of(instances[i], at));
    for (const char* const key : {"instance", "key"}) instance.Ignore(key);
    ASSAY_TRY(const std::int64_t priority, instance.Required<std::int64_t>("priority"));
    ASSAY_TRY(const Json request, instance.Required<Json>("request"));
    ASSAY_TRY_VOID(instance.Finish());
    const Json op = request.is_object() ? request.value("op", Json::object()) : Json::object();
    const auto known = named.find(op.is_object() && op.contains("name") && op["name"].is_string()
                                      ? op["name"].get<std::string>()
                                      : std::string());
    Task task{.request = {}, .priority = static_cast<int>(priority)};
    ASSAY_TRY(task.request, loop::RequestFromJson(request, at + "/request", library,
                                                  known == named.end() ? "" : known->second));
    task.request.budget.prices = plan.budget.prices;
    plan.tasks.push_back(std::move(task));
  }
  return plan;
}

Status TrustPlan(Plan& plan, const Said& said) {
  constexpr const char* kWhy = "; a batch's folder may come from anybody";
  for (Task& task : plan.tasks) {
    models::ModelSpec& model = task.request.model;
    const bool replay = model.spec.starts_with("replay/") && model.base_url.empty() &&
                        model.key_file.empty() && model.exec_variables.empty();
    const auto repeated = std::ranges::find_if(
        said.models, [&](const models::ModelSpec& each) { return Repeats(model, each); });
    if (repeated != said.models.end()) {
      model.base_url = repeated->base_url;
    } else if (!replay) {
      return Fail(ErrorKind::kUsage,
                  "the batch asks to use " + model.spec +
                      (model.base_url.empty() ? "" : " at " + models::PublicUrl(model.base_url)) +
                      kWhy,
                  task.id(),
                  "if that is what you want, say it again: the --plan that it began with, or "
                  "--model, --base-url, --key-file and --exec-env as they were");
    }
    if (task.request.unsafe_no_jail && !said.unsafe_no_jail) {
      return Fail(ErrorKind::kUsage,
                  std::string("the batch asks to run kernels without a jail") + kWhy, task.id(),
                  "if that is what you want, say it again: --unsafe-no-jail");
    }
  }
  if (!plan.budget.prices.empty() && plan.budget.prices != said.prices) {
    return Fail(ErrorKind::kUsage,
                "the batch asks to read prices from " + plan.budget.prices.string() + kWhy,
                "--prices", "say it again: --prices " + plan.budget.prices.string());
  }
  return {};
}

}  // namespace assay::batch

#include "agent/loop/request_json.h"

#include "agent/models/secret.h"
#include "runs/judgement.h"

namespace assay::loop {
namespace {

constexpr std::string_view kSchema = "assay.run/1";

/// A base URL without user, password and query.
struct PublicUrl {
  static Json Write(const std::string& url) { return models::PublicUrl(url); }
  static Result<std::string> Read(const Json& json, const std::string& place) {
    return ReadJson<std::string>(json, place);
  }
};

constexpr auto RequestRows() {
  using R = GenerateRequest;
  using B = Budget;
  using M = models::ModelSpec;
  using S = StrategyOptions;
  using Count = Between<int, 0, 1'000'000'000>;
  return std::tuple(
      Within(&R::model, Required("model", &M::spec)),
      Within(
          &R::model,
          Nested("model_options", Required<PublicUrl>("base_url", &M::base_url),
                 Required("key_file", &M::key_file), Optional("exec_variables", &M::exec_variables),
                 Required("max_output_tokens", &M::max_output_tokens),
                 Sparse("temperature", &M::temperature),
                 Required("connect_seconds", &M::connect_seconds),
                 Required("idle_seconds", &M::idle_seconds),
                 Required("total_seconds", &M::total_seconds), Required("tries", &M::tries))),
      Nested("settings", Within(&R::strategy, Required<StrategyWords>("strategy", &S::kind)),
             Within(&R::strategy, Required<Count>("attempts", &S::attempts)),
             Within(&R::strategy, Required<Count>("samples", &S::samples)),
             Within(&R::strategy, Required<Count>("width", &S::width)),
             Within(&R::strategy, Required<Count>("depth", &S::depth)),
             Within(&R::strategy, Required<Count>("stagnation", &S::stagnation)),
             Within(&R::strategy, Required("optimize", &S::optimize)),
             Required<FeedbackWords>("feedback", &R::feedback),
             Required<EffortWords>("effort", &R::effort), Required("engine", &R::engine),
             Required("seed", &R::seed)),
      Within(&R::budget, Nested("budget", Required("usd", &B::usd), Required("tokens", &B::tokens),
                                Required("seconds", &B::seconds), Required("prices", &B::prices))),
      Required("unsafe_no_jail", &R::unsafe_no_jail));
}

/// What a record says of the instance, before it is looked up, and of what made it.
struct Record {
  std::string instance;
  std::string op;
  Path folder;
  std::string digest;
  std::map<std::string, std::string> binding;
  std::string arch;
  std::string prompts;
  std::map<std::string, std::string> versions;
};
constexpr auto InstanceRows() {
  using R = Record;
  return std::tuple(Required("instance", &R::instance),
                    Nested("op", Required("name", &R::op), Required("folder", &R::folder),
                           Required("sha256", &R::digest)),
                    Required("binding", &R::binding), Required("arch", &R::arch));
}
constexpr auto OriginRows() {
  return std::tuple(Required("prompts", &Record::prompts), Required("versions", &Record::versions));
}

constexpr auto SisterRow() {
  using S = prompts::Sister;
  using C = verdict::Candidate;
  return Nested("sister", Required("instance", &S::instance),
                Within(&S::candidate, Required("kernel", &C::kernel)),
                Within(&S::candidate, Required("launch", &C::launch)));
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
  const ops::OpSpec& op = request.instance.op;
  Record record{.instance = request.instance.Id(),
                .op = op.name,
                .folder = op.folder,
                .digest = op.digest,
                .binding = runs::BindingWords(request.instance),
                .arch = request.instance.arch,
                .prompts = prompts_digest,
                .versions = versions};
  Json json = {{"schema", kSchema}};
  WriteRows(InstanceRows(), record, json);
  WriteRows(RequestRows(), request, json);
  WriteRows(OriginRows(), record, json);
  if (request.sister) WriteRows(std::tuple(SisterRow()), *request.sister, json);
  return json;
}

Result<GenerateRequest> RequestFromJson(const Json& json, const std::string& place,
                                        const ops::Library& library, const std::string& op) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != kSchema) {
    return Fail(ErrorKind::kMalformedInput, "the schema is '" + schema + "'",
                reader.PlaceOf("schema"), "continue the run with the version that began it");
  }
  Record record;
  GenerateRequest request;
  ASSAY_TRY_VOID(ReadRows(InstanceRows(), reader, record));
  ASSAY_TRY(ops::OpSpec found,
            OpOfRun(record.op, record.folder.string(), record.digest, library, op));
  ASSAY_TRY(request.instance, ops::MakeInstance(std::move(found), record.binding, record.arch));
  ASSAY_TRY_VOID(ReadRows(RequestRows(), reader, request));
  if (reader.Has("sister"))
    ASSAY_TRY_VOID(ReadRows(std::tuple(SisterRow()), reader, request.sister.emplace()));
  for (const char* const key : {"prompts", "versions"}) reader.Ignore(key);
  ASSAY_TRY_VOID(reader.Finish());
  return request;
}

}  // namespace assay::loop

#include "validator/engine/jailed_compiler.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/text.h"

namespace assay::engine {
namespace {

constexpr std::size_t kMaxDiagnostics = 256;
/// Bytes of a worker's own words.
constexpr std::size_t kMostStatus = 1000;

Result<Diagnostic> ReadDiagnostic(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Diagnostic diagnostic;
  ASSAY_TRY(const std::string severity, reader.Required<std::string>("severity"));
  diagnostic.severity = severity == "error"     ? Diagnostic::Severity::kError
                        : severity == "warning" ? Diagnostic::Severity::kWarning
                                                : Diagnostic::Severity::kRemark;
  ASSAY_TRY(diagnostic.file, reader.Required<std::string>("file"));
  ASSAY_TRY(const std::uint64_t line, reader.Required<std::uint64_t>("line"));
  diagnostic.line = line <= UINT32_MAX ? static_cast<std::uint32_t>(line) : 0;
  ASSAY_TRY(const std::uint64_t column, reader.Optional<std::uint64_t>("column", 0));
  diagnostic.column = column <= UINT32_MAX ? static_cast<std::uint32_t>(column) : 0;
  ASSAY_TRY(diagnostic.message, reader.Required<std::string>("message"));
  ASSAY_TRY(diagnostic.context, reader.Optional<std::string>("context", {}));
  return diagnostic;
}

Result<Resources> ReadResources(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Resources resources;
  ASSAY_TRY(const std::uint64_t registers, reader.Required<std::uint64_t>("registers"));
  resources.registers = static_cast<std::uint32_t>(std::min<std::uint64_t>(registers, UINT32_MAX));
  ASSAY_TRY(resources.static_shared_bytes, reader.Optional<std::uint64_t>("shared_bytes", 0));
  ASSAY_TRY(resources.stack_bytes, reader.Optional<std::uint64_t>("stack_bytes", 0));
  ASSAY_TRY(resources.spill_store_bytes, reader.Optional<std::uint64_t>("spill_store_bytes", 0));
  ASSAY_TRY(resources.spill_load_bytes, reader.Optional<std::uint64_t>("spill_load_bytes", 0));
  return resources;
}

/// `program` of a reply: facts, or why there are none.
Status ReadProgram(const Json& json, const std::string& place, CompiledKernel& kernel) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(kernel.facts_fault, reader.Optional<std::string>("fault", ""));
  ASSAY_TRY(kernel.skeleton.ptx, reader.Optional<std::string>("skeleton", ""));
  ASSAY_TRY(kernel.skeleton.rounds, reader.Optional<bool>("skeleton_rounds", false));
  ASSAY_TRY(kernel.skeleton.in_shared, reader.Optional<bool>("skeleton_in_shared", true));
  ASSAY_TRY(kernel.skeleton.without,
            reader.Optional<std::vector<std::string>>("skeleton_without", {}));
  reader.Ignore("facts");
  ASSAY_TRY_VOID(reader.Finish());
  if (!json.contains("facts")) {
    if (kernel.facts_fault.empty()) kernel.facts_fault = "the compile worker did not say";
    return {};
  }
  ASSAY_TRY(facts::Facts facts, facts::FactsFromJson(json["facts"], place + "/facts"));
  kernel.facts = std::make_shared<const facts::Facts>(std::move(facts));
  return {};
}

Json RequestHeader(const CompileRequest& request) {
  Json headers = Json::object();
  for (const auto& [name, text] : request.headers) headers[name] = text;
  Json options = Json::array();
  for (const std::string& define : request.defines) options.push_back("-D" + define);
  for (const std::string& option : request.user_options) options.push_back(option);
  Json header = {{"action", "compile"},         {"file", request.file_name}, {"arch", request.arch},
                 {"cubin", request.want_cubin}, {"headers", headers},        {"options", options},
                 {"entries", request.entries}};
  if (!request.want_facts) header["facts"] = false;
  if (!request.pre_include.empty()) header["pre_include"] = request.pre_include;
  return header;
}

}  // namespace

JailedCompiler::JailedCompiler(sandbox::Workers& workers) : JailedCompiler(workers, Options{}) {}
JailedCompiler::JailedCompiler(sandbox::Workers& workers, Options options)
    : workers_(workers), options_(options), kept_(options.kept) {}

std::string DigestOf(const CompileRequest& request) {
  return Sha256Hex(CompactJson(RequestHeader(request)) + '\0' + request.source);
}

Result<CompileOutcome> ReadCompileReply(const Json& header, std::string_view payload) {
  const std::string place = "compile reply";
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(header, place));
  CompileOutcome outcome;
  ASSAY_TRY(const bool ok, reader.Required<bool>("ok"));
  outcome.kind = ok ? CompileOutcome::Kind::kCompiled : CompileOutcome::Kind::kRefused;
  ASSAY_TRY(outcome.kernel.log, reader.Optional<std::string>("log", ""));
  ASSAY_TRY(const Json diagnostics, reader.Optional<Json>("diagnostics", Json::array()));
  if (!diagnostics.is_array() || diagnostics.size() > kMaxDiagnostics) {
    return Fail(ErrorKind::kMalformedInput, "must be a short array", place + ": /diagnostics");
  }
  for (std::size_t i = 0; i < diagnostics.size(); ++i) {
    ASSAY_TRY(Diagnostic diagnostic,
              ReadDiagnostic(diagnostics[i], place + ": /diagnostics/" + std::to_string(i)));
    outcome.diagnostics.push_back(std::move(diagnostic));
  }
  ASSAY_TRY(const std::string status, reader.Optional<std::string>("status", ""));
  outcome.detail = OneLine(status, kMostStatus);
  if (!ok) return outcome;
  ASSAY_TRY(const std::string version, reader.Required<std::string>("nvrtc"));
  outcome.kernel.compiler = "NVRTC " + version;
  ASSAY_TRY(const std::uint64_t ptx_bytes, reader.Required<std::uint64_t>("ptx_bytes"));
  ASSAY_TRY(const std::uint64_t cubin_bytes, reader.Required<std::uint64_t>("cubin_bytes"));
  if (ptx_bytes > payload.size() || cubin_bytes != payload.size() - ptx_bytes) {
    return Fail(ErrorKind::kMalformedInput, "the sizes do not match the payload",
                place + ": /ptx_bytes");
  }
  outcome.kernel.ptx = std::string(payload.substr(0, ptx_bytes));
  // NVRTC counts the terminating NUL.
  while (!outcome.kernel.ptx.empty() && outcome.kernel.ptx.back() == '\0')
    outcome.kernel.ptx.pop_back();
  outcome.kernel.cubin = std::string(payload.substr(ptx_bytes));
  ASSAY_TRY(const Json lowered, reader.Required<Json>("lowered"));
  ASSAY_TRY(const Json resources, reader.Optional<Json>("resources", Json::object()));
  if (!lowered.is_object() || !resources.is_object()) {
    return Fail(ErrorKind::kMalformedInput, "must be an object", place + ": /lowered");
  }
  for (const auto& [entry, mangled] : lowered.items()) {
    ASSAY_TRY(outcome.kernel.lowered[entry],
              json_detail::Convert<std::string>(mangled, place + ": /lowered/" + entry));
  }
  for (const auto& [mangled, numbers] : resources.items()) {
    ASSAY_TRY(outcome.kernel.resources[mangled],
              ReadResources(numbers, place + ": /resources/" + mangled));
  }
  if (!header.contains("program"))
    return Fail(ErrorKind::kMalformedInput, "is missing", place + ": /program");
  ASSAY_TRY_VOID(ReadProgram(header["program"], place + ": /program", outcome.kernel));
  outcome.kernel.digest = Sha256Hex(outcome.kernel.ptx);
  return outcome;
}

Result<CompileOutcome> JailedCompiler::Ask(const CompileRequest& request, const CompileStore* store,
                                           const std::string& digest) {
  sandbox::Request ask;
  ask.role = RoleOf(request.trust);
  ask.header = RequestHeader(request);
  ask.payload = request.source;
  const auto deadline =
      request.trust == Trust::kReference ? options_.reference_deadline : options_.deadline;
  ASSAY_TRY(const sandbox::Reply reply,
            workers_.Call(sandbox::WorkerKind::kCompile, ask, deadline));
  CompileOutcome outcome;
  outcome.detail = reply.detail;
  switch (reply.outcome) {
    case sandbox::CallOutcome::kTimedOut:
      outcome.kind = CompileOutcome::Kind::kTimedOut;
      return outcome;
    case sandbox::CallOutcome::kCrashed:
    case sandbox::CallOutcome::kOverLimit:
    case sandbox::CallOutcome::kProtocol:
      outcome.kind = CompileOutcome::Kind::kCrashed;
      return outcome;
    case sandbox::CallOutcome::kReplied:
      break;
  }
  auto read = ReadCompileReply(reply.message.header, reply.message.payload);
  if (read) {
    if (store != nullptr && read->kind == CompileOutcome::Kind::kCompiled)
      store->Keep(digest, reply.message.header, reply.message.payload);
    return read;
  }
  outcome.kind = CompileOutcome::Kind::kCrashed;
  outcome.detail = "the worker's reply cannot be read: " + ToString(read.error());
  return outcome;
}

Result<CompileOutcome> JailedCompiler::Make(const CompileRequest& request,
                                            const std::string& digest) {
  const CompileStore* const store =
      request.trust == Trust::kReference ? options_.store.get() : nullptr;
  if (store != nullptr) {
    if (const auto stored = store->Find(digest)) {
      auto outcome = ReadCompileReply(stored->header, stored->payload);
      if (outcome && outcome->kind == CompileOutcome::Kind::kCompiled) return outcome;
    }
  }
  return Ask(request, store, digest);
}

/// Meanwhile nobody else compiles the same.
class JailedCompiler::Turn {
 public:
  Turn(JailedCompiler& compiler, std::string digest)
      : compiler_(compiler), digest_(std::move(digest)) {
    compiler_.making_.insert(digest_);
  }
  ~Turn() {
    {
      const std::lock_guard lock(compiler_.mutex_);
      compiler_.making_.erase(digest_);
    }
    compiler_.made_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  JailedCompiler& compiler_;
  std::string digest_;
};

Result<CompileOutcome> JailedCompiler::Compile(const CompileRequest& request) {
  const std::string digest = DigestOf(request);
  std::unique_lock lock(mutex_);
  made_.wait(lock, [&] { return !making_.contains(digest); });
  // Who waited may still find nothing: not every outcome is kept.
  if (const CompileOutcome* const known = kept_.Find(digest)) return *known;
  const Turn turn(*this, digest);
  lock.unlock();
  ASSAY_TRY(CompileOutcome outcome, Make(request, digest));
  const bool repeatable = outcome.kind == CompileOutcome::Kind::kCompiled ||
                          outcome.kind == CompileOutcome::Kind::kRefused;
  if (repeatable) {
    const std::lock_guard keeping(mutex_);
    kept_.Keep(digest, outcome);
  }
  return outcome;
}

}  // namespace assay::engine

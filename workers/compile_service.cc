#include "workers/compile_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "base/json.h"
#include "validator/ptx/facts/compute.h"
#include "validator/ptx/facts/skeleton.h"
#include "validator/ptx/parser.h"
#include "workers/compile_log.h"
#include "workers/cubin.h"
#include "workers/entry_names.h"
#include "workers/source_check.h"

namespace assay::workers {
namespace {

using sandbox::Answer;
using sandbox::Message;

constexpr std::size_t kMaxSourceBytes = 8u << 20;
constexpr std::size_t kMaxEntries = 64;
constexpr std::size_t kMaxEntryBytes = 512;
/// Static shared memory of one block, on every architecture so far (CUDA C++ Programming Guide,
/// compute capabilities).
constexpr std::uint64_t kStaticSharedLimit = 48u << 10;

/// Options that NVRTC may get: by exact text, or up to a value.
constexpr std::array<std::string_view, 16> kExactOptions{"-lineinfo",
                                                         "--generate-line-info",
                                                         "-G",
                                                         "--device-debug",
                                                         "-use_fast_math",
                                                         "--use_fast_math",
                                                         "--extra-device-vectorization",
                                                         "-extra-device-vectorization",
                                                         "--device-int128",
                                                         "-device-int128",
                                                         "-w",
                                                         "--disable-warnings",
                                                         "-default-device",
                                                         "--device-as-default-execution-space",
                                                         "-restrict",
                                                         "--restrict"};
constexpr std::array<std::string_view, 22> kOptionPrefixes{"-D",
                                                           "--define-macro=",
                                                           "-U",
                                                           "--undefine-macro=",
                                                           "-std=",
                                                           "--std=",
                                                           "-ftz=",
                                                           "--ftz=",
                                                           "-prec-sqrt=",
                                                           "--prec-sqrt=",
                                                           "-prec-div=",
                                                           "--prec-div=",
                                                           "-fmad=",
                                                           "--fmad=",
                                                           "-maxrregcount=",
                                                           "--maxrregcount=",
                                                           "-dopt=",
                                                           "--dopt=",
                                                           "-diag-suppress=",
                                                           "--diag-suppress=",
                                                           "-diag-warn=",
                                                           "--diag-warn="};

struct CompileRequest {
  CompileJob job;
  std::string arch;
  bool cubin = true;
  bool facts = true;
  std::vector<std::string> entries;
};

bool IsArchitecture(std::string_view arch) {
  if (!arch.starts_with("sm_")) return false;
  arch.remove_prefix(3);
  const std::size_t digits = std::min(arch.find_first_not_of("0123456789"), arch.size());
  const std::string_view suffix = arch.substr(digits);
  return digits >= 2 && digits <= 3 && (suffix.empty() || suffix == "a" || suffix == "f");
}

/// Entries come from a candidate's plan: names and template arguments, nothing that could be a
/// statement or a directive.
bool IsEntry(const std::string& entry) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_:<>,*&()+-. ").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !entry.empty() && entry.size() <= kMaxEntryBytes && std::ranges::all_of(entry, allowed);
}

Result<CompileRequest> ReadRequest(Message message, const CompilerPaths& paths) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(message.header, "compile request"));
  CompileRequest request;
  reader.Ignore("action");
  ASSAY_TRY(request.job.file, reader.Optional<std::string>("file", "kernel.cu"));
  ASSAY_TRY(request.arch, reader.Required<std::string>("arch"));
  ASSAY_TRY(request.cubin, reader.Optional<bool>("cubin", true));
  ASSAY_TRY(request.facts, reader.Optional<bool>("facts", true));
  ASSAY_TRY(request.entries, reader.Optional<std::vector<std::string>>("entries", {}));
  ASSAY_TRY(const std::vector<std::string> options,
            reader.Optional<std::vector<std::string>>("options", {}));
  ASSAY_TRY(const Json headers, reader.Optional<Json>("headers", Json::object()));
  ASSAY_TRY(const std::string pre_include, reader.Optional<std::string>("pre_include", ""));
  ASSAY_TRY_VOID(reader.Finish());
  if (!headers.is_object()) {
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("headers"));
  }
  for (const auto& [name, text] : headers.items()) {
    if (!text.is_string()) {
      return Fail(ErrorKind::kMalformedInput, "must be a string",
                  reader.PlaceOf("headers") + "/" + name);
    }
    request.job.headers.push_back({name, text.get<std::string>()});
  }
  if (!IsArchitecture(request.arch)) {
    return Fail(ErrorKind::kUsage, fmt::format("'{}' is no architecture", request.arch),
                reader.PlaceOf("arch"), "name one such as sm_90");
  }
  if (message.payload.size() > kMaxSourceBytes || request.entries.size() > kMaxEntries) {
    return Fail(
        ErrorKind::kLimit,
        fmt::format("at most {} bytes of source and {} entries", kMaxSourceBytes, kMaxEntries),
        request.job.file);
  }
  request.job.source = std::move(message.payload);
  request.job.names = request.entries;
  auto& all = request.job.options;
  all = {(request.cubin ? "--gpu-architecture=" : "--gpu-architecture=compute_") +
             (request.cubin ? request.arch : request.arch.substr(3)),
         "-lineinfo", "--ptxas-options=-v"};
  if (!request.cubin) all.pop_back();
  const auto is_standard = [](const std::string& o) {
    return o.starts_with("-std=") || o.starts_with("--std=");
  };
  if (std::ranges::none_of(options, is_standard)) all.emplace_back("--std=c++17");
  for (const Path& include : paths.includes) all.push_back("-I" + include.string());
  if (!pre_include.empty()) {
    // Only what the request itself holds: never a file of this machine.
    if (!headers.contains(pre_include)) {
      return Fail(ErrorKind::kMalformedInput, "names no header of this request",
                  reader.PlaceOf("pre_include"));
    }
    all.push_back("--pre-include=" + pre_include);
  }
  for (const std::string& option : options) {
    if (!IsAllowedOption(option)) {
      return Fail(ErrorKind::kUsage, fmt::format("the compiler option '{}' is not allowed", option),
                  reader.PlaceOf("options"),
                  "allowed are macros (-D, -U), -std=, -maxrregcount= and arithmetic options");
    }
    if (std::ranges::find(all, option) == all.end()) all.push_back(option);
  }
  return request;
}

Json ToJson(const Diagnostic& diagnostic) {
  return {{"severity", diagnostic.severity}, {"file", diagnostic.file},
          {"line", diagnostic.line},         {"column", diagnostic.column},
          {"code", diagnostic.code},         {"message", diagnostic.message},
          {"excerpt", diagnostic.excerpt},   {"context", diagnostic.context}};
}

bool IsError(const Diagnostic& diagnostic) { return diagnostic.severity == "error"; }

Diagnostic ErrorAt(std::string file, std::uint32_t line, std::string message) {
  Diagnostic diagnostic;
  diagnostic.severity = "error";
  diagnostic.file = std::move(file);
  diagnostic.line = line;
  diagnostic.message = std::move(message);
  return diagnostic;
}

/// ptxas refuses some kernels without a word about why.
Diagnostic ExplainSilence(const CompileLog& log, const std::string& status) {
  for (const auto& [name, report] : log.functions) {
    if (report.shared_bytes <= kStaticSharedLimit) continue;
    return ErrorAt(
        "", 0,
        fmt::format("'{}' uses {} bytes of static shared memory; at most {} are possible "
                    "(declare it extern __shared__ to use more)",
                    name, report.shared_bytes, kStaticSharedLimit));
  }
  return ErrorAt("", 0, fmt::format("NVRTC gave up without a reason ({})", status));
}

Json Resources(const CompileLog& log, std::string_view cubin) {
  Json resources = Json::object();
  const auto functions = ReadCubin(cubin);
  if (!functions) return resources;
  for (const auto& [name, function] : *functions) {
    const auto found = log.functions.find(name);
    const bool reported = found != log.functions.end();
    const PtxasReport report = reported ? found->second : PtxasReport{};
    resources[name] = {
        {"entry", function.entry},
        {"registers", std::max<std::uint64_t>(function.registers, report.registers)},
        {"stack_bytes",
         std::max<std::uint64_t>({function.frame_bytes, function.stack_bytes, report.stack_bytes})},
        {"spill_store_bytes", report.spill_store_bytes},
        {"spill_load_bytes", report.spill_load_bytes},
        {"spills_known", reported},
        {"shared_bytes", report.shared_bytes},
        {"local_bytes", report.local_bytes},
        {"constant_bytes", std::max(function.constant_bytes, report.constant_bytes)},
        {"barriers", report.barriers},
        {"code_bytes", function.code_bytes}};
  }
  return resources;
}

/// What the author's file is called in line information.
std::string FileName(const std::string& path) { return Path(path).filename().string(); }

/// What is known of the program, and its skeleton; or why nothing is.
Json FactsOrFault(const std::string& ptx, const std::string& file) {
  // NVRTC counts the terminating NUL.
  const std::string_view text = std::string_view(ptx).substr(0, ptx.find('\0'));
  const Result<ptx::Module> module = ptx::Parse(text, "ptx");
  if (!module) return {{"fault", ToString(module.error())}};
  const facts::Facts facts = facts::FactsOf(*module, {.own_file = FileName(file)});
  Json program = {{"facts", facts::ToJson(facts)}};
  if (facts.fault.empty()) {
    const facts::Skeleton skeleton = facts::SkeletonOf(*module);
    program["skeleton"] = skeleton.ptx;
    program["skeleton_rounds"] = skeleton.rounds;
    program["skeleton_in_shared"] = skeleton.in_shared;
    program["skeleton_without"] = skeleton.without;
  }
  return program;
}

class CompileService {
 public:
  CompileService(Nvrtc nvrtc, CompilerPaths paths)
      : nvrtc_(std::move(nvrtc)), paths_(std::move(paths)) {}

  Result<Answer> operator()(Message message) const {
    const std::string action =
        message.header.is_object() ? message.header.value("action", "compile") : "";
    if (action == "probe") return Probe();
    if (action == "compile") return Compile(std::move(message));
    return Fail(ErrorKind::kUsage, "unknown action '" + action + "'", "compile request");
  }

 private:
  std::string Version() const {
    return fmt::format("{}.{}", nvrtc_.version().major, nvrtc_.version().minor);
  }

  Result<Answer> Probe() const {
    Answer answer;
    answer.header = {{"nvrtc", Version()},
                     {"library", paths_.nvrtc.string()},
                     {"includes", Json::array()},
                     {"architectures", nvrtc_.architectures()}};
    for (const Path& include : paths_.includes)
      answer.header["includes"].push_back(include.string());
    return answer;
  }

  Answer Refuse(const CompileRequest& request, Diagnostic diagnostic) const {
    Compilation none;
    none.status = "refused";
    CompileLog log;
    log.text =
        diagnostic.file.empty() ? "" : fmt::format("{}({}): ", diagnostic.file, diagnostic.line);
    log.text += "error: " + diagnostic.message + "\n";
    log.diagnostics.push_back(std::move(diagnostic));
    return Render(request, none, std::move(log));
  }

  Answer Render(const CompileRequest& request, const Compilation& compilation,
                CompileLog log) const {
    Answer answer;
    Json lowered = Json::object();
    for (const auto& [name, mangled] : compilation.lowered) lowered[name] = mangled;
    Json diagnostics = Json::array();
    for (const Diagnostic& diagnostic : log.diagnostics) diagnostics.push_back(ToJson(diagnostic));
    answer.header = {
        {"ok", compilation.ok},
        {"status", compilation.status},
        {"nvrtc", Version()},
        {"log", std::move(log.text)},
        {"log_truncated", log.truncated},
        {"diagnostics", std::move(diagnostics)},
        {"diagnostics_dropped", log.dropped},
        {"ptx_bytes", compilation.ptx.size()},
        {"cubin_bytes", compilation.cubin.size()},
        {"lowered", std::move(lowered)},
        {"resources", request.cubin ? Resources(log, compilation.cubin) : Json::object()}};
    if (compilation.ok) {
      answer.header["program"] = request.facts ? FactsOrFault(compilation.ptx, request.job.file)
                                               : Json{{"fault", "nobody asked for facts"}};
    }
    answer.payload = compilation.ptx + compilation.cubin;
    return answer;
  }

  bool IsOurs(const CompileRequest& request, std::string_view file) const {
    if (file == request.job.file || file == kNameMap) return true;
    for (const VirtualHeader& header : request.job.headers) {
      if (file == header.name) return true;
    }
    const std::string normal = Path(file).lexically_normal().string();
    return std::ranges::any_of(paths_.includes, [&](const Path& include) {
      return normal.starts_with(include.string() + "/");
    });
  }

  /// Once more without asking for names that are lost; nothing unless all are in the PTX as they are.
  Result<std::optional<Compilation>> CompileUnmangled(const CompileRequest& request,
                                                      const CompileLog& log) const {
    const std::vector<std::string> lost = LostNames(log, request.entries);
    if (lost.empty()) return std::nullopt;
    CompileJob job = request.job;
    std::erase_if(job.names,
                  [&](const std::string& name) { return std::ranges::count(lost, name) > 0; });
    ASSAY_TRY(Compilation compilation, nvrtc_.Compile(job));
    if (!compilation.ok) return std::nullopt;
    for (const std::string& name : lost) {
      if (!IsEntryOf(compilation.ptx, name)) return std::nullopt;
      compilation.lowered.emplace_back(name, name);
    }
    return compilation;
  }

  Result<Answer> Compile(Message message) const {
    ASSAY_TRY(const CompileRequest request, ReadRequest(std::move(message), paths_));
    for (const std::string& entry : request.entries) {
      if (!IsEntry(entry))
        return Refuse(request, ErrorAt("", 0, "an entry is not a kernel's name: '" + entry + "'"));
    }
    if (const auto problem = CheckSource(request.job.source)) {
      return Refuse(request, ErrorAt(request.job.file, problem->line, problem->message));
    }
    const auto read = [&](const Compilation& of) {
      return ReadCompileLog(of.log, [&](std::string_view file) { return IsOurs(request, file); });
    };
    ASSAY_TRY(Compilation compilation, nvrtc_.Compile(request.job));
    CompileLog log = read(compilation);
    if (!compilation.ok) {
      ASSAY_TRY(std::optional<Compilation> found, CompileUnmangled(request, log));
      if (found) {
        compilation = *std::move(found);
        log = read(compilation);
      }
    }
    NameEntries(log.diagnostics);
    if (!compilation.ok && std::ranges::none_of(log.diagnostics, IsError)) {
      log.diagnostics.push_back(ExplainSilence(log, compilation.status));
    }
    return Render(request, compilation, std::move(log));
  }

  Nvrtc nvrtc_;
  CompilerPaths paths_;
};

}  // namespace

bool IsAllowedOption(const std::string& option) {
  if (std::ranges::find(kExactOptions, option) != kExactOptions.end()) return true;
  return std::ranges::any_of(kOptionPrefixes, [&](std::string_view prefix) {
    return option.starts_with(prefix) && option.size() > prefix.size();
  });
}

Result<sandbox::Service> MakeCompileService(const CompilerPaths& paths) {
  ASSAY_TRY(Nvrtc nvrtc, Nvrtc::Open(paths.nvrtc, paths.builtins));
  // std::function wants a copyable target.
  auto service = std::make_shared<CompileService>(std::move(nvrtc), paths);
  return sandbox::Service([service](Message message) { return (*service)(std::move(message)); });
}

}  // namespace assay::workers

#include "agent/loop/resume.h"

#include <algorithm>

#include "agent/loop/request_json.h"
#include "base/digest.h"
#include "base/json.h"
#include "runs/emit.h"
#include "runs/extract.h"

namespace assay::loop {
namespace {

// Something that the record asks for and the command line did not say.
std::unexpected<Error> NotRepeated(const std::string& what, const std::string& option) {
  return Fail(ErrorKind::kUsage, "the run asks " + what + "; a run's folder may come from anybody",
              option, "if that is what you want, say it again: " + option);
}

std::unexpected<Error> Changed(const char* option, const std::string& was) {
  return Fail(ErrorKind::kUsage,
              "cannot be changed: a resumed run goes on as it began, with " + was, option,
              "repeat it as it was, or begin a new run");
}

// Text in an object of a document that anybody may have written; empty where there is none.
std::string TextAt(const Json& document, const char* object, const char* key) {
  const auto outer = document.find(object);
  if (outer == document.end() || !outer->is_object()) return {};
  const auto inner = outer->find(key);
  return inner != outer->end() && inner->is_string() ? inner->get<std::string>() : std::string();
}

// One word of a shell, whatever is in it.
std::string Quoted(const std::string& text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-:=@,+").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Status CheckModel(const GenerateRequest& run, const Repeated& repeated) {
  const std::string& model = run.model.spec;
  if (!repeated.model.empty() && repeated.model != model)
    return Changed("--model", "--model " + Quoted(model));
  // A transcript is read, parsed and answers from here: it runs nothing and sends nothing.
  if (!repeated.model.empty() || model.starts_with("replay/")) return {};
  const std::string what = model.starts_with("exec/")
                               ? "to run the program " + model.substr(5)
                               : "to send its prompts, with a key, to " + model;
  return NotRepeated(what, "--model " + Quoted(model));
}

Status CheckVariables(const GenerateRequest& run, const Repeated& repeated) {
  for (const std::string& name : run.model.exec_variables) {
    if (std::ranges::find(repeated.exec_variables, name) == repeated.exec_variables.end())
      return NotRepeated("to give $" + name + " to its program", "--exec-env " + Quoted(name));
  }
  return {};
}

// A place that the record names: taken from the command line, or refused.
template <class T>
Status Take(T& recorded, const T& repeated, const std::string& what, const std::string& option) {
  const T asked = std::exchange(recorded, repeated);
  if (asked.empty() || !repeated.empty()) return {};
  const std::string text = Path(asked).string();
  return NotRepeated(what + " " + text, option + " " + Quoted(text));
}

}  // namespace

Result<GenerateRequest> RequestOfRun(const Path& folder, const ops::Library& library,
                                     const Repeated& repeated) {
  ASSAY_TRY(const Json json, runs::RunFolder::ReadRequest(folder));
  ASSAY_TRY(GenerateRequest request,
            RequestFromJson(json, (folder / "run.json").string(), library, repeated.op));
  ASSAY_TRY_VOID(CheckModel(request, repeated));
  ASSAY_TRY_VOID(CheckVariables(request, repeated));
  request.model.exec_variables = repeated.exec_variables;
  ASSAY_TRY_VOID(
      Take(request.model.base_url, repeated.base_url, "to talk to the server", "--base-url"));
  ASSAY_TRY_VOID(
      Take(request.model.key_file, repeated.key_file, "to send what is in the file", "--key-file"));
  ASSAY_TRY_VOID(
      Take(request.budget.prices, repeated.prices, "to read prices from the file", "--prices"));
  if (request.unsafe_no_jail && !repeated.unsafe_no_jail)
    return NotRepeated("to run kernels without a jail", "--unsafe-no-jail");
  if (!request.unsafe_no_jail && repeated.unsafe_no_jail)
    return Changed("--unsafe-no-jail", "the jail on");
  request.out = folder;
  request.resume = true;
  return request;
}

std::string ResumeCommand(const GenerateRequest& request, const Path& folder) {
  std::string command = "assay generate";
  const ops::Library library = ops::Library::Default();
  if (!IsOfLibrary(library, request.instance.op))
    command += " " + Quoted(request.instance.op.folder.string());
  command += " --resume " + Quoted(folder.string());
  const models::ModelSpec& model = request.model;
  if (!model.spec.starts_with("replay/")) command += " --model " + Quoted(model.spec);
  for (const std::string& name : model.exec_variables) command += " --exec-env " + Quoted(name);
  if (!model.base_url.empty())
    command += " --base-url " + Quoted(models::PublicUrl(model.base_url));
  if (!model.key_file.empty()) command += " --key-file " + Quoted(model.key_file.string());
  if (!request.budget.prices.empty())
    command += " --prices " + Quoted(request.budget.prices.string());
  if (request.unsafe_no_jail) command += " --unsafe-no-jail";
  return command;
}

Status CheckVetted(const runs::RunFolder& run, const ops::Instance& instance) {
  const runs::Attempt* const accepted = run.state().Accepted();
  if (accepted == nullptr || accepted->vetted.empty()) return {};
  const Path folder = run.path() / accepted->vetted;
  const auto wrong = [&folder](const std::string& what) {
    return Fail(ErrorKind::kMalformedInput,
                "the vetted kernel is not the one that this run judged: " + what, folder.string(),
                "restore the run's folder from a copy, or begin a new run");
  };
  if (accepted->vetted != "vetted/" + instance.Id()) return wrong("it is of another instance");
  ASSAY_TRY_VOID(runs::Publish(folder, accepted->certificate));
  ASSAY_TRY(const Json certificate, ReadJsonFile((folder / "certificate.json").string()));
  const auto candidate = runs::ExtractCandidate(accepted->JoinedReply());
  if (!candidate) return wrong("the accepted reply holds no kernel");
  if (TextAt(certificate, "sha256", "kernel.cu") != Sha256Hex(candidate->kernel) ||
      TextAt(certificate, "sha256", "launch.json") != Sha256Hex(candidate->launch)) {
    return wrong("its source is not the accepted reply's");
  }
  if (TextAt(certificate, "op", "sha256") != instance.op.digest)
    return wrong("its op is not the run's");
  return {};
}

}  // namespace assay::loop

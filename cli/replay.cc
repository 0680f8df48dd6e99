// assay replay: run one failing case again.
#include "base/json.h"
#include "cli/command.h"
#include "cli/instance.h"
#include "cli/progress.h"
#include "cli/workbench.h"
#include "ops/names.h"
#include "validator/findings/render.h"
#include "validator/gates/gatekeeper.h"

namespace assay::cli {
namespace {

struct Request {
  std::string file;
  std::string op;
  WorkbenchOptions tools;
};

Result<int> Replay(const Request& request, bool json) {
  ASSAY_TRY(const Json document, ReadJsonFile(request.file));
  ASSAY_TRY(const verdict::Counterexample recorded,
            verdict::CounterexampleFromJson(document, request.file));
  // A file from elsewhere does not bring what it is judged by.
  if (request.op.empty() && !ops::IsIdentifier(recorded.op)) {
    return Fail(ErrorKind::kUsage,
                "it names the op '" + recorded.op +
                    "', which is not one of the library's; a counterexample may come from anybody",
                request.file, "if that is what you want, say it: --op FOLDER");
  }
  // Nor does it open a device: that is for the command line to say.
  ASSAY_TRY(const Engines engines, ParseEngines(request.tools.engine));
  if (recorded.engine != "emulator" && !(recorded.engine == "gpu" && engines.gpu())) {
    const bool gpu = recorded.engine == "gpu";
    return Fail(
        ErrorKind::kUsage,
        "it was found on the engine '" + recorded.engine + "', which " +
            (gpu ? "was not asked for" : "this version does not have"),
        request.file,
        gpu ? "say it again: --engine gpu,emulator" : "judge the candidate anew: assay check");
  }
  InstanceOptions options{.op = request.op.empty() ? recorded.op : request.op, .dtypes = {}};
  for (const auto& [variable, dtype] : recorded.binding)
    options.dtypes.push_back(variable + "=" + dtype);
  ASSAY_TRY(const ops::Instance instance, MakeInstance(options, recorded.arch));
  if (instance.op.digest != recorded.op_digest) {
    Say("note: the op '" + instance.op.name +
        "' has changed since this counterexample was recorded");
  }
  WorkbenchOptions tool_options = request.tools;
  tool_options.arch = recorded.arch;
  ASSAY_TRY(auto bench, Workbench::Make(tool_options));
  gates::Gatekeeper gatekeeper(bench->MakeTools(), {});
  std::optional<Elapsed> elapsed(std::in_place, "replaying");
  ASSAY_TRY(const verdict::Counterexample replayed, gatekeeper.Replay(instance, recorded));
  elapsed.reset();

  SourceText source;
  source.Add("kernel.cu", replayed.kernel);
  Json texts = Json::array();
  for (const Finding& finding : replayed.findings) {
    texts.push_back(RenderText(finding, source));
    Say(texts.back().get<std::string>());
  }
  if (json) {
    Json shown = ToJson(replayed);
    shown["texts"] = std::move(texts);
    ASSAY_TRY_VOID(PrintJson(shown));
  }
  if (replayed.findings.empty()) {
    Say("the case passes now: no finding");
    return kExitDone;
  }
  if (!recorded.findings.empty() &&
      !SameDefect(recorded.findings.front(), replayed.findings.front())) {
    Say("note: this is not the finding that was recorded");
  }
  return kExitRefuted;
}

}  // namespace

void AddReplay(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("replay", "Run one failing case again.");
  auto request = std::make_shared<Request>();
  command
      ->add_option("counterexample", request->file,
                   "A counterexample.json of a run or of assay check.")
      ->required();
  command->add_option("--op", request->op, "Op to judge by, where the recorded name is not found.");
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print the replayed counterexample on stdout.");
  command->footer(
      "Example:\n"
      "  assay replay runs/ID/attempts/1/counterexample.json\n"
      "Exit codes: 1 the finding is still there, 0 the case passes now, 2 inconclusive, 3 bad "
      "input.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Replay(*request, session.json); };
  });
}

}  // namespace assay::cli

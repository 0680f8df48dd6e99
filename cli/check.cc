// assay check: judge a candidate that you already have.
#include <fmt/format.h>

#include <random>

#include "base/file.h"
#include "cli/command.h"
#include "cli/generate_options.h"
#include "cli/instance.h"
#include "cli/progress.h"
#include "cli/watch.h"
#include "cli/workbench.h"
#include "report/diagnostics.h"
#include "runs/emit.h"
#include "validator/findings/render.h"
#include "validator/verdict/render.h"

namespace assay::cli {
namespace {

struct Request {
  std::string folder;
  InstanceOptions instance;
  WorkbenchOptions tools;
  std::string effort = "standard";
  std::string counterexamples;
  std::string sarif;
  std::string format = "text";
  std::string emit;
  std::string sign_key;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> holdout_seed;
  std::size_t device_cases = 0;
  bool every_gate = false;
  bool watch = false;
};

Result<verdict::Candidate> ReadCandidate(const Path& folder) {
  ASSAY_TRY(std::string kernel, ReadFile(folder / "kernel.cu", 16u << 20));
  ASSAY_TRY(std::string launch, ReadFile(folder / "launch.json", 16u << 20));
  return verdict::Candidate{.kernel = std::move(kernel), .launch = std::move(launch)};
}

// Each finding as the terminal shows it.
Json TextsOf(const std::vector<Finding>& findings, const std::string& kernel) {
  SourceText source;
  source.Add("kernel.cu", kernel);
  Json texts = Json::array();
  for (const Finding& finding : findings) texts.push_back(RenderText(finding, source));
  return texts;
}

Path EmitFolder(const Request& request) {
  const Path folder = Path(request.emit).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

// What lies there is nobody's to throw away, but for a vetted kernel of an earlier time.
Status CheckEmpty(const Path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error) || std::filesystem::is_empty(folder, error) ||
      std::filesystem::exists(folder / "certificate.json", error))
    return {};
  return Fail(ErrorKind::kUsage, "the folder holds other things than a vetted kernel",
              folder.string(), "give --emit a folder of its own");
}

Status Tell(const Request& request, const verdict::Verdict& verdict,
            const verdict::Candidate& candidate, bool json) {
  const Path folder = request.folder;
  const bool conclusive = verdict.outcome == verdict::Outcome::kAccepted ||
                          verdict.outcome == verdict::Outcome::kRefuted;
  const auto diagnostics = report::DiagnosticsOf(
      verdict,
      {.kernel = (folder / "kernel.cu").string(), .launch = (folder / "launch.json").string()});
  if (request.format == "compiler") {
    Say(report::CompilerText(diagnostics) +
        fmt::format("{}: {}", Name(verdict.outcome), verdict.reason));
  } else {
    Say(verdict::RenderVerdict(verdict));
  }
  if (!request.sarif.empty()) {
    ASSAY_TRY_VOID(WriteFileAtomically(
        request.sarif,
        PrettyJson(report::SarifLog(ASSAY_VERSION, diagnostics,
                                    {.conclusive = conclusive, .reason = verdict.reason}))));
  }
  const auto counterexamples = verdict.Counterexamples();
  if (!request.counterexamples.empty()) {
    for (std::size_t i = 0; i < counterexamples.size(); ++i) {
      const Path file =
          Path(request.counterexamples) / ("counterexample-" + std::to_string(i + 1) + ".json");
      ASSAY_TRY_VOID(WriteFileAtomically(file, PrettyJson(ToJson(*counterexamples[i]))));
      Say("counterexample: " + file.string());
    }
  }
  if (json) {
    Json document = ToJson(verdict);
    document["text"] = verdict::RenderVerdict(verdict);
    Json texts = Json::array();
    for (const verdict::Counterexample* const each : counterexamples)
      texts.push_back(TextsOf(each->findings, candidate.kernel));
    document["texts"] = std::move(texts);
    ASSAY_TRY_VOID(PrintJson(document));
  }
  return {};
}

Result<int> JudgeOnce(const Request& request, const ops::Instance& instance, Workbench& bench,
                      bool json) {
  ASSAY_TRY(const verdict::Candidate candidate, ReadCandidate(request.folder));
  ASSAY_TRY(auto signer, SignerOf(request.sign_key));
  ProgressPrinter progress;
  gates::Tools tools = bench.MakeTools();
  tools.progress = [&progress](const gates::Progress& step) { progress.On(step); };
  std::random_device entropy;
  gates::Gatekeeper gatekeeper(tools, {.effort = ParseEffort(request.effort),
                                       .seed = request.seed,
                                       .holdout_seed =
                                           [&] {
                                             return request.holdout_seed.value_or(
                                                 (std::uint64_t{entropy()} << 32) | entropy());
                                           },
                                       .unsafe_no_jail = request.tools.unsafe_no_jail,
                                       .every_gate = request.every_gate,
                                       .device_cases = request.device_cases,
                                       .regressions = {}});
  const gates::Judgement judgement = gatekeeper.Judge(instance, candidate);
  progress.Finish();
  if (!request.emit.empty() && judgement.vetted) {
    const Path folder = EmitFolder(request);
    ASSAY_TRY(auto versions, bench.JudgeVersions());
    ASSAY_TRY(const std::string certificate, runs::Emit(*judgement.vetted,
                                                        {.author = {},
                                                         .prompts_digest = {},
                                                         .versions = std::move(versions),
                                                         .signer = std::move(signer)},
                                                        bench.clock(), folder));
    ASSAY_TRY_VOID(runs::Publish(folder, certificate));
  }
  ASSAY_TRY_VOID(Tell(request, judgement.verdict, candidate, json));
  if (!request.emit.empty() && judgement.vetted)
    Say("vetted kernel: " + EmitFolder(request).string());
  return verdict::ExitCode(judgement.verdict.outcome);
}

// Judges, waits for a save, judges again: the workers, the reference and what is cached stay. Between
// two saves a file may be half written or gone; that is said, and the next save awaited.
Result<int> JudgeOnEverySave(const Request& request, const ops::Instance& instance,
                             Workbench& bench) {
  ASSAY_TRY(FolderWatch watch, FolderWatch::Make(request.folder, {"kernel.cu", "launch.json"}));
  while (true) {
    Result<int> exit = JudgeOnce(request, instance, bench, false);
    if (!exit) Say("error: " + ToString(exit.error()));
    Say("waiting for " + request.folder + " to be saved (Ctrl-C ends)");
    ASSAY_TRY(const FolderWatch::Event event, watch.Wait());
    if (event == FolderWatch::Event::kInterrupted) return exit;
  }
}

Result<int> Check(const Request& request, bool json) {
  ASSAY_TRY(const ops::Instance instance, MakeInstance(request.instance, request.tools.arch));
  if (!request.watch) ASSAY_TRY_VOID(ReadCandidate(request.folder));
  // Before the judge's minutes, not after them.
  if (!request.counterexamples.empty()) ASSAY_TRY_VOID(MakeFolders(request.counterexamples));
  if (!request.emit.empty()) ASSAY_TRY_VOID(CheckEmpty(EmitFolder(request)));
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  ASSAY_TRY_VOID(bench->CheckTarget(request.tools.arch));
  ASSAY_TRY_VOID(bench->CheckReference(instance));
  return request.watch ? JudgeOnEverySave(request, instance, *bench)
                       : JudgeOnce(request, instance, *bench, json);
}

}  // namespace

void AddCheck(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("check", "Judge a candidate that you already have.");
  auto request = std::make_shared<Request>();
  command->add_option("candidate", request->folder, "Folder that holds kernel.cu and launch.json.")
      ->required();
  AddInstanceOptions(*command, request->instance, OpArgument::kOption);
  AddEffortOption(*command, request->effort);
  command->add_option("--seed", request->seed, "Seed of the cases.")->check(WholeNumber());
  command->add_option("--device-cases", request->device_cases,
                      "Cases on the GPU, where one is asked for (0: as the effort says).");
  command->add_flag("--every-gate", request->every_gate,
                    "Go on after a refutation by cases, to see what each gate says. The outcome "
                    "is the same.");
  command->add_option("--counterexamples", request->counterexamples,
                      "Folder to write the counterexamples to, for assay replay.");
  command->add_option("--sarif", request->sarif,
                      "File to write the findings to as SARIF 2.1.0, for code hosts.");
  command
      ->add_option("--format", request->format,
                   "text, or compiler: a line a finding, as editors read it.")
      ->check(CLI::IsMember({"text", "compiler"}));
  CLI::Option* const emit =
      command->add_option("--emit", request->emit,
                          "Folder to write the kernel to, with its certificate and loaders, if it "
                          "is accepted.");
  command
      ->add_option("--holdout-seed", request->holdout_seed,
                   "Seed of the held-out cases, to see those of a verdict again. Default: the "
                   "system's, which nobody can write a kernel for.")
      ->check(WholeNumber())
      ->excludes(emit);
  AddSignOption(*command, request->sign_key);
  AddWorkbenchOptions(*command, request->tools);
  CLI::Option* const json = command->add_flag("--json", session.json,
                                              "Print the verdict as one JSON document on stdout.");
  command
      ->add_flag("--watch", request->watch, "Judge again whenever a file is saved, until Ctrl-C.")
      ->excludes(json);
  command->footer(
      "Example:\n"
      "  assay check ops/rms_norm/naive --op rms_norm --dtype T=f16\n"
      "  assay check mine/ --op softmax --engine gpu,emulator\n"
      "  assay check mine/ --op softmax --watch --format compiler\n"
      "  assay check mine/ --op softmax --emit vetted/softmax\n"
      "Exit codes: 0 accepted, 1 refuted, 2 inconclusive, 3 usage or environment, 4 internal "
      "error.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Check(*request, session.json); };
  });
}

}  // namespace assay::cli

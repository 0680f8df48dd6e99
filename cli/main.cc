// assay: generate, check, replay, sanitize GPU kernels; list ops; look after this machine.
#include <csignal>

#include "base/error.h"
#include "cli/command.h"

namespace assay::cli {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Assay writes CUDA kernels with an LLM and emits only those that pass every gate.", "assay");
  app.footer(
      "Examples:\n"
      "  assay generate embedding_rmsnorm_backward\n"
      "  assay generate rms_norm --model openai/MODEL --base-url http://localhost:8000/v1\n"
      "  assay check my_kernel/ --op rms_norm --dtype T=f16\n"
      "  assay sanitize kernel.cu --launch launch.json\n"
      "\nExit codes: 0 accepted or done, 1 refuted, 2 inconclusive, 3 usage or environment, 4 internal error.");
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(1);

  Session session;
  for (auto* add : {&AddGenerate, &AddCheck, &AddReplay, &AddSanitize, &AddOps, &AddDoctor}) {
    (*add)(app, session);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitEnvironment;
  }
  const Result<int> result = session.run();
  if (result) return *result;
  if (session.json) PrintJson(ErrorJson(result.error()));
  Say("error: " + ToString(result.error()));
  return ExitCode(result.error());
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return assay::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    assay::cli::Say(std::string("internal error: ") + error.what());
    return assay::cli::kExitInternal;
  }
}

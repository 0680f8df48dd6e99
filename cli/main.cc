// assay: generate, check, replay, sanitize GPU kernels; list ops; look after this machine.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/surroundings.h"

namespace assay::cli {
namespace {

// A descriptor that is closed at the start would be given to the next file that is opened: a run's
// log among them, and messages would land in it.
void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

// What is wrong with the command line, in the form of all other errors.
Error UsageError(CLI::App& app, const CLI::ParseError& error) {
  CLI::App* at = &app;
  std::string command = "assay";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  Error usage{.kind = ErrorKind::kUsage,
              .message = error.what(),
              .place = command,
              .cure = "'" + command + " --help' shows what there is"};
  const std::vector<std::string> left = at->remaining();
  if (left.empty()) return usage;
  std::vector<std::string> known;
  const bool option = left.front().starts_with("-");
  if (option) {
    for (const CLI::Option* const each : at->get_options()) known.push_back(each->get_name());
  } else {
    for (const CLI::App* const each : at->get_subcommands(nullptr))
      known.push_back(each->get_name());
    if (known.empty()) return usage;
  }
  usage.message = fmt::format("there is no {} '{}'", option ? "option" : "command", left.front());
  if (const std::string nearest = Nearest(left.front(), known); !nearest.empty())
    usage.cure = "did you mean '" + nearest + "'? " + usage.cure;
  return usage;
}

int End(const Error& error, bool json) {
  if (json && !PrintJson(ErrorJson(error))) json = false;
  Say("error: " + ToString(error));
  return ExitCode(error);
}

Result<int> Run(const Session& session) {
  try {
    return session.run();
  } catch (const std::exception& exception) {
    return std::unexpected(FromException(exception));
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Assay writes CUDA kernels with an LLM and emits only those that pass every gate.",
               "assay");
  app.footer(
      "Examples:\n"
      "  assay generate embedding_rmsnorm_backward\n"
      "  assay generate rms_norm --model openai/MODEL --base-url http://localhost:8000/v1\n"
      "  assay check my_kernel/ --op rms_norm --dtype T=f16\n"
      "  assay sanitize kernel.cu --launch launch.json\n"
      "\nExit codes: 0 accepted or done, 1 refuted, 2 inconclusive, 3 usage or environment, 4 "
      "internal error.");
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();

  Session session;
  for (auto* add : {&AddGenerate, &AddBatch, &AddCheck, &AddBench, &AddCost, &AddReplay,
                    &AddSanitize, &AddCorpus, &AddReward, &AddReport, &AddVerify, &AddServe,
                    &AddMcp, &AddRuns, &AddOps, &AddImport, &AddDoctor}) {
    (*add)(app, session);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const bool json =
        std::ranges::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
    return End(UsageError(app, error), json);
  }
  const Result<int> result = Run(session);
  return result ? *result : End(result.error(), session.json);
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  assay::cli::OpenStandardStreams();
  assay::cli::PrepareProcess();
  std::signal(SIGPIPE, SIG_IGN);
  // A file that grows too large (ulimit -f) is an error of write(), not the end. A handler, because
  // what is ignored would stay so in the workers.
  std::signal(SIGXFSZ, [](int) {});
  try {
    if (const assay::Status enough = assay::cli::CheckStack(); !enough)
      return assay::cli::End(enough.error(), false);
    return assay::cli::Main(argc, argv);
  } catch (const std::exception& exception) {
    return assay::cli::End(assay::cli::FromException(exception), false);
  }
}

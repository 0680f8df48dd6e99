// assay serve: the judge and the loop for several users of one team, over HTTP.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "cli/command.h"
#include "cli/generate_options.h"
#include "cli/service_judge.h"
#include "cli/workbench.h"
#include "serve/http_service.h"

namespace assay::cli {
namespace {

struct Request {
  std::string listen = "127.0.0.1:8337";
  std::string state = "serve-state";
  std::string tokens;
  std::string sign_key;
  std::string effort = "standard";  // of rewards
  std::string models;
  unsigned judges = 1;
  unsigned generations = 1;
  std::size_t waiting = 256;
  std::uint64_t seed = 1;
  WorkbenchOptions tools;
};

int ended = -1;  // an eventfd: what a handler of signals may write to

void OnSignal(int signal) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(ended, &one, sizeof one);
  std::signal(signal, SIG_DFL);
}

Result<std::pair<std::string, int>> ParseAddress(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const bool bare = colon == std::string::npos || text.ends_with(']');
  std::string address = bare ? text : text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  int port = 8337;
  if (!bare) {
    const char* const end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data() + colon + 1, end, port);
    if (fault != std::errc() || stop != end || port < 0 || port > 65535) {
      return Fail(ErrorKind::kUsage, "'" + text + "' is no address", "--listen",
                  "write it like 127.0.0.1:8337 or [::1]:8337");
    }
  }
  if (address.empty()) address = "127.0.0.1";
  return std::pair(address, port);
}

bool IsLoopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// Of what it holds, kernels and prompts are their authors' own.
Status MakeState(const Path& folder) {
  ASSAY_TRY_VOID(MakeFolders(folder.has_parent_path() ? folder.parent_path() : Path(".")));
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return MakeFolders(folder);
  const int error = errno;
  return Fail(ErrorKind::kEnvironment,
              std::string("cannot make the folder: ") + std::strerror(error), folder.string(),
              "name another with --state");
}

Result<int> Serve(const Request& request) {
  ASSAY_TRY(const auto address, ParseAddress(request.listen));
  if (!IsLoopback(address.first) && request.tokens.empty()) {
    return Fail(ErrorKind::kUsage, "beyond the loopback every client has a token of its own",
                "--listen " + request.listen, "name a file of them: --tokens FILE (docs/serve.md)");
  }
  ASSAY_TRY(auto signer, SignerOf(request.sign_key));
  ASSAY_TRY_VOID(MakeState(request.state));
  ASSAY_TRY(serve::Tokens tokens, request.tokens.empty()
                                      ? serve::Tokens::LoadOrMake(Path(request.state) / "tokens")
                                      : serve::Tokens::Load(request.tokens));
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  ASSAY_TRY_VOID(bench->CheckTarget(request.tools.arch));
  ASSAY_TRY(auto versions, bench->JudgeVersions());
  ServiceModels models;
  if (!request.models.empty()) {
    ASSAY_TRY(models, ServiceModels::Load(request.models, bench->clock()));
  }
  ServiceJudge judge(*bench, {.state = request.state,
                              .seed = request.seed,
                              .reward_effort = request.effort,
                              .tools = request.tools,
                              .versions = std::move(versions),
                              .signer = std::move(signer),
                              .models = std::move(models)});

  ended = ::eventfd(0, EFD_CLOEXEC);
  if (ended < 0) return Fail(ErrorKind::kEnvironment, "no event descriptor can be had");
  std::signal(SIGINT, &OnSignal);
  std::signal(SIGTERM, &OnSignal);
  ASSAY_TRY(auto desk,
            serve::Desk::Open(request.state,
                              {.judges = request.judges,
                               .generations = request.generations,
                               .waiting = request.waiting},
                              [&judge](const serve::Call& call, unsigned) { return judge(call); }));
  {
    ASSAY_TRY(
        const auto service,
        serve::HttpService::Start(
            {.address = address.first,
             .port = address.second,
             .models =
                 [&judge](const std::string& client) { return judge.models().ShownTo(client); }},
            std::move(tokens), *desk,
            [&judge](const std::string& client, const std::string& kind, const std::string& text) {
              return judge.IsFit(client, kind, text);
            }));
    Say(fmt::format("serving on {}:{}", address.first, service->port()));
    if (request.tokens.empty())
      Say("the token of the client 'local' is in " + (Path(request.state) / "tokens").string());
    if (!IsLoopback(address.first))
      Say("there is no TLS here: put a proxy that has it in front, or a tunnel");
    std::uint64_t signals = 0;
    while (::read(ended, &signals, sizeof signals) < 0 && errno == EINTR) {
    }
    Say("ending: what is under way is judged again at the next start (again: leaves at once)");
  }
  return kExitDone;
}

}  // namespace

void AddServe(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "serve", "The judge and the loop as an HTTP service for several users of one team.");
  auto request = std::make_shared<Request>();
  command->add_option("--listen", request->listen,
                      "ADDRESS[:PORT]; port 0: any. Beyond the loopback --tokens is needed.");
  command->add_option(
      "--state", request->state,
      "Folder of jobs, verdicts and vetted kernels; a killed service goes on here.");
  command->add_option("--tokens", request->tokens,
                      "File of clients and their bearer tokens (chmod 600). Default: one client, "
                      "'local', whose token is made in the state folder.");
  command->add_option("--judges", request->judges, "Candidates judged at a time.")
      ->check(CLI::Range(1, 256));
  command->add_option("--models", request->models,
                      "File of the models that clients may ask for kernels, by name "
                      "(assay.serve_models/1). Default: none.");
  command->add_option("--generations", request->generations, "Runs of models at a time.")
      ->check(CLI::Range(1, 256));
  command->add_option("--waiting", request->waiting, "Jobs of a client that are not over, at most.")
      ->check(CLI::Range(1, 100000));
  command->add_option("--seed", request->seed, "Of the cases; of rewards, of holdout ones too.")
      ->check(WholeNumber());
  command->add_option("--reward-effort", request->effort, "Of rewards: quick, standard, thorough.")
      ->check(CLI::IsMember({"quick", "standard", "thorough"}));
  AddSignOption(*command, request->sign_key);
  AddWorkbenchOptions(*command, request->tools);
  command->footer(
      "Examples:\n"
      "  assay serve\n"
      "  curl -H \"Authorization: Bearer $(cut -d' ' -f2 serve-state/tokens)\" \\\n"
      "       --data @check.json http://127.0.0.1:8337/v1/checks\n"
      "  assay serve --listen 10.0.0.5:8337 --tokens team.tokens --judges 8\n"
      "docs/serve.md has the calls. Nothing that was acknowledged is lost by kill -9.");
  command->callback([&session, request] { session.run = [request] { return Serve(*request); }; });
}

}  // namespace assay::cli

// assay serve: the judge for several users of one team, over HTTP.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <random>

#include "cli/command.h"
#include "cli/generate_options.h"
#include "cli/instance.h"
#include "cli/workbench.h"
#include "rewards/rewarder.h"
#include "runs/emit.h"
#include "serve/http_service.h"
#include "serve/requests.h"
#include "serve/stoppable.h"

namespace assay::cli {
namespace {

struct Request {
  std::string listen = "127.0.0.1:8337";
  std::string state = "serve-state";
  std::string tokens;
  std::string sign_key;
  std::string effort = "standard";  // of rewards
  unsigned judges = 1;
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

Result<ops::OpSpec> Find(const std::string& name) { return ops::Library::Default().Find(name); }

// What judges jobs, for several threads: the workbench is theirs together.
class ServiceJudge {
 public:
  ServiceJudge(Workbench& bench, const Request& request,
               std::map<std::string, std::string> versions,
               std::shared_ptr<const runs::SigningKey> signer)
      : bench_(bench), request_(request), signer_(std::move(signer)) {
    facts_.engine = request.tools.engine;
    facts_.seed = request.seed;
    facts_.effort = request.effort;
    facts_.unsafe_no_jail = request.tools.unsafe_no_jail;
    facts_.versions = std::move(versions);
  }

  Status IsFit(const std::string& kind, const std::string& text) const {
    ASSAY_TRY(const Json json, ParseJson(text, kind));
    if (kind == "check") {
      ASSAY_TRY(const serve::CheckRequest check,
                serve::ParseCheck(json, "check", &Find, request_.tools.arch));
      return {};
    }
    if (!json.is_object()) return Fail(ErrorKind::kMalformedInput, "must be an object", kind);
    return {};
  }

  serve::Answer operator()(const serve::Call& call, unsigned) {
    const Result<serve::Answer> answer = call.job.kind == "check" ? Check(call) : Reward(call);
    if (answer) return *answer;
    return {.outcome = "inconclusive",
            .reason = ToString(answer.error()),
            .document = ErrorJson(answer.error()),
            .certificate = {}};
  }

 private:
  gates::Judgement Judge(const serve::Call& call, const ops::Instance& instance,
                         const verdict::Candidate& candidate, const std::string& effort,
                         std::uint64_t seed, std::function<std::uint64_t()> holdout) {
    serve::StoppableCompiler compiler(bench_.compiler(), call.stop);
    serve::StoppableEngine engine(bench_.engine(), call.stop);
    gates::Tools tools = bench_.MakeTools();
    gates::Gatekeeper gatekeeper({.compiler = compiler,
                                  .engine = engine,
                                  .oracle = tools.oracle,
                                  .clock = tools.clock,
                                  .progress = call.progress,
                                  .gpu = tools.gpu},
                                 {.effort = ParseEffort(effort),
                                  .seed = seed,
                                  .holdout_seed = std::move(holdout),
                                  .unsafe_no_jail = request_.tools.unsafe_no_jail,
                                  .regressions = {}});
    return gatekeeper.Judge(instance, candidate);
  }

  Result<serve::Answer> Check(const serve::Call& call) {
    ASSAY_TRY(const Json json, ParseJson(call.job.request, "check"));
    ASSAY_TRY(const serve::CheckRequest check,
              serve::ParseCheck(json, "check", &Find, request_.tools.arch));
    ASSAY_TRY_VOID(bench_.CheckTarget(check.instance.arch));
    ASSAY_TRY_VOID(bench_.CheckReference(check.instance));
    std::random_device entropy;
    const gates::Judgement judgement =
        Judge(call, check.instance, check.candidate, check.effort, request_.seed,
              [&entropy] { return (std::uint64_t{entropy()} << 32) | entropy(); });
    serve::Answer answer{.outcome = std::string(Name(judgement.verdict.outcome)),
                         .reason = judgement.verdict.reason,
                         .document = serve::ForAuthor(judgement.verdict),
                         .certificate = {}};
    if (judgement.vetted && !call.stop.stop_requested()) {
      ASSAY_TRY(answer.certificate, runs::Emit(*judgement.vetted,
                                               {.author = "submitted by " + call.job.client,
                                                .attempt = 1,
                                                .prompts_digest = "",
                                                .versions = facts_.versions,
                                                .signer = signer_},
                                               bench_.clock(), call.vetted));
    }
    return answer;
  }

  Result<serve::Answer> Reward(const serve::Call& call) {
    rewards::Rewarder rewarder(
        [&](const ops::Instance& instance, const verdict::Candidate& candidate,
            std::uint64_t holdout_seed) {
          std::uint64_t drawn = 0;
          return Judge(call, instance, candidate, facts_.effort, facts_.seed,
                       [&drawn, holdout_seed] { return holdout_seed + drawn++; })
              .verdict;
        },
        [](const std::string& op) { return Find(op); }, facts_, request_.tools.arch,
        Path(request_.state) / "judgements");
    const std::uint64_t index = call.job.group == 0 ? 0 : call.job.number - call.job.group;
    ASSAY_TRY(const rewards::RewardLine reward, rewarder.Reward(call.job.request, index));
    return serve::Answer{.outcome = reward.outcome,
                         .reason = reward.reason,
                         .document = rewards::ToJson(reward),
                         .certificate = {}};
  }

  Workbench& bench_;
  const Request& request_;
  runs::JudgeFacts facts_;
  std::shared_ptr<const runs::SigningKey> signer_;
};

Result<int> Serve(const Request& request) {
  ASSAY_TRY(const auto address, ParseAddress(request.listen));
  if (!IsLoopback(address.first) && request.tokens.empty()) {
    return Fail(ErrorKind::kUsage, "beyond the loopback every client has a token of its own",
                "--listen " + request.listen, "name a file of them: --tokens FILE (docs/serve.md)");
  }
  ASSAY_TRY(auto signer, SignerOf(request.sign_key));
  ASSAY_TRY_VOID(MakeFolders(request.state));
  ASSAY_TRY(serve::Tokens tokens, request.tokens.empty()
                                      ? serve::Tokens::LoadOrMake(Path(request.state) / "tokens")
                                      : serve::Tokens::Load(request.tokens));
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  ASSAY_TRY_VOID(bench->CheckTarget(request.tools.arch));
  ASSAY_TRY(auto versions, bench->JudgeVersions());
  ServiceJudge judge(*bench, request, std::move(versions), std::move(signer));

  ended = ::eventfd(0, EFD_CLOEXEC);
  if (ended < 0) return Fail(ErrorKind::kEnvironment, "no event descriptor can be had");
  std::signal(SIGINT, &OnSignal);
  std::signal(SIGTERM, &OnSignal);
  ASSAY_TRY(auto desk,
            serve::Desk::Open(request.state, {.judges = request.judges, .waiting = request.waiting},
                              [&judge](const serve::Call& call, unsigned thread) {
                                return judge(call, thread);
                              }));
  {
    ASSAY_TRY(const auto service,
              serve::HttpService::Start({.address = address.first, .port = address.second},
                                        std::move(tokens), *desk,
                                        [&judge](const std::string& kind, const std::string& text) {
                                          return judge.IsFit(kind, text);
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
  CLI::App* command =
      app.add_subcommand("serve", "The judge as an HTTP service for several users of one team.");
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

// assay mcp: the judge as tools of a coding agent, over stdin and stdout.
#include "serve/mcp.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <random>
#include <thread>

#include "cli/command.h"
#include "cli/instance.h"
#include "cli/ops.h"
#include "cli/workbench.h"
#include "serve/requests.h"
#include "serve/stoppable.h"
#include "validator/findings/render.h"
#include "validator/sanitize/sanitize.h"
#include "validator/verdict/render.h"

namespace assay::cli {
namespace {

using serve::Tool;
using serve::ToolAnswer;
using serve::ToolCall;

struct Request {
  WorkbenchOptions tools;
};

Result<ops::OpSpec> Find(const std::string& name) { return ops::Library::Default().Find(name); }

Json Text(const char* description) { return {{"type", "string"}, {"description", description}}; }

Json Schema(const Json& properties, std::vector<std::string> required) {
  return {{"type", "object"},
          {"properties", properties},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

std::uint64_t Draw() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) | entropy();
}

// One call's judge: it stops when the client cancels.
class StoppableJudge {
 public:
  StoppableJudge(Workbench& bench, const ToolCall& call)
      : compiler_(bench.compiler(), call.stop),
        engine_(bench.engine(), call.stop),
        tools_(bench.MakeTools()) {}
  gates::Tools Tools(const ToolCall& call) {
    return {.compiler = compiler_,
            .engine = engine_,
            .oracle = tools_.oracle,
            .clock = tools_.clock,
            .progress =
                [&call](const gates::Progress& step) {
                  call.progress(step.gate + (step.detail.empty() ? "" : ": " + step.detail));
                },
            .gpu = tools_.gpu};
  }

 private:
  serve::StoppableCompiler compiler_;
  serve::StoppableEngine engine_;
  gates::Tools tools_;
};

Result<ToolAnswer> Check(Workbench& bench, const Request& request, const ToolCall& call) {
  ASSAY_TRY(const serve::CheckRequest check,
            serve::ParseCheck(call.arguments, "arguments", &Find, request.tools.arch));
  ASSAY_TRY_VOID(bench.CheckTarget(check.instance.arch));
  ASSAY_TRY_VOID(bench.CheckReference(check.instance));
  StoppableJudge judge(bench, call);
  gates::Gatekeeper gatekeeper(judge.Tools(call), {.effort = ParseEffort(check.effort),
                                                   .seed = Draw(),
                                                   .holdout_seed = &Draw,
                                                   .unsafe_no_jail = request.tools.unsafe_no_jail,
                                                   .regressions = {}});
  const verdict::Verdict verdict = gatekeeper.Judge(check.instance, check.candidate).verdict;
  return ToolAnswer{.text = verdict::RenderForPrompt(verdict) + serve::ReasonForAuthor(verdict) +
                            "\n" + verdict::RenderLedger(verdict.ledger),
                    .structured = serve::ForAuthor(verdict)};
}

Result<ToolAnswer> Sanitize(Workbench& bench, const Request& request, const ToolCall& call) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(call.arguments, "arguments"));
  sanitize::Job job;
  ASSAY_TRY(job.text, reader.Required<std::string>("kernel"));
  ASSAY_TRY(const Json launch, reader.Required<Json>("launch"));
  ASSAY_TRY(const std::string language, reader.Optional<std::string>("language", "cuda"));
  ASSAY_TRY(const std::int64_t schedules, reader.Optional<std::int64_t>("schedules", 0));
  ASSAY_TRY(job.arch, reader.Optional<std::string>("arch", request.tools.arch));
  ASSAY_TRY_VOID(reader.Finish());
  if (language != "cuda" && language != "ptx")
    return Fail(ErrorKind::kUsage, "a kernel is written in cuda or ptx", "arguments: /language");
  if (schedules < 0 || schedules > 1000)
    return Fail(ErrorKind::kUsage, "0 to 1000 schedules", "arguments: /schedules");
  Json document = launch;
  if (launch.is_string()) {
    ASSAY_TRY(document, ParseJson(launch.get<std::string>(), "launch"));
  }
  ASSAY_TRY(job.plan, ops::ParseSanitizePlan(document, "launch", "/nonexistent"));
  // On a command line these are the user's own; here anybody may have written them.
  bool files = false;
  for (const ops::SanitizeBuffer& buffer : job.plan.buffers)
    files = files || buffer.save || buffer.init.kind == ops::BufferInit::Kind::kFile;
  if (files || !job.plan.options.empty()) {
    return Fail(ErrorKind::kUsage, "a launch file may name no files and no compiler options here",
                "launch", "give the data by init kinds; assay sanitize takes the rest");
  }
  job.file = language == "ptx" ? "kernel.ptx" : "kernel.cu";
  job.schedules = static_cast<int>(schedules);
  serve::StoppableCompiler compiler(bench.compiler(), call.stop);
  serve::StoppableEngine engine(bench.engine(), call.stop);
  ASSAY_TRY(sanitize::Outcome outcome, sanitize::Sanitize(job, compiler, engine));
  SourceText source;
  source.Add(job.file, job.text);
  FillExcerpts(outcome.findings, source);
  ToolAnswer answer;
  for (const Finding& finding : outcome.findings) answer.text += RenderText(finding, source);
  if (!outcome.complete())
    answer.text += fmt::format("inconclusive: {}: {}\n", Name(outcome.stop), outcome.reason);
  answer.text +=
      fmt::format("{} findings under {} schedules\n", outcome.findings.size(), outcome.schedules);
  answer.structured = {{"findings", assay::ToJson(outcome.findings)},
                       {"complete", outcome.complete()},
                       {"stop", Name(outcome.stop)},
                       {"reason", outcome.reason},
                       {"schedules", outcome.schedules}};
  return answer;
}

Result<ToolAnswer> Replay(Workbench& bench, const ToolCall& call) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(call.arguments, "arguments"));
  ASSAY_TRY(Json document, reader.Required<Json>("counterexample"));
  ASSAY_TRY_VOID(reader.Finish());
  if (document.is_string()) {
    ASSAY_TRY(document, ParseJson(document.get<std::string>(), "counterexample"));
  }
  ASSAY_TRY(const verdict::Counterexample recorded,
            verdict::CounterexampleFromJson(document, "counterexample"));
  if (recorded.engine != "emulator")
    return Fail(ErrorKind::kUsage, "only what the emulator found is replayed", "counterexample");
  ASSAY_TRY(ops::OpSpec op, serve::FindByName(&Find, recorded.op, "counterexample: /op"));
  ASSAY_TRY(const ops::Instance instance,
            ops::MakeInstance(std::move(op), recorded.binding, recorded.arch));
  StoppableJudge judge(bench, call);
  gates::Gatekeeper gatekeeper(judge.Tools(call), {});
  ASSAY_TRY(const verdict::Counterexample replayed, gatekeeper.Replay(instance, recorded));
  SourceText source;
  source.Add("kernel.cu", replayed.kernel);
  ToolAnswer answer;
  for (const Finding& finding : replayed.findings) answer.text += RenderText(finding, source);
  if (replayed.findings.empty()) answer.text = "the case passes now: no finding\n";
  answer.structured = {{"passes", replayed.findings.empty()},
                       {"findings", assay::ToJson(replayed.findings)}};
  return answer;
}

Result<ToolAnswer> OpsList(const ToolCall& call) {
  ASSAY_TRY(const ObjectReader reader, ObjectReader::Of(call.arguments, "arguments"));
  ASSAY_TRY_VOID(reader.Finish());
  ASSAY_TRY(OpsListed listed, ListOps(ops::Library::Default()));
  return ToolAnswer{.text = std::move(listed.text), .structured = std::move(listed.json)};
}

Result<ToolAnswer> OpsShow(const ToolCall& call) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(call.arguments, "arguments"));
  ASSAY_TRY(const std::string name, reader.Required<std::string>("op"));
  ASSAY_TRY_VOID(reader.Finish());
  ASSAY_TRY(const ops::OpSpec op, serve::FindByName(&Find, name, "arguments: /op"));
  return ToolAnswer{.text = OpToText(op) + "\n", .structured = OpToJson(op)};
}

std::vector<Tool> MakeTools(Workbench& bench, const Request& request) {
  const Json launch = {
      {"type", Json::array({"object", "string"})},
      {"description", "Launch plan, assay.launch/1: kernels with grid, block and args"}};
  return {
      {.name = "ops_list",
       .description = "The ops that kernels can be judged against, with their dtypes.",
       .input = Schema(Json::object(), {}),
       .run = &OpsList},
      {.name = "ops_show",
       .description = "One op: axes, tensors, numeric contract, properties.",
       .input = Schema({{"op", Text("Name of an op")}}, {"op"}),
       .run = &OpsShow},
      {.name = "check",
       .description =
           "Judge a CUDA kernel against an op: compiled, run on a sanitizing emulator (no GPU), "
           "compared with an FP64 truth. Takes seconds to minutes. A refutation comes with the "
           "smallest failing case. Only the outcome 'accepted' means that it passed.",
       .input =
           Schema({{"op", Text("Name of an op")},
                   {"binding",
                    {{"type", "object"},
                     {"additionalProperties", {{"type", "string"}}},
                     {"description", "Dtype of each type variable, e.g. {\"T\": \"f16\"}"}}},
                   {"arch", Text("Target, e.g. sm_90")},
                   {"effort", {{"type", "string"}, {"enum", {"quick", "standard", "thorough"}}}},
                   {"kernel", Text("Text of kernel.cu")},
                   {"launch", launch}},
                  {"op", "kernel", "launch"}),
       .run = [&bench, request](const ToolCall& call) { return Check(bench, request, call); }},
      {.name = "sanitize",
       .description = "Run any kernel on the emulator and report out-of-bounds accesses, races, "
                      "uninitialised values and misused barriers. Needs no op.",
       .input = Schema(
           {{"kernel", Text("CUDA C++ or PTX")},
            {"launch",
             {{"type", Json::array({"object", "string"})},
              {"description", "Launch file, assay.launch/1 with buffers and scalars (no files)"}}},
            {"language", {{"type", "string"}, {"enum", {"cuda", "ptx"}}}},
            {"arch", Text("Target, e.g. sm_90")},
            {"schedules", {{"type", "integer"}, {"minimum", 0}, {"maximum", 1000}}}},
           {"kernel", "launch"}),
       .run = [&bench, request](const ToolCall& call) { return Sanitize(bench, request, call); }},
      {.name = "replay",
       .description = "Run one counterexample of a refuted kernel again.",
       .input = Schema({{"counterexample",
                         {{"type", Json::array({"object", "string"})},
                          {"description", "assay.counterexample/1, as check returned it"}}}},
                       {"counterexample"}),
       .run = [&bench](const ToolCall& call) { return Replay(bench, call); }}};
}

// Lines of stdin, to its end; what is longer than a message may be is thrown away as it comes.
void ReadLines(serve::McpServer& server) {
  std::string line;
  bool too_long = false;
  std::array<char, 64 * 1024> bytes;
  const auto take = [&](std::string_view piece) {
    if (too_long || line.size() + piece.size() > serve::McpServer::kMostLine) {
      too_long = true;
      line.clear();
    } else {
      line += piece;
    }
  };
  const auto end = [&] {
    if (too_long)
      server.OnLongLine();
    else
      server.OnLine(line);
    line.clear();
    too_long = false;
  };
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    std::string_view rest(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t at = rest.find('\n'); at != std::string_view::npos; at = rest.find('\n')) {
      take(rest.substr(0, at));
      end();
      rest.remove_prefix(at + 1);
    }
    take(rest);
  }
  if (!line.empty() || too_long) end();
}

// Tells the server when nobody reads what it writes: a client that has died asks for no judgement,
// though its last requests be still there.
class ReaderWatch {
 public:
  explicit ReaderWatch(serve::McpServer& server) : done_(::eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this, &server] {
      // Of a pipe, a socket or a terminal the end is told; a file has none.
      pollfd fds[] = {{STDOUT_FILENO, 0, 0}, {done_.get(), POLLIN, 0}};
      while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
      }
      if ((fds[0].revents & (POLLERR | POLLHUP)) != 0) server.Abandon();
    });
  }
  ReaderWatch(const ReaderWatch&) = delete;
  ReaderWatch& operator=(const ReaderWatch&) = delete;
  ~ReaderWatch() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = ::write(done_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  const UniqueFd done_;
  std::thread thread_;
};

Result<int> Mcp(const Request& request) {
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  serve::McpServer server(MakeTools(*bench, request), ASSAY_VERSION, [](const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  });
  const ReaderWatch watch(server);
  ReadLines(server);
  server.Finish();
  return kExitDone;
}

}  // namespace

void AddMcp(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "mcp", "Tools for coding agents: a Model Context Protocol server on stdin and stdout.");
  auto request = std::make_shared<Request>();
  AddWorkbenchOptions(*command, request->tools);
  command->footer(
      "Example, in a client's configuration:\n"
      "  {\"mcpServers\": {\"assay\": {\"command\": \"assay\", \"args\": [\"mcp\"]}}}\n"
      "Tools: ops_list, ops_show, check, sanitize, replay (docs/serve.md).\n"
      "By hand:\n"
      "  assay mcp < requests.jsonl");
  command->callback([&session, request] { session.run = [request] { return Mcp(*request); }; });
}

}  // namespace assay::cli

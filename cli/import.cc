// assay import: a PyTorch function as an op.
#include "importers/import.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/command.h"
#include "cli/instance.h"
#include "cli/workbench.h"
#include "importers/check.h"

namespace assay::cli {
namespace {

struct Request {
  std::string kind;
  std::string source;
  std::string out;
  std::string name;
  std::string python;
  bool check = false;
  bool strict = false;
  bool specialised = false;
  bool value_only = false;
  std::size_t cases = 50;
  std::uint64_t seed = 1;
  WorkbenchOptions tools;
};

std::string EnvironmentOf(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string AxesText(const ops::OpSpec& op) {
  std::string text;
  for (const ops::Axis& axis : op.axes) {
    text += " " + axis.name;
    if (axis.kind == ops::Axis::Kind::kVariable)
      text += fmt::format("({}..{})", axis.min, axis.max);
    if (axis.kind == ops::Axis::Kind::kConstant) text += fmt::format("={}", axis.value);
    if (axis.expression) text += "=" + axis.expression->text();
  }
  return text;
}

Result<int> Import(const Request& request, bool json) {
  ASSAY_TRY(importers::Problem problem, importers::ParseProblem(request.kind, request.source));
  problem.strict = request.strict;
  problem.specialised = request.specialised;
  problem.value_only = request.value_only;
  if (request.value_only && request.check) {
    return Fail(ErrorKind::kUsage,
                "the function itself is the reference: there is nothing to compare it with",
                "--value-only --check", "leave --check out");
  }
  if (!request.name.empty()) problem.name = request.name;
  const importers::RunOptions options{.unsafe_no_jail = request.tools.unsafe_no_jail};
  ASSAY_TRY(const importers::Python python, importers::FindPython(request.python, &EnvironmentOf));
  ASSAY_TRY(const importers::Imported imported, importers::Import(problem, python, options));
  const Path folder = request.out.empty() ? Path(imported.name) : Path(request.out);
  ASSAY_TRY(ops::OpSpec op, importers::WriteOp(imported, folder));
  Say(fmt::format("{}: {}\n  axes    {}", folder.string(), op.summary, AxesText(op)));
  for (const std::string& line : imported.inferred) Say("  review   " + line);

  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  ASSAY_TRY(const ops::Instance instance, ops::MakeInstance(op, {}, request.tools.arch));
  ASSAY_TRY_VOID(bench->CheckReference(instance));
  Say(request.value_only ? "  reference runs" : "  reference compiles");
  Json document = {{"name", op.name},
                   {"folder", folder.string()},
                   {"digest", op.digest},
                   {"inferred", imported.inferred}};
  int code = kExitDone;
  if (request.check) {
    ASSAY_TRY(const importers::Agreement agreement,
              importers::CheckImport(problem, instance, bench->MakeTools().oracle, python, options,
                                     request.cases, request.seed));
    Say(fmt::format("  {}   reference and torch in f64 {} on {} cases; worst {:.3g} relative{}",
                    agreement.agrees ? "checked" : "WRONG  ", agreement.agrees ? "agree" : "differ",
                    agreement.cases, agreement.worst,
                    agreement.worst > 0
                        ? fmt::format(", of {} at {}", agreement.output, agreement.where)
                        : std::string()));
    document["check"] = {{"agrees", agreement.agrees},
                         {"cases", agreement.cases},
                         {"worst", fmt::format("{:.6g}", agreement.worst)},
                         {"output", agreement.output},
                         {"where", agreement.where}};
    if (!agreement.agrees) code = kExitRefuted;
  }
  if (json) ASSAY_TRY_VOID(PrintJson(document));
  return code;
}

}  // namespace

void AddImport(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "import", "Make an op of a PyTorch function. Needs torch; judging does not.");
  auto request = std::make_shared<Request>();
  command->add_option("kind", request->kind, "What SOURCE is.")
      ->required()
      ->check(CLI::IsMember({"torch", "kernelbench", "sol-execbench", "flashinfer-trace"}));
  command
      ->add_option("source", request->source,
                   "torch: FILE:FUNCTION; kernelbench: a file; else the folder of a definition.")
      ->required();
  command->add_option("--out", request->out, "Folder of the op. Default: its name.");
  command->add_option("--name", request->name, "Name of the op. Default: the function's.");
  command->add_option("--python", request->python,
                      "A Python with torch. Default: $ASSAY_PYTHON, .deps/torch, python3.");
  command->add_flag("--check", request->check,
                    "Compare the reference with torch in f64, on random cases.");
  command->add_option("--cases", request->cases, "How many, with --check.")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  command->add_option("--seed", request->seed, "Their seed.")->check(WholeNumber());
  command->add_flag(
      "--strict", request->strict,
      "Casts to 16 bits are part of the op; without it, a kernel may leave them out.");
  command->add_flag("--specialised", request->specialised, "Extents stay those of the example.");
  command->add_flag(
      "--value-only", request->value_only,
      "The function itself is the reference, where no graph can be made of it. What error is "
      "honest is then estimated, not derived: verdicts say so.");
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Examples:\n"
      "  assay import torch model.py:attention --out ops/attention_of_mine --check\n"
      "  assay import kernelbench KernelBench/level2/12_Gemm_Multiply_LeakyReLU.py\n"
      "  assay import flashinfer-trace definitions/gqa_paged_decode --python ~/venv/bin/python\n"
      "Exit codes: 0 done, 1 reference and torch differ, 3 cannot be imported, usage or "
      "environment, "
      "4 internal error.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Import(*request, session.json); };
  });
}

}  // namespace assay::cli

#include "validator/gates/device_tools.h"

#include <fmt/format.h>

#include <thread>

#include "base/text.h"
#include "validator/engine/bind.h"
#include "validator/gates/tool_words.h"

namespace assay::gates {
namespace {

constexpr std::string_view kWave = "under compute-sanitizer";

/// What came of one case under one tool.
struct Watched {
  std::vector<Finding> findings;
  std::string left_out;
};

Watched WatchOne(GateContext& context, engine::Inspector& inspector, std::size_t tool,
                 const cases::Case& value) {
  Watched watched;
  const auto leave = [&watched](std::string why) {
    watched.left_out = std::move(why);
    return watched;
  };
  const engine::CompiledKernel& compiled = context.Compile()->kernel;
  const auto inputs = context.tools.oracle.Materialise(context.instance, value);
  if (!inputs) return leave(ToString(inputs.error()));
  const auto plan = ops::Resolve(context.Plan(), context.instance, inputs->axes);
  if (!plan) return leave(ToString(plan.error()));
  const engine::Call call{.plan = &*plan, .axes = &inputs->axes, .inputs = &inputs->inputs};
  auto binding = engine::Bind(context.instance, compiled, std::span(&call, 1));
  if (!binding) return leave(ToString(binding.error()));
  const auto inspected = inspector.Inspect(tool, binding->execution, binding->buffers);
  if (!inspected) return leave(inspected.error().message);
  const bool copies = compiled.ptx.find("cp.async.c") != std::string::npos;
  ToolWords words =
      ReadToolWords(inspector.Tools()[tool], inspected->words, {.partial_copies = copies});
  if (!words.complete) {
    const bool ended = inspected->report.stop == Stop::kCompleted;
    return leave(ended ? "the tool came to no end: " + OneLine(inspected->words, 300)
                       : inspected->report.reason);
  }
  watched.findings = std::move(words.findings);
  return watched;
}

}  // namespace

Inspection Inspect(GateContext& context, engine::Inspector& inspector,
                   std::span<const cases::Case> cases) {
  const std::span<const std::string_view> tools = inspector.Tools();
  std::vector<std::vector<Watched>> all(tools.size());
  {
    std::vector<std::jthread> running;
    for (std::size_t tool = 0; tool < tools.size(); ++tool) {
      running.emplace_back([&, tool] {
        for (const cases::Case& value : cases)
          all[tool].push_back(WatchOne(context, inspector, tool, value));
      });
    }
  }
  Inspection inspection;
  std::size_t seen = 0;
  std::string left_out;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t tool = 0; tool < tools.size(); ++tool) {
      Watched& watched = all[tool][i];
      context.ledger.Planned(kWave);
      if (!watched.left_out.empty()) {
        context.ledger.LeaveOut(kWave, fmt::format("{}: {}", tools[tool], watched.left_out),
                                cases::Describe(cases[i], context.instance));
        if (left_out.empty()) left_out = watched.left_out;
        continue;
      }
      context.ledger.Examined(kWave);
      ++seen;
      if (watched.findings.empty() || (inspection.guilty && *inspection.guilty != i)) continue;
      inspection.guilty = i;
      for (Finding& finding : watched.findings) inspection.findings.push_back(std::move(finding));
    }
  }
  inspection.text = fmt::format("{} of {} runs under compute-sanitizer's tools", seen,
                                cases.size() * tools.size());
  if (!left_out.empty()) inspection.text += " (" + left_out + ")";
  return inspection;
}

}  // namespace assay::gates

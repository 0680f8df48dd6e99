// The format gate: the candidate is one kernel and one launch plan, of sane size, and the plan
// holds for every shape of the op.
//
// Nothing is compiled or run. Shapes are cheap here, so the op's workloads are checked at full
// size.
#include <fmt/format.h>

#include <algorithm>

#include "validator/cases/shapes.h"
#include "validator/gates/gate.h"
#include "validator/policy/source_scan.h"

namespace assay::gates {
namespace {

constexpr std::size_t kMaxKernelBytes = 512 << 10;
constexpr std::size_t kMaxLaunchBytes = 64 << 10;
constexpr std::size_t kMaxKernels = 64;

Finding Malformed(FindingKind kind, std::string message, std::string cure) {
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  finding.cause = std::move(cure);
  return finding;
}

Finding PlanFinding(const Error& error) {
  return Malformed(FindingKind::kMalformedPlan,
                   (error.place.empty() ? "" : error.place + ": ") + error.message, error.cure);
}

// Strict UTF-8 (no overlong forms, no surrogates); the offset of the first bad byte, or npos.
std::size_t FirstBadUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    std::size_t length = 0;
    std::uint32_t code = 0;
    if (byte < 0x80) {
      ++i;
      continue;
    } else if (byte >= 0xc2 && byte < 0xe0) {
      length = 2;
      code = byte & 0x1fu;
    } else if (byte >= 0xe0 && byte < 0xf0) {
      length = 3;
      code = byte & 0x0fu;
    } else if (byte >= 0xf0 && byte < 0xf5) {
      length = 4;
      code = byte & 0x07u;
    } else {
      return i;
    }
    if (i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return i;
      code = code << 6 | (next & 0x3fu);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::size_t LineOf(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

void CheckText(std::string_view name, std::string_view text, std::size_t limit,
               std::vector<Finding>& findings) {
  const auto reply = [&](std::string message, std::string cure) {
    findings.push_back(
        Malformed(FindingKind::kMalformedReply, std::move(message), std::move(cure)));
  };
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    reply(fmt::format("{} is empty", name), "hand in one kernel and one launch plan");
  } else if (text.size() > limit) {
    reply(fmt::format("{} has {} bytes, more than {}", name, text.size(), limit), "shorten it");
  } else if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    reply(fmt::format("{}:{}: holds a NUL character", name, LineOf(text, nul)), "write plain text");
  } else if (const std::size_t bad = FirstBadUtf8(text); bad != std::string_view::npos) {
    reply(fmt::format("{}:{}: is not UTF-8", name, LineOf(text, bad)), "write plain text");
  }
}

/// "rms" of "rms<float, 256>" and of "ns::rms".
std::string BaseName(std::string_view entry) {
  std::string_view name = entry.substr(0, entry.find('<'));
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos)
    name.remove_prefix(colon + 1);
  while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  return std::string(name);
}

void CheckEntries(const GateContext& context, std::vector<Finding>& findings) {
  const std::vector<policy::SourceToken> tokens = policy::ScanSource(context.candidate.kernel);
  const auto has = [&](std::string_view word) {
    return std::ranges::any_of(tokens, [&](const policy::SourceToken& token) {
      return token.text == word && token.kind == policy::SourceToken::Kind::kIdentifier;
    });
  };
  // Macros may assemble names: only what is nowhere in the text is certainly missing.
  const bool macros = std::ranges::any_of(tokens, [](const policy::SourceToken& token) {
    return token.kind == policy::SourceToken::Kind::kDirective && token.text.starts_with("define");
  });
  if (macros) return;
  if (!has("__global__")) {
    findings.push_back(Malformed(FindingKind::kMalformedReply,
                                 "kernel.cu has no __global__ function",
                                 "define the kernels that launch.json names"));
    return;
  }
  for (const ops::KernelPlan& kernel : context.Plan().kernels) {
    if (has(BaseName(kernel.entry))) continue;
    findings.push_back(Malformed(
        FindingKind::kMalformedPlan,
        fmt::format("launch.json: /kernels: kernel.cu has no function '{}'", kernel.entry),
        "name a __global__ function of kernel.cu"));
  }
}

// The plan at many shapes, workloads at full size: an expression that divides by zero or a block of
// 2048 threads shows here.
void CheckShapes(const GateContext& context, verdict::GateResult& result) {
  std::vector<ops::AxisValues> shapes;
  const cases::ShapeRequest request{.max_elements = INT64_MAX,
                                    .count = context.effort.shapes,
                                    .seed = context.options.seed,
                                    .constants = cases::ConstantsOf(context.Plan())};
  const auto generated = cases::GenerateShapes(context.instance, request);
  if (!generated) return SetInconclusive(result, ToString(generated.error()));
  for (const cases::ShapeChoice& shape : *generated) shapes.push_back(shape.axes);
  for (const ops::Workload& workload : context.instance.op.workloads)
    shapes.push_back(workload.axes);
  for (const cases::ShapeChoice& shape : cases::ExtremeShapes(context.instance))
    shapes.push_back(shape.axes);
  for (const ops::AxisValues& variables : shapes) {
    const auto axes = ops::ResolveAxes(context.instance.op, variables);
    if (!axes) continue;
    ++result.cases;
    const auto plan = ops::Resolve(context.Plan(), context.instance, *axes);
    // What needs more memory than there is says something about the shape, not about the plan.
    if (plan || plan.error().kind == ErrorKind::kLimit) continue;
    verdict::Counterexample counterexample =
        TextCounterexample(context, "format", {PlanFinding(plan.error())});
    counterexample.probe.emplace().case_ = {
        .axes = variables, .seed = 0, .profiles = {}, .origin = "edge"};
    counterexample.description = cases::Describe(counterexample.probe->case_, context.instance);
    result.status = verdict::GateStatus::kRefuted;
    result.reason = "the launch plan does not hold for every shape";
    result.counterexamples.push_back(std::move(counterexample));
    return;
  }
}

}  // namespace

void RunFormatGate(GateContext& context, verdict::GateResult& result) {
  std::vector<Finding> findings;
  CheckText("kernel.cu", context.candidate.kernel, kMaxKernelBytes, findings);
  CheckText("launch.json", context.candidate.launch, kMaxLaunchBytes, findings);
  if (!findings.empty()) return RefuteText(context, std::move(findings), result);
  const auto document = ParseJson(context.candidate.launch, "launch.json");
  if (!document) return RefuteText(context, {PlanFinding(document.error())}, result);
  auto plan = ops::ParseLaunchPlan(*document, "launch.json", context.instance.op);
  if (!plan) return RefuteText(context, {PlanFinding(plan.error())}, result);
  if (plan->kernels.empty() || plan->kernels.size() > kMaxKernels) {
    return RefuteText(context,
                      {Malformed(FindingKind::kMalformedPlan,
                                 fmt::format("launch.json: /kernels: {} kernels, not 1 to {}",
                                             plan->kernels.size(), kMaxKernels),
                                 "list the kernels in the order in which they run")},
                      result);
  }
  context.plan = *std::move(plan);
  CheckEntries(context, findings);
  if (!findings.empty()) return RefuteText(context, std::move(findings), result);
  result.status = verdict::GateStatus::kPassed;
  CheckShapes(context, result);
  if (result.status == verdict::GateStatus::kPassed) {
    result.reason = fmt::format("one kernel file, one plan that holds for {} shapes", result.cases);
  }
}

}  // namespace assay::gates

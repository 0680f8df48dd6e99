#include "dataset/testing/synthetic.h"

#include <array>

#include "base/digest.h"
#include "base/rng.h"
#include "rewards/score.h"

namespace assay::testing {
namespace {

using dataset::AttemptRecord;
using dataset::RunRecord;

constexpr auto kOps = std::to_array<const char*>(
    {"rms_norm", "layer_norm", "softmax", "cross_entropy", "row_sum", "cumsum", "gemm", "attention",
     "scatter_add", "rope", "gelu", "top_k"});
constexpr auto kModels = std::to_array<const char*>({"openai/a", "anthropic/b", "openai/c"});

struct Defect {
  const char* gate;
  FindingKind kind;
};
constexpr auto kDefects = std::to_array<Defect>({{"compile", FindingKind::kCompileError},
                                                 {"memory", FindingKind::kOutOfBounds},
                                                 {"race", FindingKind::kDataRace},
                                                 {"numeric", FindingKind::kWrongValue},
                                                 {"precision", FindingKind::kPrecisionRow},
                                                 {"holdout", FindingKind::kWrongValue}});
constexpr auto kGates = std::to_array<const char*>({"format", "policy", "compile", "memory", "race",
                                                    "numeric", "precision", "property", "holdout"});

verdict::Verdict VerdictFor(const dataset::Target& target, const std::string& kernel,
                            const std::string& launch, const Defect* defect, std::uint64_t seed) {
  verdict::Verdict verdict;
  verdict.instance = target.Id();
  verdict.engine = "emulator";
  for (const char* const name : kGates) {
    verdict::GateResult& result = verdict.gates.emplace_back();
    result.gate = name;
    result.cases = 9;
    result.steps = 1000;
    result.seconds = 0.25;
    if (defect == nullptr || std::string_view(defect->gate) != name) {
      result.status = verdict::GateStatus::kPassed;
      continue;
    }
    result.status = verdict::GateStatus::kRefuted;
    Finding finding;
    finding.kind = defect->kind;
    finding.message = std::string(Name(defect->kind)) + " at line 4";
    for (const std::uint32_t line : {4u, 6u}) {
      Access access;
      access.what = line == 4 ? "write" : "read";
      access.site.file = "kernel.cu";
      access.site.line = line;
      finding.accesses.push_back(access);
    }
    if (defect->kind == FindingKind::kPrecisionRow) {
      ErrorShare share;
      share.site.file = "kernel.cu";
      share.site.line = 5;
      share.share = 0.97;
      finding.origins = {share};
    }
    verdict::Counterexample counterexample;
    counterexample.gate = name;
    counterexample.op = target.op;
    counterexample.op_digest = target.op_digest;
    counterexample.binding = target.binding;
    counterexample.arch = target.arch;
    counterexample.engine = "emulator";
    counterexample.kernel = kernel;
    counterexample.launch = launch;
    cases::Case value;
    value.axes = {{"rows", static_cast<std::int64_t>(seed % 7 + 1)}, {"hidden", 5}};
    value.seed = seed;
    value.origin = "shrunk";
    counterexample.probe = cases::Probe{.case_ = value};
    counterexample.description = "rows=3 hidden=5";
    counterexample.findings = {finding};
    result.counterexamples = {counterexample};
    verdict.outcome = verdict::Outcome::kRefuted;
    verdict.reason = std::string(name) + ": " + finding.message;
    return verdict;
  }
  verdict.outcome = verdict::Outcome::kAccepted;
  verdict.reason = "every gate passed";
  return verdict;
}

std::string Reply(const std::string& kernel, const std::string& launch) {
  return "Here it is.\n\n```cuda\n" + kernel + "```\n\n```json\n" + launch + "\n```\n";
}

}  // namespace

std::string SyntheticKernel(int shape, std::uint64_t dress, int size) {
  const std::string tag = std::to_string(dress % 1000);
  const auto name = [&](const char* base) { return base + tag; };
  std::string text = "// variant " + std::to_string(dress) + "\n";
  text += "extern \"C\" __global__ void " + name("run") + "(const float* " + name("in") +
          ", float* " + name("out") + ", long long " + name("n") + ") {\n";
  text += "  long long " + name("i") + " = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n";
  text += "  float " + name("sum") + " = " + std::to_string(size) + ".0f;" +
          (dress % 2 == 0 ? "  // start" : "") + "\n";
  text += "  if (" + name("i") + " >= " + name("n") + ") return;\n";
  // The shape chooses the flow, and what is called in it.
  constexpr auto kBlocks = std::to_array<const char*>(
      {"  for (int k = 0; k < 8; ++k) { if (k & 1) @ += F(~[k]); else @ -= ~[k]; }\n",
       "  while (F(@) > 1.0f) { @ *= 0.5f; if (@ < 0.0f) break; }\n",
       "  __syncthreads();\n  if (@ > 0.0f && F(@) < 4.0f) @ = __shfl_xor_sync(0xffffffffu, @, "
       "1);\n",
       "  do { @ = F(@); } while (@ > 2.0f);\n",
       "  switch (threadIdx.x & 3) { case 0: @ += F(~[0]); break; default: @ -= 1.0f; }\n"});
  constexpr auto kCalls = std::to_array<const char*>(
      {"expf", "logf", "sqrtf", "sinf", "cosf", "tanhf", "rsqrtf", "fabsf"});
  Rng rng(static_cast<std::uint64_t>(shape));
  const std::uint64_t blocks = 4 + rng.Below(6);
  std::string body;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    std::string piece = kBlocks[rng.Below(kBlocks.size())];
    piece.replace(piece.find("F("), 1, kCalls[rng.Below(kCalls.size())]);
    body += piece;
  }
  for (const char c : body) {
    if (c == '@')
      text += name("sum");
    else if (c == '~')
      text += name("in");
    else
      text += c;
  }
  return text + "  " + name("out") + "[" + name("i") + "] = " + name("sum") + ";\n}\n";
}

RunRecord SyntheticRun(std::uint64_t seed, int number, const std::string& op) {
  Rng rng(DeriveSeed(seed, op + std::to_string(number)));
  RunRecord record;
  record.identity = Sha256Hex(op + std::to_string(seed) + "/" + std::to_string(number));
  record.name = "run-" + std::to_string(number);
  record.request = {{"schema", "assay.run/1"}, {"settings", {{"feedback", "full"}}}};
  record.judge = {{"assay", "0.1.0"}, {"nvrtc", "13.0"}};
  record.started = "2026-01-01T00:00:00Z";
  record.licence = "CC-BY-4.0";
  record.provenance = "made up";
  const dataset::Target target{.op = op,
                               .op_digest = Sha256Hex(op),
                               .binding = {{"T", rng.Below(2) == 0 ? "bf16" : "f32"}},
                               .arch = "sm_90"};
  const char* const model = kModels[rng.Below(kModels.size())];
  const int attempts = static_cast<int>(2 + rng.Below(7));
  const bool succeeds = rng.Below(4) != 0;
  std::vector<dataset::ChatMessage> prompt = {{"system", "You write CUDA kernels."},
                                              {"user", "Write " + target.Id() + "."}};
  for (int n = 1; n <= attempts; ++n) {
    AttemptRecord attempt{.number = n,
                          .parent = n - 1,
                          .kind = n == 1 ? "first" : "repair",
                          .target = target,
                          .model = model,
                          .prompt = prompt,
                          .input_tokens = 1000,
                          .output_tokens = 500};
    const std::uint64_t dress = rng.Next();
    const int shape = static_cast<int>(rng.Below(300));
    attempt.kernel = SyntheticKernel(shape, dress, static_cast<int>(16 + rng.Below(64)));
    attempt.launch = "{\"schema\": \"assay.launch/1\", \"kernels\": [{\"entry\": \"run" +
                     std::to_string(dress % 1000) + "\"}]}";
    attempt.reply = Reply(*attempt.kernel, *attempt.launch);
    const Defect* const defect =
        n == attempts && succeeds ? nullptr : &kDefects[rng.Below(kDefects.size())];
    attempt.verdict =
        VerdictFor(target, *attempt.kernel, *attempt.launch, defect, rng.Next() % 1000);
    record.outcome = Name(attempt.verdict.outcome);
    prompt.push_back({"assistant", attempt.reply});
    prompt.push_back({"user", "It was refuted: " + attempt.verdict.reason});
    record.attempts.push_back(std::move(attempt));
  }
  return record;
}

std::vector<RunRecord> SyntheticRuns(std::uint64_t seed, std::size_t attempts) {
  std::vector<RunRecord> runs;
  std::size_t have = 0;
  for (int number = 0; have < attempts; ++number) {
    runs.push_back(
        SyntheticRun(seed, number, kOps[static_cast<std::size_t>(number) % kOps.size()]));
    have += runs.back().attempts.size();
  }
  return runs;
}

}  // namespace assay::testing

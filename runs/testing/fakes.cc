#include "runs/testing/fakes.h"

#include <stdlib.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"

namespace assay::testing {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "assay-runs-XXXXXX").string();
  ASSAY_CHECK(::mkdtemp(pattern.data()) != nullptr, "mkdtemp");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ops::Instance RmsNorm() {
  auto op = ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / "rms_norm");
  ASSAY_CHECK(op.has_value(), op ? "" : ToString(op.error()));
  auto instance = ops::MakeInstance(*std::move(op), {{"T", "bf16"}}, "sm_90");
  ASSAY_CHECK(instance.has_value(), instance ? "" : ToString(instance.error()));
  return *std::move(instance);
}

std::string ReplyWith(const std::string& words) {
  return "Here it is.\n\n```cuda\n// judge: " + words +
         "\nextern \"C\" __global__ void rms(const float* x) {\n  __shared__ float s[1];\n  s[0] = "
         "x[0];\n}\n```\n\n"
         "```json\n{\"schema\": \"assay.launch/1\", \"kernels\": []}\n```\n";
}

verdict::Verdict VerdictOf(const ops::Instance& instance, const verdict::Candidate& candidate,
                           const std::string& words) {
  std::istringstream in(words);
  std::string what, gate_name, kind_name;
  in >> what >> gate_name >> kind_name;
  verdict::Verdict verdict;
  verdict.instance = instance.Id();
  verdict.engine = "scripted";
  const auto add = [&](const std::string& name,
                       verdict::GateStatus status) -> verdict::GateResult& {
    verdict::GateResult result;
    result.gate = name;
    result.status = status;
    result.cases = 7;
    verdict.gates.push_back(std::move(result));
    return verdict.gates.back();
  };
  for (const char* const name :
       {"format", "policy", "compile", "memory", "race", "numeric", "precision", "holdout"}) {
    if (what == "refute" && name == gate_name) {
      verdict::GateResult& result = add(name, verdict::GateStatus::kRefuted);
      Finding finding;
      finding.kind = ParseFindingKind(kind_name).value_or(FindingKind::kWrongValue);
      finding.message = "the " + gate_name + " gate found " + kind_name;
      Access access;
      access.what = "write";
      access.site.file = "kernel.cu";
      access.site.line = 4;
      finding.accesses.push_back(access);
      verdict::Counterexample counterexample;
      counterexample.gate = name;
      counterexample.op = instance.op.name;
      counterexample.op_digest = instance.op.digest;
      for (const auto& [variable, dtype] : instance.binding)
        counterexample.binding[variable] = Name(dtype);
      counterexample.arch = instance.arch;
      counterexample.engine = "scripted";
      counterexample.kernel = candidate.kernel;
      counterexample.launch = candidate.launch;
      cases::Case value;
      value.axes = {{"rows", 3}, {"hidden", 5}};
      value.seed = gate_name == "holdout" ? 424242 : 17;
      value.origin = "shrunk";
      counterexample.probe.emplace().case_ = value;
      counterexample.findings = {finding};
      result.counterexamples = {counterexample};
      verdict.outcome = verdict::Outcome::kRefuted;
      verdict.reason = finding.message;
      return verdict;
    }
    if (what == "inconclusive" && std::string_view(name) == "numeric") {
      add(name, verdict::GateStatus::kInconclusive).reason =
          "the instruction foo.bar is not covered";
      verdict.outcome = verdict::Outcome::kInconclusive;
      verdict.reason = "numeric: the instruction foo.bar is not covered";
      return verdict;
    }
    add(name, verdict::GateStatus::kPassed);
  }
  verdict.outcome = what == "internal" ? verdict::Outcome::kInternalError
                    : what == "accept" ? verdict::Outcome::kAccepted
                                       : verdict::Outcome::kInconclusive;
  verdict.reason = what;
  return verdict;
}

std::string Slurp(const Path& file) {
  auto text = ReadFile(file);
  return text ? *std::move(text) : "(cannot read " + file.string() + ")";
}

std::string SortedLines(std::string_view text) {
  std::vector<std::string_view> lines = SplitLines(text);
  std::ranges::sort(lines);
  std::string sorted;
  for (const std::string_view line : lines) sorted += std::string(line) + "\n";
  return sorted;
}

std::vector<std::string> FilesBelow(const Path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files.push_back(entry.path().lexically_relative(folder).generic_string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace assay::testing

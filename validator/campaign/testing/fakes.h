// A compiler, an engine and an oracle without processes, and the op that they know: y[i] = 2 x[i]
// for n elements.
//
// The engine runs a "kernel" that is a C++ function of the execution and its buffers, so that tests
// can misbehave in every way that a report can tell.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "validator/cases/test_instance.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/oracle/oracle.h"
#include "validator/ptx/facts/compute.h"
#include "validator/ptx/facts/skeleton.h"
#include "validator/ptx/parser.h"
#include "validator/verdict/candidate.h"

namespace assay::campaign {

inline ops::Instance DoubleInstance() {
  ops::Instance instance;
  instance.op.name = "double";
  instance.op.digest = "digest";
  instance.op.axes = {cases::VariableAxis("n", 1, 1 << 20)};
  instance.op.inputs = {cases::FloatTensor("x", {"n"})};
  instance.op.outputs = {cases::FloatTensor("y", {"n"})};
  return instance;
}

inline verdict::Candidate DoubleCandidate() {
  return {.kernel =
              "__global__ void twice(const float* x, float* y, long long n) {\n"
              "  long long i = blockIdx.x * 128ll + threadIdx.x;\n"
              "  if (i < n) y[i] = 2 * x[i];\n"
              "}\n",
          .launch = R"JSON({"schema": "assay.launch/1", "kernels": [
  {"entry": "twice", "grid": ["ceil_div(n, 128)"], "block": [128], "args": ["x", "y", "n"]}]})JSON"};
}

class FakeCompiler final : public engine::Compiler {
 public:
  engine::CompileOutcome outcome = Good();
  std::optional<engine::CompileOutcome>
      assembled;               ///< Where machine code is asked for; else the same.
  std::atomic<int> calls = 0;  ///< Of these two.

  static engine::CompileOutcome Good() {
    engine::CompileOutcome outcome;
    SetPtx(outcome.kernel, ".version 8.0\n.target sm_90\n.address_size 64\n");
    outcome.kernel.lowered = {{"twice", "_Z5twicePKfPfx"}};
    outcome.kernel.resources["_Z5twicePKfPfx"].registers = 16;
    outcome.kernel.compiler = "fake";
    return outcome;
  }
  /// With what is known of it, as the compile worker does.
  static void SetPtx(engine::CompiledKernel& kernel, const std::string& text) {
    kernel.ptx = text;
    kernel.facts.reset();
    const auto module = ptx::Parse(text, "ptx");
    kernel.facts_fault = module ? "" : ToString(module.error());
    if (module) {
      facts::Facts facts = facts::FactsOf(*module, {});
      if (facts.fault.empty()) kernel.skeleton = facts::SkeletonOf(*module);
      kernel.facts = std::make_shared<const facts::Facts>(std::move(facts));
    }
  }
  Result<engine::CompileOutcome> Compile(const engine::CompileRequest& request) override {
    ++calls;
    return request.want_cubin && assembled ? *assembled : outcome;
  }
};

/// What a fake kernel sees.
struct FakeRun {
  const Execution& execution;
  std::span<SharedMemory* const> buffers;
  Report report;

  std::size_t Find(const std::string& name) const {
    for (std::size_t i = 0; i < execution.buffers.size(); ++i) {
      if (execution.buffers[i].name == name) return i;
    }
    ADD_FAILURE() << "no buffer " << name;
    return 0;
  }
  bool Has(const std::string& name) const {
    return std::ranges::find(execution.buffers, name, &BufferSpec::name) != execution.buffers.end();
  }
  float* Floats(const std::string& name) const {
    return reinterpret_cast<float*>(buffers[Find(name)]->bytes().data());
  }
  std::int64_t n() const { return execution.buffers[Find("x")].elements; }
  std::uint64_t launches() const { return execution.launches.size(); }
};

class FakeEngine final : public engine::Engine {
 public:
  using Kernel = std::function<void(FakeRun&)>;
  explicit FakeEngine(Kernel does = Good()) : kernel(std::move(does)) {}

  static Kernel Good() {
    return [](FakeRun& run) {
      for (std::int64_t i = 0; i < run.n(); ++i) run.Floats("y")[i] = 2 * run.Floats("x")[i];
    };
  }

  std::string_view name() const override { return "fake"; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust) override {
    FakeRun run{execution, buffers, {}};
    run.report.unwritten_bytes.assign(buffers.size(), 0);
    run.report.first_unwritten.assign(buffers.size(), -1);
    run.report.watched = execution.checks;
    kernel(run);
    run.report.counters.steps += static_cast<std::uint64_t>(run.n()) * 10;
    const std::lock_guard lock(mutex_);
    ++runs;
    return run.report;
  }
  Kernel kernel;
  int runs = 0;

 private:
  std::mutex mutex_;
};

class FakeOracle final : public oracle::Oracle {
 public:
  FakeOracle(engine::Compiler& compiler, engine::Engine& engine) : Oracle(compiler, engine) {}
  Status Prepare(const ops::Instance&) override {
    if (broken)
      return Fail(ErrorKind::kMalformedInput, "does not compile: x is undefined", "reference.cu");
    return {};
  }
  Result<std::shared_ptr<const oracle::Truth>> Evaluate(
      const ops::Instance&, const cases::Case&, const cases::Materialised& inputs) override {
    if (fail) return Fail(ErrorKind::kUnsupported, "the reference is not covered", "reference.cu");
    const Tensor& x = inputs.inputs.find("x")->second;
    auto truth = std::make_shared<oracle::Truth>();
    oracle::OutputTruth& y = truth->outputs["y"];
    y.shape = x.shape;
    for (std::int64_t i = 0; i < x.elements; ++i) {
      const double value = 2 * x.At(i);
      y.value.push_back(value);
      y.allowance.push_back(UlpAt(DType::kF32, value));
      y.typical.push_back(UlpAt(DType::kF32, value));
      y.independent.push_back(UlpAt(DType::kF32, value));
      y.contributions.push_back(1);
    }
    return std::shared_ptr<const oracle::Truth>(std::move(truth));
  }
  Result<oracle::SparseTruth> EvaluateSlice(const ops::Instance& instance, const cases::Case& value,
                                            const cases::Materialised& inputs,
                                            oracle::SparseElements wanted, std::uint64_t seed,
                                            const oracle::PartEffort& effort) override {
    if (whole_only) return Fail(ErrorKind::kUnsupported, "cannot be run in part", "test");
    if (!slices)
      return Oracle::EvaluateSlice(instance, value, inputs, std::move(wanted), seed, effort);
    return Points(inputs, wanted);
  }
  Result<oracle::SparseTruth> EvaluateSome(const ops::Instance&, const cases::Case&,
                                           const cases::Materialised& inputs,
                                           const oracle::SparseElements& wanted) override {
    if (!whole_only) return Fail(ErrorKind::kUnsupported, "in parts alone", "test");
    return Points(inputs, wanted);
  }
  static oracle::SparseTruth Points(const cases::Materialised& inputs,
                                    const oracle::SparseElements& wanted) {
    const Tensor& x = inputs.inputs.find("x")->second;
    oracle::SparseTruth truth;
    const auto of_y = wanted.find("y");
    if (of_y == wanted.end()) return truth;  // Asked whether there is any.
    // As of the real one, none that is 0.
    for (const std::int64_t i : of_y->second) {
      if (x.At(i) != 0) truth["y"].push_back({i, 2 * x.At(i), UlpAt(DType::kF32, 2 * x.At(i))});
    }
    return truth;
  }
  bool slices = false;      ///< There are truths of parts.
  bool whole_only = false;  ///< There are none, though the whole reference runs.
  bool fail = false;
  bool broken = false;
};

/// An op, a candidate and all that runs it.
struct FakeParts {
  explicit FakeParts(FakeEngine::Kernel kernel = FakeEngine::Good()) : engine(std::move(kernel)) {}
  ops::Instance instance = DoubleInstance();
  verdict::Candidate candidate = DoubleCandidate();
  FakeCompiler compiler;
  FakeEngine engine;
  FakeOracle oracle{compiler, engine};
};

inline Finding MakeFinding(FindingKind kind, std::uint32_t line, std::string message) {
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  Access access;
  access.what = "write";
  access.site.file = "kernel.cu";
  access.site.line = line;
  finding.accesses.push_back(std::move(access));
  return finding;
}

}  // namespace assay::campaign

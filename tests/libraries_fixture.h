// Kernels of tests/libraries: compiled afresh by NVRTC in its jail, run by the emulator with all
// monitors under every scheduling policy. Parameterised by the architecture.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "base/rng.h"
#include "validator/emu/emulator.h"
#include "validator/engine/toolbox.h"

namespace assay {

/// Values of a buffer, as numbers.
using Values = std::vector<double>;

class Libraries : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    if (toolbox_ != nullptr) return;
    auto toolbox = engine::Toolbox::Create({});
    if (toolbox) toolbox_ = toolbox->release();
  }
  static void TearDownTestSuite() {
    delete toolbox_;
    toolbox_ = nullptr;
  }

  /// Compiles tests/libraries/NAME.cu for this architecture.
  void Load(const std::string& name) {
    ASSERT_NE(toolbox_, nullptr) << "no jail: assay doctor says what is missing";
    const auto source =
        ReadFile(std::string(ASSAY_SOURCE_DIR) + "/tests/libraries/" + name + ".cu");
    ASSERT_TRUE(source);
    engine::CompileRequest request;
    request.source = *source;
    request.file_name = name + ".cu";
    request.arch = GetParam();
    request.want_cubin = false;
    const auto outcome = toolbox_->compiler().Compile(request);
    ASSERT_TRUE(outcome) << ToString(outcome.error());
    for (const engine::Diagnostic& diagnostic : outcome->diagnostics) {
      EXPECT_NE(diagnostic.severity, engine::Diagnostic::Severity::kError)
          << diagnostic.file << ":" << diagnostic.line << ": " << diagnostic.message;
    }
    ASSERT_EQ(outcome->kind, engine::CompileOutcome::Kind::kCompiled) << outcome->detail;
    const auto program = emu::Program::Load(outcome->kernel.ptx);
    ASSERT_TRUE(program) << ToString(program.error());
    program_ = *program;
  }

  std::uint32_t In(DType dtype, const Values& values) {
    const std::uint32_t index =
        Add(dtype, values.size(), BufferRole::kInput, BufferFill::kProvided);
    for (std::size_t i = 0; i < values.size(); ++i)
      StoreFromDouble(dtype, values[i], storage_[index].data() + i * SizeOf(dtype));
    return index;
  }
  std::uint32_t Out(DType dtype, std::size_t elements,
                    BufferFill fill = BufferFill::kUninitialised) {
    return Add(dtype, elements, BufferRole::kOutput, fill);
  }

  static Argument Pointer(std::uint32_t buffer) {
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.buffer = buffer;
    return argument;
  }
  static Argument Int(std::int32_t value) {
    Argument argument;
    argument.dtype = DType::kI32;
    argument.bytes.resize(4);
    std::memcpy(argument.bytes.data(), &value, 4);
    return argument;
  }

  /// Runs one kernel under every scheduling policy, the plain one last, so that its results stay.
  void Run(const std::string& entry, Dim3 grid, Dim3 block, std::vector<Argument> args,
           bool cooperative = false, std::uint64_t shared = 0) {
    ASSERT_NE(program_, nullptr);
    Launch launch;
    launch.entry = entry;
    launch.grid = grid;
    launch.block = block;
    launch.shared_bytes = shared;
    launch.cooperative = cooperative;
    launch.args = std::move(args);
    execution_.launches = {launch};
    using Policy = Schedule::Policy;
    for (const Policy policy :
         {Policy::kReversed, Policy::kPermuted, Policy::kPriorities, Policy::kSequential}) {
      execution_.schedule = {.policy = policy, .seed = 7};
      const std::vector<std::span<std::byte>> spans(storage_.begin(), storage_.end());
      const Report report = emu::Run(*program_, execution_, spans);
      ASSERT_EQ(report.stop, Stop::kCompleted) << entry << ": " << report.reason << Show(report);
      ASSERT_TRUE(report.findings.empty()) << entry << Show(report);
    }
  }

  /// One launch under the plain schedule, whatever comes of it.
  Report Launched(const std::string& entry, Dim3 grid, Dim3 block, std::vector<Argument> args,
                  std::uint64_t shared) {
    Launch launch;
    launch.entry = entry;
    launch.grid = grid;
    launch.block = block;
    launch.shared_bytes = shared;
    launch.args = std::move(args);
    execution_.launches = {launch};
    execution_.schedule = {};
    const std::vector<std::span<std::byte>> spans(storage_.begin(), storage_.end());
    return emu::Run(*program_, execution_, spans);
  }

  static std::string Show(const Report& report) {
    std::string text;
    for (const Finding& finding : report.findings) {
      text += "\n  " + std::string(Name(finding.kind)) + ": " + finding.message;
      for (const Access& access : finding.accesses) {
        text += "\n    " + access.what + " " + access.site.file + ":" +
                std::to_string(access.site.line) + " " + access.site.instruction;
      }
    }
    return text;
  }

  Values Of(std::uint32_t buffer) const {
    const DType dtype = execution_.buffers[buffer].dtype;
    Values values;
    for (std::size_t i = 0; i * SizeOf(dtype) < storage_[buffer].size(); ++i)
      values.push_back(LoadAsDouble(dtype, storage_[buffer].data() + i * SizeOf(dtype)));
    return values;
  }

  /// Integers from -limit to limit.
  static Values Random(std::size_t count, int limit, std::uint64_t seed = 1) {
    Rng rng(seed);
    Values values(count);
    for (double& value : values)
      value = static_cast<double>(rng.Below(2 * static_cast<std::uint64_t>(limit) + 1)) - limit;
    return values;
  }

  inline static engine::Toolbox* toolbox_ = nullptr;

 private:
  std::uint32_t Add(DType dtype, std::size_t elements, BufferRole role, BufferFill fill) {
    BufferSpec spec;
    spec.name = "buffer" + std::to_string(storage_.size());
    spec.dtype = dtype;
    spec.elements = static_cast<std::int64_t>(elements);
    spec.role = role;
    spec.fill = fill;
    execution_.buffers.push_back(spec);
    storage_.emplace_back(SizeOf(dtype) * elements);
    return static_cast<std::uint32_t>(storage_.size() - 1);
  }

  std::shared_ptr<const emu::Program> program_;
  Execution execution_;
  std::vector<std::vector<std::byte>> storage_;
};

}  // namespace assay

// Building executions for the emulator's tests: buffers from vectors, launches, and what came out.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/file.h"
#include "validator/emu/emulator.h"

namespace assay::emu {

/// One run: add buffers, scalars and a launch, then Run.
class TestRun {
 public:
  explicit TestRun(std::string ptx) : ptx_(std::move(ptx)) {}

  static std::string TestData(const std::string& name) {
    auto text = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/validator/emu/testdata/" + name);
    EXPECT_TRUE(text) << (text ? "" : ToString(text.error()));
    return text ? *text : std::string();
  }

  /// Adds a buffer that holds `values`, converted to `dtype`; returns its index.
  std::uint32_t Buffer(const std::string& name, DType dtype, const std::vector<double>& values,
                       BufferRole role = BufferRole::kInput) {
    const std::uint32_t index =
        Uninitialised(name, dtype, static_cast<std::int64_t>(values.size()), role);
    execution.buffers[index].fill = BufferFill::kProvided;
    for (std::size_t i = 0; i < values.size(); ++i)
      StoreFromDouble(dtype, values[i], storage_[index].data() + i * SizeOf(dtype));
    return index;
  }
  std::uint32_t Uninitialised(const std::string& name, DType dtype, std::int64_t elements,
                              BufferRole role = BufferRole::kOutput) {
    BufferSpec spec;
    spec.name = name;
    spec.dtype = dtype;
    spec.elements = elements;
    spec.role = role;
    spec.fill = BufferFill::kUninitialised;
    execution.buffers.push_back(spec);
    storage_.emplace_back(SizeOf(dtype) * static_cast<std::size_t>(elements));
    return static_cast<std::uint32_t>(storage_.size() - 1);
  }
  std::uint32_t Zeros(const std::string& name, DType dtype, std::int64_t elements,
                      BufferRole role = BufferRole::kOutput) {
    const std::uint32_t index = Uninitialised(name, dtype, elements, role);
    execution.buffers[index].fill = BufferFill::kZero;
    return index;
  }

  static Argument Ptr(std::uint32_t buffer) {
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.buffer = buffer;
    argument.name = "buffer";
    return argument;
  }
  template <class T>
  static Argument Value(DType dtype, T value) {
    Argument argument;
    argument.name = "value";
    argument.dtype = dtype;
    argument.bytes.resize(sizeof(T));
    std::memcpy(argument.bytes.data(), &value, sizeof(T));
    return argument;
  }
  static Argument Int(std::int32_t value) { return Value(DType::kI32, value); }
  static Argument Float(float value) { return Value(DType::kF32, value); }

  Launch& AddLaunch(const std::string& entry, Dim3 grid, Dim3 block, std::vector<Argument> args,
                    std::uint64_t shared = 0) {
    Launch launch;
    launch.entry = entry;
    launch.grid = grid;
    launch.block = block;
    launch.args = std::move(args);
    launch.shared_bytes = shared;
    execution.launches.push_back(launch);
    return execution.launches.back();
  }

  Report Run() {
    auto program = Program::Load(ptx_);
    if (!program) {
      ADD_FAILURE() << ToString(program.error());
      Report report;
      report.stop = Stop::kUnsupported;
      report.reason = ToString(program.error());
      return report;
    }
    std::vector<std::span<std::byte>> spans(storage_.begin(), storage_.end());
    return emu::Run(**program, execution, spans);
  }

  double At(std::uint32_t buffer, std::size_t index) const {
    const DType dtype = execution.buffers[buffer].dtype;
    return LoadAsDouble(dtype, storage_[buffer].data() + index * SizeOf(dtype));
  }
  const std::vector<std::byte>& Bytes(std::uint32_t buffer) const { return storage_[buffer]; }

  Execution execution;

 private:
  std::string ptx_;
  std::vector<std::vector<std::byte>> storage_;
};

/// Every finding on a line, for failure messages.
inline std::string Show(const Report& report) {
  std::string text = std::string(Name(report.stop)) + " " + report.reason;
  for (const Finding& finding : report.findings) {
    text += "\n  " + std::string(Name(finding.kind)) + ": " + finding.message + " [" +
            finding.missing + "] " + finding.cause;
    for (const Access& access : finding.accesses) {
      text += "\n    " + access.what + " " + access.site.file + ":" +
              std::to_string(access.site.line) + " ptx " + std::to_string(access.site.ptx_line) +
              " " + access.site.instruction + " x" + std::to_string(access.threads);
    }
  }
  return text;
}

inline bool HasFinding(const Report& report, FindingKind kind) {
  for (const Finding& finding : report.findings) {
    if (finding.kind == kind) return true;
  }
  return false;
}

}  // namespace assay::emu

// The sanitizing PTX emulator: runs kernels on the host and reports what they do wrong.
//
// Model: a grid of blocks (CTAs), warps of 32 lanes with independent thread scheduling and
// reconvergence, generic, global, shared, local, constant and parameter memory with exact bounds.
// Deterministic: the same Execution gives the same Report and the same bytes, on every machine.
// Monitors (definedness, races, barriers) are compiled in or out per run, not tested per access.
//
// Cost: decoding is linear in the PTX; a Program is immutable, may be shared by threads and is
// meant to be cached by digest.
//
//   ASSAY_TRY(auto program, emu::Program::Load(ptx_text));
//   std::vector<std::span<std::byte>> buffers = ...;  // in the order of execution.buffers
//   Report report = emu::Run(*program, execution, buffers);
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "validator/execution/execution.h"

namespace assay::emu {

class Program {
 public:
  /// Parses, verifies and decodes. An instruction that is not covered is ErrorKind::kUnsupported,
  /// naming it and its line; text that is not PTX is kMalformedInput.
  static Result<std::shared_ptr<const Program>> Load(std::string_view ptx);
  ~Program();

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  Program();
  std::unique_ptr<Impl> impl_;
};

/// Runs `execution` (whose `ptx` is ignored in favour of `program`). `buffers[i]` backs
/// execution.buffers[i], SizeOf(dtype)*elements bytes; buffers with BufferFill::kUninitialised or
/// kZero are filled here, those above 64 MiB page by page as the kernels touch them: with
/// checks.initialisation, and where they are to hold zeros, pages that no kernel touched keep what
/// they held (hand in fresh memory).
/// Never throws; never reads or writes outside of the spans.
Report Run(const Program& program, const Execution& execution,
           std::span<const std::span<std::byte>> buffers);

}  // namespace assay::emu

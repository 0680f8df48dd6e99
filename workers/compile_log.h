// Reads the log of an NVRTC compilation: diagnostics of the front end and of ptxas, and the
// resources that ptxas reports.
//
//   kernel.cu(3): warning #177-D: variable "unused" was declared but never referenced
//     int unused;
//         ^
//   ptxas info    : Compiling entry function 'k' for 'sm_90'
//   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 28 registers, used 1 barriers, 1024 bytes smem
//
// A candidate can put lines into the log that look like ptxas's (a [[deprecated]] message with a
// line break). Where a function is reported more than once the worst numbers count, so that a
// forged report cannot hide a spill.
//
// Diagnostics located in files that are not ours (neither the kernel, nor a given header, nor the
// toolkit) lose their text: an #include of a file of the host must not carry its content into the
// log, the model's prompt and the run folder.
//
// Pure; linear in the log; never fails: what it does not understand stays in the log as text.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::workers {

struct Diagnostic {
  std::string severity;  ///< "error", "warning", "remark" or "note".
  std::string
      file;  ///< "kernel.cu"; "ptx" for ptxas's complaints about PTX; empty if it names none.
  std::uint32_t line = 0;    ///< 0 if it names none.
  std::uint32_t column = 0;  ///< 1-based, from the caret; 0 if there is none.
  std::string code;          ///< "177-D", or empty.
  std::string message;
  std::string excerpt;  ///< The source line, as NVRTC printed it.
  std::string context;  ///< Instantiation stack and the like, at most a few lines.
  bool operator==(const Diagnostic&) const = default;
};

/// What ptxas said about one function.
struct PtxasReport {
  bool entry = false;
  std::uint64_t stack_bytes = 0;
  std::uint64_t spill_store_bytes = 0;
  std::uint64_t spill_load_bytes = 0;
  std::uint64_t registers = 0;
  std::uint64_t barriers = 0;
  std::uint64_t shared_bytes = 0;  ///< Static shared memory.
  std::uint64_t local_bytes = 0;
  std::uint64_t constant_bytes = 0;
  bool operator==(const PtxasReport&) const = default;
};

struct CompileLog {
  std::vector<Diagnostic> diagnostics;  ///< In the order of the log; at most kMaxDiagnostics.
  std::size_t dropped = 0;              ///< How many more there were.
  std::map<std::string, PtxasReport> functions;  ///< By mangled name.
  std::string text;  ///< The log for people: foreign text withheld, cut to a limit.
  bool truncated = false;
};

inline constexpr std::size_t kMaxDiagnostics = 64;
inline constexpr std::size_t kMaxLogBytes = 64u << 10;

/// `is_ours` says whether text of a file may be shown.
CompileLog ReadCompileLog(std::string_view log,
                          const std::function<bool(std::string_view)>& is_ours);

}  // namespace assay::workers

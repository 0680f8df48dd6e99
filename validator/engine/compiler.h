// Compilation of untrusted CUDA C++ in a jailed worker.
//
// The compile options are the judge's, never the author's. Results are cached by digest of
// everything that went in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "validator/engine/trust.h"
#include "validator/findings/finding.h"
#include "validator/ptx/facts/facts.h"

namespace assay::engine {

struct CompileRequest {
  std::string source;
  std::string file_name = "kernel.cu";
  std::map<std::string, std::string> headers;  ///< Virtual headers: name -> text.
  std::string pre_include;                     ///< One of them, read before the source; or empty.
  std::vector<std::string> defines;            ///< "NAME=VALUE", from the judge.
  std::vector<std::string>
      user_options;  ///< From the user's own command line or sanitize plan; never from a candidate.
  std::string arch = "sm_90";
  Trust trust = Trust::kCandidate;   ///< Who wrote the source.
  std::vector<std::string> entries;  ///< Kernel names or template instantiations.
  bool want_cubin = true;            ///< Machine code and resource use as well.
  bool want_facts = true;            ///< What is known of the program.
};

struct Diagnostic {
  enum class Severity : std::uint8_t { kError, kWarning, kRemark } severity = Severity::kError;
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;  ///< 1-based; 0: unknown.
  std::string message;
  std::string context;  ///< What was being instantiated and the like; often empty.
};

/// Per entry, as the target's assembler reports it.
struct Resources {
  std::uint32_t registers = 0;
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t stack_bytes = 0;
  std::uint64_t spill_store_bytes = 0;
  std::uint64_t spill_load_bytes = 0;
};

struct CompiledKernel {
  std::string ptx;
  std::string cubin;
  std::map<std::string, std::string> lowered;  ///< Entry as written -> mangled name in the PTX.
  std::map<std::string, Resources> resources;  ///< By mangled name.
  std::string log;
  std::string compiler;  ///< "NVRTC 13.0"
  std::string digest;    ///< Of the PTX.
  /// What the worker knows of the program; absent: nothing, and `facts_fault` says why. Outcomes are
  /// copied about, facts are not.
  std::shared_ptr<const facts::Facts> facts;
  std::string facts_fault;
  /// The program without what it writes, if any.
  facts::Skeleton skeleton;
};

/// Is it the same program, but for what the compiler draws anew each time (facts/module_ids.h)?
bool SameProgram(const CompiledKernel& a, const CompiledKernel& b);

struct CompileOutcome {
  enum class Kind : std::uint8_t {
    kCompiled,
    kRefused,
    kTimedOut,
    kCrashed
  } kind = Kind::kCompiled;
  CompiledKernel kernel;                ///< When kCompiled.
  std::vector<Diagnostic> diagnostics;  ///< Warnings too.
  std::string detail;                   ///< For kTimedOut and kCrashed: what happened.
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Error only when no compiler can be had; everything that the source causes is an outcome.
  virtual Result<CompileOutcome> Compile(const CompileRequest& request) = 0;
};

}  // namespace assay::engine

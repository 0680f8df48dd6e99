// The list of instruction forms under test (forms.txt), expanded, and the PTX kernel that runs one
// of them on a GPU.
//
// Shared by the recorder, which runs on a machine with a GPU, and by the test, which needs none. A
// form's inputs are a pure function of its text (inputs.h), so that only outputs are stored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::conformance {

/// One register of a form: `kind` is a name of inputs.cc, which gives width and distribution.
struct FormOperand {
  std::string kind;
  int vector = 0;  ///< Registers in the vector; 0: a scalar.
  int registers() const { return vector == 0 ? 1 : vector; }
};

/// What PTX promises of an approximate instruction. All zero: exact.
struct Bound {
  double relative = 0.0;
  double absolute = 0.0;
  double ulps = 0.0;
  double within = 0.0;  ///< Inputs of larger magnitude are not bounded; 0: all are.
  bool tensor = false;  ///< A tensor-core sum.
  bool approximate() const { return relative != 0.0 || absolute != 0.0 || ulps != 0.0; }
};

struct Form {
  std::string name;         ///< The expanded line without the bound; unique.
  std::string instruction;  ///< With $-placeholders, one or more statements.
  std::vector<FormOperand> destinations;
  std::vector<FormOperand> sources;
  Bound bound;
  /// Threads run: 32 for layout probes, 128 for matrices, 256 otherwise.
  int threads = 256;
  bool layout_probe = false;
  /// A warpgroup's product, `$wgmma.SHAPE.D.A.B` in forms.txt: sources are A, the accumulator and
  /// the thread's word of B.
  bool wgmma = false;
};

/// Expands `{a,b}`; `{{` and `}}` are braces themselves.
std::vector<std::string> ExpandBraces(std::string_view text);
/// Parses forms.txt. Aborts on a malformed line: the list is part of the program.
std::vector<Form> ParseForms(std::string_view text);

/// Bits of a kind's register: 1 (predicate), 16, 32 or 64.
int RegisterBits(std::string_view kind);
/// Bytes that one result of this kind takes in the golden data.
int StoredBytes(std::string_view kind);

/// Statements before and after a form's own in its kernel, so that the test finds them in the
/// parsed module.
struct FormKernel {
  std::string text;
  int first_statement = 0;  ///< Index of the form's first instruction in the body.
  int statements = 0;
  std::vector<std::string> destination_registers;
  std::vector<std::string> source_registers;
};
/// A kernel `name` of parameters (in, out, memory), each a 64-bit address. Register r of thread t
/// is read from in + 8 * (r * 256 + t) and written to out likewise.
FormKernel WriteKernel(const Form& form, std::string_view name);
/// ".version", ".target" and so on.
std::string ModuleHeader();

/// The memory that layout probes read: element i of each array holds i.
inline constexpr int kProbeElements = 4096;
std::vector<std::uint8_t> ProbeMemory();

inline constexpr int kMaxThreads = 256;

}  // namespace assay::conformance

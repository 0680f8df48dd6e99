// A parsed PTX module: values only, no pointers into the text.
//
// The parser (parser.h) builds it, the verifier (verifier.h) proves that every register, label,
// symbol and type in it is consistent, the printer (printer.h) writes it back, and the emulator
// (validator/emu/program.h) decodes it. Names that occur in instructions are resolved to indices,
// so that consumers never look up strings.
//
// PTX ISA sections given below refer to version 9.0 of NVIDIA's manual.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace assay::ptx {

/// Fundamental and packed types (5.2). kNone: the instruction has no type there.
enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kU16x2,
  kS16x2,
  kU8x4,
  kS8x4,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kTF32,
  kF32,
  kF32x2,
  kF64,
  kE4M3,
  kE5M2,
  kE4M3x2,
  kE5M2x2,
  kE4M3x4,
  kE5M2x4,
  kE2M3,
  kE3M2,
  kE2M1,
  kUE8M0,
  kUE8M0x2,
  kE2M1x2,
  kE2M3x2,
  kE3M2x2,
  kU4,
  kS4,
  kU2,
  kS2,
  kB1,
};
/// Bits of one value: 32 for kF16x2, 4 for kU4, 1 for kPred and kB1.
int BitsOf(Type type);
/// One integer or bits of up to 64, no pair.
constexpr bool IsInteger(Type type) {
  return type >= Type::kB8 && type <= Type::kS64 && type != Type::kB128;
}
/// Without the dot: "f16x2". "none" for kNone.
std::string_view Name(Type type);

/// State spaces (5.1). kGeneric: none was written.
enum class Space : std::uint8_t {
  kGeneric,
  kReg,
  kConst,
  kGlobal,
  kLocal,
  kParam,
  kParamEntry,
  kParamFunc,
  kShared,
  kSharedCta,
  kSharedCluster,
};
std::string_view Name(Space space);

enum class Opcode : std::uint8_t {
#define OPCODE(name, ...) k##name,
#include "validator/ptx/opcodes.def"
#undef OPCODE
};
enum class Family : std::uint8_t {
  kArithmetic,
  kInteger,
  kMove,
  kCompare,
  kFloat,
  kConvert,
  kMemory,
  kAtomic,
  kAsyncCopy,
  kWarp,
  kBarrier,
  kFence,
  kMbarrier,
  kMatrix,
  kControl,
  kUnsupported,
};
std::string_view Mnemonic(Opcode opcode);
Family FamilyOf(Opcode opcode);

/// Every dotted modifier that is neither a type nor a state space, by its own name: Mod::kFtz is
/// ".ftz", Mod::kL1EvictLast is
/// ".L1::evict_last". Rows are in modifiers.def. What reads as a type or a space is one wherever it
/// stands: `.pred` of vote.sync.all.pred is types[0], `.global` of cvta.to.global is `space`;
/// vector widths (.v4) are `vector_width`.
enum class Mod : std::uint16_t {
#define MODIFIER(name, text) k##name,
#include "validator/ptx/modifiers.def"
#undef MODIFIER
};
std::string_view Name(Mod mod);

/// Special registers (10). %tid and its like carry a component, kX..kW.
enum class SpecialRegister : std::uint8_t {
#define SPECIAL_REGISTER(name, text, vector) k##name,
#include "validator/ptx/special_registers.def"
#undef SPECIAL_REGISTER
};
std::string_view Name(SpecialRegister special);

using RegisterIndex = std::uint32_t;     ///< Into Function::registers.
using VariableIndex = std::uint32_t;     ///< Into Module::variables or Function::variables.
using FunctionIndex = std::uint32_t;     ///< Into Module::functions.
using InstructionIndex = std::uint32_t;  ///< Into Function::body.

/// Names a variable wherever it was declared.
struct SymbolRef {
  enum class Scope : std::uint8_t { kModule, kFunction } scope = Scope::kModule;
  VariableIndex index = 0;
  bool operator==(const SymbolRef&) const = default;
};

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,   ///< `%r1`; `negated` for `!%p1`; `%r1|%p1` is two operands, the second with
                 ///< `paired`.
    kImmediate,  ///< `bits`: integers sign-extended to 64 bits, floats as the bits of
                 ///< `immediate_type` (kF32 or kF64).
    kSymbol,     ///< The address of a variable, plus `offset`: `mov.u64 %rd1, table+8`.
    kAddress,  ///< `[%rd1+8]`, `[sym+8]`, `[8]`: base in `registers[0]`, `symbol`, or neither; plus
               ///< `offset`.
    kVector,   ///< `{%f1, %f2}`: one element an entry of `elements`.
    kLabel,    ///< Target of a branch: `target`.
    kLabelList,  ///< Name of a .branchtargets list: `targets`.
    kFunction,   ///< Callee or address of a function: `function`.
    kPrototype,  ///< Name of a .callprototype: index into Function::prototypes in `target`.
    kSpecial,    ///< `%tid.x`: `special`, `component`.
    kSink,       ///< `_`
    kTensor,  ///< `[map, {c0, c1}]` and the like: `elements`, the first being the address, the rest
              ///< coordinates.
    kParamList,  ///< Of a call, in `elements`: each a kSymbol (a .param variable), kRegister or
                 ///< kImmediate. A call has these operands: return list, callee (kFunction or
                 ///< kRegister), argument list, and for an indirect call a kPrototype. Absent lists
                 ///< are empty ones.
  };
  Kind kind = Kind::kRegister;
  bool negated = false;
  bool paired = false;
  std::uint8_t component =
      0;  ///< 0..3 for .x .y .z .w; for `%r1.h0` style selectors (b0..b3, h0, h1) see `selector`.
  std::uint8_t selector = 0;          ///< Video selectors; 0 none.
  Type immediate_type = Type::kNone;  ///< kNone for integers.
  SpecialRegister special{};
  RegisterIndex reg = 0;  ///< kRegister, or the base of kAddress when `has_base_register`.
  bool has_base_register = false;
  bool has_symbol = false;
  SymbolRef symbol{};
  std::int64_t offset = 0;
  std::uint64_t bits = 0;
  InstructionIndex target = 0;
  FunctionIndex function = 0;
  std::vector<InstructionIndex> targets{};
  std::vector<Operand> elements{};
  bool operator==(const Operand&) const = default;
};

/// Where an instruction came from. Inlined frames are chained from the innermost outwards.
struct SourceLocation {
  std::uint32_t file = 0;  ///< Index into Module::files.
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::int32_t inlined_at = -1;  ///< Index into Module::locations of the call site, or -1.
  std::string function{};        ///< Name of the inlined function, if any.
  bool operator==(const SourceLocation&) const = default;
};

struct Guard {
  bool present = false;
  bool negated = false;
  RegisterIndex predicate = 0;
  bool operator==(const Guard&) const = default;
};

struct Instruction {
  Opcode opcode{};
  Guard guard;
  std::uint16_t form =
      0;  ///< Row of isa.def that matched (isa.h); 0 when none did, which Verify refuses.
  Space space = Space::kGeneric;   ///< First state space written.
  Space space2 = Space::kGeneric;  ///< Second one (cp.async: destination is `space`, source
                                   ///< `space2`; cvta.to: `space`).
  std::uint8_t vector_width = 1;   ///< 1, 2, 4 or 8 (`.v2` ...).
  std::vector<Type> types;         ///< In the order written: cvt has destination, source.
  std::vector<Mod> mods;           ///< In the order written.
  std::vector<Operand> operands;   ///< Destination first. `%r1|%p1` counts as two.
  std::uint32_t ptx_line = 0;      ///< 1-based line of the PTX text.
  std::int32_t location = -1;      ///< Index into Module::locations, or -1.

  bool Has(Mod mod) const {
    for (const Mod m : mods) {
      if (m == mod) return true;
    }
    return false;
  }
  Type type(std::size_t i = 0) const { return i < types.size() ? types[i] : Type::kNone; }
  /// All but `ptx_line`, as for every type below that has one.
  bool operator==(const Instruction& other) const;
};

struct Register {
  std::string name;
  Type type = Type::kB32;
  bool operator==(const Register&) const = default;
};

/// A pointer inside an initialiser: the address of a variable or function, stored at `offset`.
struct Relocation {
  std::uint64_t offset = 0;  ///< Byte offset in the initialised data.
  std::uint8_t bytes = 8;
  bool to_function = false;
  std::uint32_t index = 0;  ///< VariableIndex of the module, or FunctionIndex.
  std::int64_t addend = 0;
  bool generic = true;
  std::uint8_t first_byte =
      0;  ///< Which byte of the address comes first; not 0 only for a lone mask form, `0xFF00(x)`.
  bool operator==(const Relocation&) const = default;
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;    ///< Element type.
  std::uint32_t align = 1;  ///< Bytes.
  std::uint64_t bytes = 0;  ///< Whole size; 0 for an unsized extern array (dynamic shared memory).
  bool is_extern = false;
  bool is_visible = false;
  bool is_weak = false;
  bool is_common = false;
  bool is_pointer =
      false;  ///< A parameter with .ptr; what it says of the pointee is in the next two.
  Space pointee_space = Space::kGeneric;
  std::uint32_t pointee_align = 0;  ///< Bytes; 0 when not given.
  std::vector<std::byte>
      initialiser;  ///< Empty: zero. May be shorter than `bytes`; the rest is zero.
  std::vector<Relocation> relocations;
  std::uint32_t ptx_line = 0;
  bool operator==(const Variable& other) const;
};

struct Prototype {
  std::string name;
  std::vector<Variable> returns;
  std::vector<Variable> params;
  bool no_return = false;
  bool operator==(const Prototype&) const = default;
};

/// Performance-tuning directives (11.4) that limit a launch. 0: not given.
struct LaunchBounds {
  std::array<std::uint32_t, 3> max_threads{};       ///< .maxntid
  std::array<std::uint32_t, 3> required_threads{};  ///< .reqntid
  std::uint32_t min_blocks = 0;                     ///< .minnctapersm
  std::uint32_t max_registers = 0;                  ///< .maxnreg
  std::array<std::uint32_t, 3> cluster{};           ///< .reqnctapercluster
  std::uint32_t max_cluster_rank = 0;               ///< .maxclusterrank
  bool explicit_cluster = false;                    ///< .explicitcluster
  bool operator==(const LaunchBounds&) const = default;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  bool no_return = false;
  std::vector<Variable> returns;  ///< Return parameters. Register-space ones have Space::kReg;
                                  ///< their registers open `registers`, returns before parameters.
  std::vector<Variable> params;   ///< In order; `bytes` and `align` give the parameter layout.
  std::vector<Register> registers;
  std::vector<Variable> variables;  ///< .local, .shared and call .param variables declared inside;
                                    ///< params and returns are repeated here first (returns, then
                                    ///< params), so that SymbolRef reaches them.
  std::vector<Prototype> prototypes;
  std::vector<Instruction> body;
  std::vector<std::pair<std::string, InstructionIndex>>
      labels;  ///< An index may equal body.size().
  LaunchBounds bounds;
  bool is_visible = false;
  bool is_extern = false;
  bool is_weak = false;
  std::int32_t alias_of = -1;  ///< FunctionIndex of the function that .alias names, or -1.
  std::uint32_t ptx_line = 0;
  bool operator==(const Function& other) const;
};

struct Module {
  int version_major = 0;
  int version_minor = 0;
  std::string target;  ///< "sm_90"
  int address_bits = 64;
  std::vector<std::string> files;  ///< By .file index; index 0 is unused when PTX numbers from 1.
  std::vector<SourceLocation> locations;
  std::vector<Variable> variables;
  std::vector<Function> functions;

  const Function* FindFunction(std::string_view name) const;
  bool operator==(const Module&) const = default;
};

/// The line of the file that the user wrote: of the frames in the kernel's own file (the outermost frame's), the innermost. So code of
/// the user's own device functions is found where it stands, and code of headers where it was called.
SourceLocation UserFrame(const Module& module, std::int32_t location);

}  // namespace assay::ptx

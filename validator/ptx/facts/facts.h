// Facts: what is known of a PTX module without running it.
//
// Policy, guidance and cuts of grids ask the same questions of a program: what does it use and where,
// which constants decide something, what survives a launch, what does an address come from, do blocks
// wait for each other. They are answered once, from the parsed module, inside the jail that compiled
// it (a module is hostile text; the host never parses one), and travel as the values below.
//
// A fact is sound or says that it is not known: `kNo` is proven, `kYes` was seen, `kUnknown` is
// neither, and whoever asks treats it as the dangerous answer. Nothing is matched by text.
//
// What is counted as the toolkit's own is known by where it stands: by the innermost frame of its
// line information. Inline assembly could forge that; so nothing may be allowed on its account that
// the emulator does not watch as well.
//
//   ASSAY_TRY(const ptx::Module module, ptx::Parse(text, "kernel.ptx"));
//   const facts::Facts facts = facts::FactsOf(module, {.own_file = "kernel.cu"});   // compute.h
//   const Json document = facts::ToJson(facts);                                     // to the host
//
// Values only; reading is strict and bounded, for what is read was written by a worker that ran
// hostile code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace assay::facts {

enum class Answer : std::uint8_t { kNo, kYes, kUnknown };
std::string_view Name(Answer answer);
/// Everything but a proven no.
inline bool MayBe(Answer answer) { return answer != Answer::kNo; }

/// Where something stands.
struct Site {
  std::string function;     ///< The PTX function.
  std::string instruction;  ///< As printed; empty for declarations.
  std::uint32_t ptx_line = 0;
  std::string file;  ///< Of the innermost frame, empty without line information.
  std::uint32_t line = 0;
  std::uint32_t own_line = 0;  ///< Of the innermost frame in the author's file; 0: none is known.
  bool in_header = false;      ///< The innermost frame stands in another file than the author's.
  bool operator==(const Site&) const = default;
};

/// Something that is used: each place in the source once.
struct Use {
  enum class Kind : std::uint8_t {
    kOpcode,           ///< "bar", "cp.async.bulk"
    kSpecialRegister,  ///< "%tid"
    kCallee,           ///< A function that the module declares and does not define.
    kLiteralAddress,   ///< An access to global memory at a number: the opcode.
  } kind = Kind::kOpcode;
  std::string name;
  std::uint64_t count = 0;  ///< Instructions.
  std::vector<Site> sites;  ///< In the order of the text; those of the author's file are all there
                            ///< unless `sites_left_out`.
  std::uint64_t sites_left_out = 0;
  bool operator==(const Use&) const = default;
};

/// An immediate that decides or divides something, or an entry of a short table of integers, 0 included.
struct Constant {
  enum class How : std::uint8_t { kCompared, kDivisor, kMask, kShift, kTable } how = How::kCompared;
  bool real = false;  ///< `number` counts, not `integer`.
  std::int64_t integer = 0;
  double number = 0;
  std::uint32_t own_line = 0;
  bool operator==(const Constant&) const = default;
};

/// One step in which a value is computed. Steps stand in postfix order: `of` are the numbers of
/// earlier ones of the same list.
struct Node {
  enum class Op : std::uint8_t {
    kConstant,   ///< `value`; of a real type, the bits of a double.
    kParameter,  ///< Entry parameter number `value`.
    kSpecial,    ///< Component `value` % 4 of %tid, %ntid, %ctaid, %nctaid; 16: %laneid.
    kMemory,     ///< An element of the buffer that parameter `value` points to, as a number.
    kCounter,    ///< of[0] + n * of[1], n counting the turns of loop `value` (0: of some loop).
    kChoice,     ///< of[0] or of[1], by the way that was taken.
    kSelect,     ///< of[0] ? of[1] : of[2]
    kConvert,
    kAdd,
    kSubtract,
    kMultiply,
    kMultiplyHigh,
    kDivide,
    kRemainder,
    kAnd,
    kOr,
    kXor,
    kNot,
    kNegate,
    kAbsolute,
    kSquareRoot,
    kShiftLeft,
    kShiftRight,
    kMin,
    kMax,
    kEqual,  ///< This and what follows: 0 or 1.
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
  } op = Op::kConstant;
  enum class Type : std::uint8_t { kU16, kS16, kU32, kS32, kU64, kS64, kReal, kBool };
  Type type = Type::kS64;
  std::int64_t value = 0;
  std::vector<std::uint32_t> of;
  auto operator<=>(const Node&) const = default;
};

/// Two values that a program compares: by a comparison, a minimum or a maximum; a part of a number
/// that is cut off or looked at (`n & 15`) counts as compared with 0. For guidance alone: where
/// several ways lead to a value, some are followed.
///
/// A number that may outgrow its format counts as compared with where that happens: an index of 32
/// bits that is widened to reach memory, an integer that becomes a float. `left` is then meant as
/// computed in full width.
///
/// A float that becomes an integer is one as well, since what it was rounded to on the way may decide which one: `left`
/// is the float, `right` 0.
struct Decision {
  /// To which side of a float the integer lies that it becomes.
  enum class Becomes : std::uint8_t { kNothing, kLower, kNearest, kUpper };
  std::string entry;
  bool limit = false;
  Becomes becomes = Becomes::kNothing;
  std::vector<Node> nodes;
  std::uint32_t left = 0;  ///< Into `nodes`.
  std::uint32_t right = 0;
  std::uint32_t branch_line = 0;  ///< In the PTX: the first branch that it decides, or 0.
  std::uint32_t own_line = 0;
  /// Two values of the program, and nothing else?
  bool Compares() const { return !limit && becomes == Becomes::kNothing; }
  bool operator==(const Decision&) const = default;
};

/// A variable in global or constant memory: it outlives the launch.
struct Variable {
  std::string name;   ///< In the PTX.
  std::string shown;  ///< For people: "ns::count", "kernel()::calls".
  std::uint64_t bytes = 0;
  bool is_extern = false;
  bool is_weak = false;
  Answer written = Answer::kUnknown;  ///< May a kernel of this module write it?
  std::vector<Site> writes;  ///< Some of the places; where it is kUnknown, where its address gets
                             ///< out of sight.
  std::uint32_t ptx_line = 0;
  bool operator==(const Variable&) const = default;
};

/// One memory access.
struct MemoryUse {
  std::string opcode;
  std::string space;  ///< As written; "generic" without.
  bool reads = false;
  bool writes = false;
  /// Parameters ("kernel#0"), variables by name, "unknown".
  std::vector<std::string> origins;
  std::uint32_t ptx_line = 0;
  std::uint32_t own_line = 0;
  bool operator==(const MemoryUse&) const = default;
};

struct Atomic {
  std::string operation;  ///< "add", "cas", ...
  std::string type;       ///< "f32"
  bool shared = false;    ///< Surely in the block's own shared memory.
  bool on_float = false;
  bool result_used = false;
  Site site;
  bool operator==(const Atomic&) const = default;
};

/// Limits of a launch that the code brings along. 0: not given.
struct Bounds {
  std::array<std::uint32_t, 3> max_threads{};
  std::array<std::uint32_t, 3> required_threads{};
  std::array<std::uint32_t, 3> cluster{};
  bool explicit_cluster = false;
  bool operator==(const Bounds&) const = default;
};

/// What of a block runs by itself: nothing of the block but plain global memory lets such units see each other.
enum class Unit : std::uint8_t {
  kThread,
  kWarp,   ///< Lanes meet, in shuffles, votes, matrix instructions or barriers of a warp.
  kBlock,  ///< Warps meet, or it is not known: there are barriers, shared memory, clusters, asynchronous copies.
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_defined = false;
  bool is_weak = false;
  bool is_extern = false;
  std::vector<std::string> calls;  ///< Direct callees.
  Answer calls_unknown =
      Answer::kUnknown;  ///< An indirect call, or one of what is not defined here;
                         ///< counts what is reached through others.
  Answer recursive = Answer::kUnknown;
  Answer barriers = Answer::kUnknown;  ///< Of a block; this and what follows counts callees.
  Unit unit = Unit::kBlock;            ///< Counts callees as well.
  Answer polls = Answer::kUnknown;     ///< A loop that ends when another block has changed memory.
  /// Could what a block of another cluster does change what this one computes or whether it ends, by more
  /// than a data race? (Atomics, fences, volatile or acquiring accesses outside of shared memory.)
  Answer blocks_depend = Answer::kUnknown;
  std::string blocks_depend_on;  ///< What shows it: "atom at PTX line 14".
  /// Do blocks meet in nothing but floats that are added to memory, and that nobody looks at on the way?
  /// Then each adds what it would add if it ran alone. kNo: there is more, or it is not known.
  Answer only_adds = Answer::kNo;
  Bounds bounds;
  std::uint32_t ptx_line = 0;
  bool operator==(const Function&) const = default;
};

struct Facts {
  /// Why the module is not consistent (ptx::Verify); then only `uses` and what functions and variables
  /// are declared as is known, and every answer is kUnknown. Empty: it is.
  std::string fault;
  std::vector<Use> uses;
  std::vector<Constant> constants;  ///< Distinct, in the order of the text.
  /// Of entries, distinct, in the order of the text: those that are computed from what is listed in
  /// Node alone. A few dozen: of each kernel its share, what ends its loops before the rest.
  std::vector<Decision> decisions;
  std::vector<Variable> variables;
  std::vector<MemoryUse> memory;
  std::uint64_t memory_left_out = 0;
  std::vector<Atomic> atomics;
  std::uint64_t atomics_left_out = 0;
  std::vector<Function> functions;
  bool operator==(const Facts&) const = default;

  const Use* FindUse(Use::Kind kind, std::string_view name) const;
  const Function* FindFunction(std::string_view name) const;
};

/// What is not known of a module: every question has the dangerous answer.
inline Answer BlocksDepend(const Facts* facts, std::string_view entry) {
  const Function* function = facts == nullptr ? nullptr : facts->FindFunction(entry);
  return function == nullptr ? Answer::kUnknown : function->blocks_depend;
}
inline Answer Polls(const Facts* facts, std::string_view entry) {
  const Function* function = facts == nullptr ? nullptr : facts->FindFunction(entry);
  return function == nullptr ? Answer::kUnknown : function->polls;
}
inline Unit UnitOf(const Facts* facts, std::string_view entry) {
  const Function* function = facts == nullptr ? nullptr : facts->FindFunction(entry);
  return function == nullptr ? Unit::kBlock : function->unit;
}
/// Does each block add what it would add alone, and do nothing else that others see?
inline bool OnlyAdds(const Facts* facts, std::string_view entry) {
  const Function* function = facts == nullptr ? nullptr : facts->FindFunction(entry);
  return function != nullptr && function->only_adds == Answer::kYes;
}

/// What of a program decides where in global memory it writes (skeleton.h).
struct Skeleton {
  /// PTX, every function under its name. Empty where there is none: code that does not end, calls of what is not there.
  std::string ptx;
  /// Something in it is a number that was rounded: a float that became an integer, or the high half of a product of two
  /// variables, as where a reciprocal stands for a quotient. Right at some sizes says little then of others.
  bool rounds = false;
  /// It comes to shared memory, or names some: else it needs none.
  bool in_shared = true;
  /// Entries that have none, and do nothing in it: the stack moved at run time, memory of other blocks.
  std::vector<std::string> without;
  bool operator==(const Skeleton&) const = default;
};

Json ToJson(const Facts& facts);
/// Strict; `place` names the document in errors.
Result<Facts> FactsFromJson(const Json& json, const std::string& place);

}  // namespace assay::facts

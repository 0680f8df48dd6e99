// The ISA table: which forms each instruction has, what they take, and where the manual describes
// them.
//
// isa.def holds one row a form; its head explains the notation. Here the rows are cut up once, on
// first use, into values that all share who deal with instructions: the parser (which form is
// this?), the verifier (do the operands fit?), the printer (in which order do modifiers go?), and
// whatever reasons about programs (what is read and written, how wide, what else happens: rules.h).
// An instruction carries its row (Instruction::form). Row 0 is no form.
//
// After Verify has accepted a module, an instruction's operands stand in one-to-one order with
// AssignRules(form, instruction): same count, kinds, widths; so consumers may index operands
// without further checks.
//
// Cost: matching an instruction is a few dozen comparisons. Thread-safety: the table is immutable.
//
//   const Form& form = FormOf(instruction);
//   fmt::print("{} is described in {}\n", Text(form), form.section);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validator/ptx/module.h"
#include "validator/ptx/rules.h"

namespace assay::ptx {

/// One place for a modifier: which it may be, and whether it may be missing.
struct ModifierSlot {
  enum class Kind : std::uint8_t { kMod, kType, kSpace, kWidth };
  Kind kind = Kind::kMod;
  bool optional = false;
  bool with_previous = false;         ///< There exactly when the slot before is.
  std::vector<std::uint16_t> values;  ///< Mod, Type or Space as numbers, or vector widths.
  bool Has(std::uint16_t value) const;
};

/// Constants from `low` to `high` that are multiples of `step`.
struct ConstantRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t step = 1;
};

/// What one operand may be.
struct OperandRule {
  enum class Body : std::uint8_t { kValue, kAddress, kTensor, kLabel, kTargets, kSink, kCall };
  /// How many elements a vector has.
  enum class Count : std::uint8_t {
    kScalar,       ///< No vector.
    kFixed,        ///< `count`.
    kWidth,        ///< Instruction::vector_width.
    kMatrices,     ///< 1, 2 or 4 by .x1 .x2 .x4.
    kAccumulator,  ///< Of wgmma: 64*N values over 128 threads.
    kPack,         ///< 2 or 4 elements that together are as wide as the type.
    kOffsets,      ///< Of im2col: two less than the tensor's dimensions.
  };
  Body body = Body::kValue;
  Count count_rule = Count::kScalar;
  std::uint8_t count = 0;
  Type fixed = Type::kNone;     ///< The type, when it does not depend on the instruction's.
  std::uint8_t type_index = 0;  ///< Otherwise, which of the instruction's types.
  bool doubled = false;         ///< Twice as wide as that (mul.wide).
  bool any_address = false;     ///< An integer of the size of some address, 32 or 64 bits.
  bool written = false;
  bool read = false;  ///< Written operands are read as well when '+'.
  bool sink = false;
  bool paired = false;
  bool negatable = false;
  bool relaxed = false;  ///< 9.4.1: the register may be wider.
  bool special = false;
  bool symbol = false;
  bool constant = true;  ///< A constant may stand here.
  bool constant_only = false;
  bool vector_of_one = false;
  bool optional = false;
  bool loads = false;                    ///< Of an address: what lies there is read,
  bool stores = false;                   ///< is written;
  bool mbarrier = false;                 ///< an mbarrier lies there.
  std::vector<ConstantRange> constants;  ///< A constant is in one of these, unless empty.
  std::vector<Mod> gate;  ///< There exactly when the instruction has one of these, unless empty.
};

struct Form {
  Opcode opcode{};
  Rules rules;                 ///< Of its mnemonic.
  std::string_view modifiers;  ///< As in isa.def.
  std::string_view operand_text;
  int ptx_version = 0;  ///< Times ten: 78 is 7.8.
  int sm = 0;           ///< 90; 901 for sm_90a.
  std::string_view section;
  std::vector<ModifierSlot> slots;
  std::vector<OperandRule> operands;
};

/// No row has more slots or operands, and no instruction more operands.
inline constexpr std::size_t kMostSlots = 24;

/// All rows; index 0 is an empty one.
std::span<const Form> Forms();
inline const Form& FormOf(const Instruction& in) { return Forms()[in.form]; }
/// Rows of one opcode, in order.
std::span<const std::uint16_t> FormsOf(Opcode opcode);

/// True when the modifiers, types, spaces and vector width of `in` are those of `form`.
bool ModifiersFit(const Form& form, const Instruction& in);
/// Rows of the instruction's opcode whose modifiers fit.
std::vector<std::uint16_t> CandidateForms(const Instruction& in);

/// Why an operand does not fit.
struct Misfit {
  int operand = -1;  ///< Index into Instruction::operands; -1: their number.
  std::string_view reason;
};
/// Nothing when the operands of `in` fit. Never reads beyond the module, whatever indices `in`
/// holds.
std::optional<Misfit> OperandsMisfit(const Form& form, const Module& module,
                                     const Function& function, const Instruction& in);
/// The first candidate whose operands fit; 0 for none.
std::uint16_t MatchForm(std::span<const std::uint16_t> candidates, const Module& module,
                        const Function& function, const Instruction& in);

/// The rules of an instruction's operands, in order.
class OperandRules {
 public:
  std::size_t size() const { return count_; }
  const OperandRule& operator[](std::size_t i) const { return (*form_)[index_[i]]; }
  /// How many operands, from the front, are written. Those behind them are not.
  std::size_t written() const;

 private:
  friend OperandRules AssignRules(const Form& form, const Instruction& in);
  const std::vector<OperandRule>* form_ = nullptr;
  std::array<std::uint8_t, kMostSlots> index_{};
  std::size_t count_ = 0;
};
/// For an instruction whose operands fit the form. None for a call, whose operands are lists.
OperandRules AssignRules(const Form& form, const Instruction& in);
inline OperandRules RulesOf(const Instruction& in) { return AssignRules(FormOf(in), in); }
/// The type that a rule asks for, given the instruction; kNone where it asks for none.
Type TypeOf(const OperandRule& rule, const Instruction& in);
/// Bits that `in` reads or writes at an operand with this rule: 1 for predicates, otherwise 16, 32,
/// 64 or 128; of one element, for vectors. 64 for addresses, 32 where there is no type.
int BitsOf(const OperandRule& rule, const Instruction& in, const Operand& operand);

/// An address among the operands whose memory is accessed.
struct MemoryRole {
  std::size_t operand = 0;
  Space space = Space::kGeneric;
  bool reads = false;
  bool writes = false;
  bool mbarrier = false;
};
std::vector<MemoryRole> MemoryRoles(const Instruction& in);
/// Is data in memory read, changed and written back?
bool UpdatesMemory(const Form& form);
bool WritesMemory(const Form& form);

/// For people: "add{.sat}.s32 d, a, b".
std::string Text(const Form& form);
/// "sm_90a"
std::string ArchitectureText(int sm);

}  // namespace assay::ptx

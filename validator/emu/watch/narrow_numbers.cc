#include "validator/emu/watch/narrow_numbers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "validator/emu/core.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Opcode;
using ptx::Type;

bool IsSigned(Type type) { return type == Type::kS16 || type == Type::kS32 || type == Type::kS64; }
bool IsWord(Type type) { return type == Type::kU32 || type == Type::kS32; }
bool IsDouble(Type type) { return type == Type::kU64 || type == Type::kS64; }
bool IsHalf(Type type) { return type == Type::kU16 || type == Type::kS16; }

/// Negative numbers are no indices.
template <class T>
void Note(CoreWarp& warp, const DecodedOperand& operand, std::uint64_t& most) {
  if (operand.kind != DecodedOperand::Kind::kSlot) return;
  const T* const lanes = warp.Lanes<T>(operand.slot);
  T largest = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const T mask = static_cast<T>(T{0} - static_cast<T>(warp.exec >> lane & 1));
    largest = std::max(largest, static_cast<T>(lanes[lane] & mask));
  }
  most = std::max(most, static_cast<std::uint64_t>(largest));
}

/// Before what else there is to it runs.
template <class T, std::size_t kNumbers>
void NoteAndRun(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::uint32_t pc = warp.PcOf(op);
  if (!warp.device->numbers.empty()) {
    std::uint64_t* const most = &warp.device->numbers[kNumbersOfOne * pc];
    for (std::size_t i = 0; i < kNumbers; ++i) Note<T>(warp, op.operands[1 + i], most[i]);
  }
  warp.device->program.behind_notes[pc](warp, op);
}

/// How many digits a mask leaves that cuts upper ones off, or 0: an index has more than a thread's number.
int DigitsOfMask(const ptx::Instruction& in) {
  constexpr int kLeast = 16;
  constexpr int kMostBelow = 8;  // Of elements of so many bytes, or whole vectors of them.
  const ptx::Operand& mask = in.operands[2];
  const int bits = ptx::BitsOf(in.type(0));
  if (mask.kind != ptx::Operand::Kind::kImmediate || (bits != 32 && bits != 64)) return 0;
  const std::uint64_t ones = bits == 32 ? mask.bits & 0xffff'ffffu : mask.bits;
  const int below = std::countr_zero(ones), digits = static_cast<int>(std::bit_width(ones));
  const bool together = ones != 0 && std::popcount(ones) == digits - below;
  return together && below <= kMostBelow && digits >= kLeast && digits < bits ? digits : 0;
}

/// Of how many bits a store keeps less than its register holds, or 0.
int DigitsStored(const ptx::Function& function, const ptx::Instruction& in) {
  if (in.operands.size() != 2 || in.operands[1].kind != ptx::Operand::Kind::kRegister) return 0;
  const Type held = function.registers[in.operands[1].reg].type;
  const int bits = ptx::BitsOf(in.type(0));
  return bits == 16 && ptx::IsInteger(held) && ptx::BitsOf(held) == 32 ? bits : 0;
}

/// What notes the numbers of such an instruction, or null.
Handler NotesOf(const ptx::Function& function, const ptx::Instruction& in) {
  const Type to = in.type(0);
  switch (in.opcode) {
    case Opcode::kMul:
    case Opcode::kMad:
      if (!in.Has(ptx::Mod::kWide)) return nullptr;
      if (IsHalf(to))
        return IsSigned(to) ? &NoteAndRun<std::int16_t, 1> : &NoteAndRun<std::uint16_t, 1>;
      if (!IsWord(to)) return nullptr;
      if (in.operands[2].kind != ptx::Operand::Kind::kRegister)
        return IsSigned(to) ? &NoteAndRun<std::int32_t, 1> : &NoteAndRun<std::uint32_t, 1>;
      return IsSigned(to) ? &NoteAndRun<std::int32_t, 2> : &NoteAndRun<std::uint32_t, 2>;
    case Opcode::kCvt: {
      const Type from = in.type(1);
      if (IsWord(from) && (IsDouble(to) || IsHalf(to)))
        return IsSigned(from) ? &NoteAndRun<std::int32_t, 1> : &NoteAndRun<std::uint32_t, 1>;
      if (IsHalf(from) && (IsWord(to) || IsDouble(to)))
        return IsSigned(from) ? &NoteAndRun<std::int16_t, 1> : &NoteAndRun<std::uint16_t, 1>;
      return IsDouble(from) && IsHalf(to) ? &NoteAndRun<std::int64_t, 1> : nullptr;
    }
    case Opcode::kAnd:
      if (DigitsOfMask(in) == 0) return nullptr;
      return ptx::BitsOf(to) == 32 ? &NoteAndRun<std::uint32_t, 1> : &NoteAndRun<std::int64_t, 1>;
    case Opcode::kSt:
      return DigitsStored(function, in) != 0 ? &NoteAndRun<std::uint32_t, 1> : nullptr;
    default:
      return nullptr;
  }
}

bool IsSame(const ptx::Operand& a, const ptx::Operand& b) {
  if (a.kind != b.kind) return false;
  return a.kind == ptx::Operand::Kind::kRegister
             ? a.reg == b.reg
             : a.kind == ptx::Operand::Kind::kImmediate && a.bits == b.bits;
}

/// The registers of one function: who defines them, and who uses them.
class Registers {
 public:
  explicit Registers(const ptx::Function& function)
      : function_(function),
        defined_(function.registers.size()),
        matters_(function.registers.size(), false) {
    for (std::size_t at = 0; at < function.body.size(); ++at) {
      const ptx::Instruction& in = function.body[at];
      const auto rules = ptx::RulesOf(in);
      for (std::size_t o = 0; o < in.operands.size() && o < rules.size(); ++o) {
        if (rules[o].written) Define(in.operands[o], at);
      }
    }
    FindWhatMatters();
  }

  /// Does what is lost of the number change anything?
  bool MayLose(const ptx::Instruction& in) const {
    const bool of_half = in.opcode == Opcode::kCvt ? IsHalf(in.type(1)) : IsHalf(in.type(0));
    const bool widens = in.opcode == Opcode::kMul || in.opcode == Opcode::kMad ||
                        (in.opcode == Opcode::kCvt && !IsHalf(in.type(0)));
    if (of_half && widens) return IsComputed(in.operands[1]);
    if (in.opcode == Opcode::kCvt &&
        (IsQuotient(in.operands[1]) || IsHalfOfProduct(in.operands[1])))
      return false;
    const ptx::Operand& result = in.operands[0];
    const bool is_whole = in.opcode == Opcode::kAnd || in.opcode == Opcode::kSt;
    return is_whole || result.kind != ptx::Operand::Kind::kRegister || IsHalf(in.type(0)) ||
           matters_[result.reg];
  }

 private:
  void Define(const ptx::Operand& operand, std::size_t at) {
    if (operand.kind == ptx::Operand::Kind::kRegister) defined_[operand.reg].push_back(at);
    for (const ptx::Operand& element : operand.elements) Define(element, at);
  }

  const ptx::Instruction* OnlyDefinition(const ptx::Operand& operand) const {
    if (operand.kind != ptx::Operand::Kind::kRegister || defined_[operand.reg].size() != 1)
      return nullptr;
    return &function_.body[defined_[operand.reg].front()];
  }

  /// By arithmetic of its own size: else all of it was there, or what puts it there notes it.
  bool IsComputed(const ptx::Operand& operand) const {
    constexpr std::array kArithmetic = {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kMad,
                                        Opcode::kShl, Opcode::kAnd, Opcode::kOr};
    const ptx::Instruction* const in = OnlyDefinition(operand);
    return in != nullptr && std::ranges::find(kArithmetic, in->opcode) != kArithmetic.end();
  }

  bool IsQuotient(const ptx::Operand& operand) const {
    const ptx::Instruction* const in = OnlyDefinition(operand);
    return in != nullptr && (in->opcode == Opcode::kDiv || in->opcode == Opcode::kRem);
  }

  bool IsHalfOfProduct(const ptx::Operand& operand) const {
    const ptx::Instruction* const low = OnlyDefinition(operand);
    if (low == nullptr || low->opcode != Opcode::kMul || low->Has(ptx::Mod::kHi) ||
        low->Has(ptx::Mod::kWide))
      return false;
    const ptx::Operand& a = low->operands[1];
    const ptx::Operand& b = low->operands[2];
    return std::ranges::any_of(function_.body, [&](const ptx::Instruction& high) {
      return high.opcode == Opcode::kMul && high.Has(ptx::Mod::kHi) && IsWord(high.type(0)) &&
             ((IsSame(high.operands[1], a) && IsSame(high.operands[2], b)) ||
              (IsSame(high.operands[1], b) && IsSame(high.operands[2], a)));
    });
  }

  /// Finds of which registers the upper 32 of 64 bits change anything, from their uses backwards. What only goes round in a
  /// loop does not.
  void FindWhatMatters() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t at = function_.body.size(); at-- > 0;) {
        const ptx::Instruction& in = function_.body[at];
        if (!LooksAtUpperHalf(in)) continue;
        const auto rules = ptx::RulesOf(in);
        for (std::size_t o = 0; o < in.operands.size(); ++o)
          more = (!(o < rules.size() && rules[o].written) && Mark(in.operands[o])) || more;
      }
    }
  }

  bool LooksAtUpperHalf(const ptx::Instruction& in) const {
    switch (in.opcode) {
      case Opcode::kCvt:
        return ptx::BitsOf(in.type(0)) > 32 || !ptx::IsInteger(in.type(0));
      case Opcode::kMul:
      case Opcode::kMad:
      case Opcode::kAdd:
      case Opcode::kSub:
      case Opcode::kAnd:
      case Opcode::kOr:
      case Opcode::kXor:
      case Opcode::kShl:
      case Opcode::kMov: {
        // Upper bits of these come into upper bits of the result alone.
        const bool wide = in.Has(ptx::Mod::kHi) || in.Has(ptx::Mod::kWide) || in.Has(ptx::Mod::kCc);
        const ptx::Operand& result = in.operands[0];
        return wide || result.kind != ptx::Operand::Kind::kRegister || matters_[result.reg];
      }
      default:
        return true;
    }
  }

  /// Whether it was not marked before.
  bool Mark(const ptx::Operand& operand) {
    bool fresh = false;
    const auto mark = [&](ptx::RegisterIndex reg) {
      fresh = fresh || !matters_[reg];
      matters_[reg] = true;
    };
    if (operand.kind == ptx::Operand::Kind::kRegister) mark(operand.reg);
    if (operand.kind == ptx::Operand::Kind::kAddress && operand.has_base_register)
      mark(operand.reg);
    for (const ptx::Operand& element : operand.elements) fresh = Mark(element) || fresh;
    return fresh;
  }

  const ptx::Function& function_;
  std::vector<std::vector<std::size_t>> defined_;  ///< Where, by register.
  std::vector<bool> matters_;                      ///< By register.
};

}  // namespace

void NoteNarrowNumbers(Program::Impl& impl) {
  impl.behind_notes.assign(impl.code.size(), nullptr);
  for (const FunctionCode& code : impl.functions) {
    if (code.function == nullptr || code.is_builtin) continue;
    Registers registers(*code.function);
    for (std::uint32_t pc = code.first_pc; pc + 1 < code.end_pc; ++pc) {
      Decoded& op = impl.code[pc];
      const Handler notes = op.source == nullptr ? nullptr : NotesOf(*code.function, *op.source);
      if (notes != nullptr && registers.MayLose(*op.source))
        impl.behind_notes[pc] = std::exchange(op.monitored, notes);
    }
  }
}

int DigitsKept(const ptx::Instruction& in) {
  if (in.opcode == Opcode::kAnd) return DigitsOfMask(in);
  const Type narrow = in.opcode == Opcode::kCvt && !IsHalf(in.type(0)) ? in.type(1) : in.type(0);
  return ptx::BitsOf(narrow) - (IsSigned(narrow) ? 1 : 0);
}

}  // namespace assay::emu

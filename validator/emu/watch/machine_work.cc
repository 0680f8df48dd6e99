#include "validator/emu/watch/machine_work.h"

#include <algorithm>

#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Family;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operation;
using ptx::Space;
using ptx::Type;

MachineWork On(Pipe pipe, int issues = 1, int special = 0) {
  return {.pipe = pipe,
          .issues = static_cast<std::uint8_t>(issues),
          .special = static_cast<std::uint8_t>(special)};
}

bool IsHalf(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBF16 || type == Type::kBF16x2;
}

/// Machine words of an integer.
int WordsOf(Type type) { return std::max(1, ptx::BitsOf(type) / 32); }

MachineWork OnDoubles(const Instruction& in, Operation operation) {
  switch (operation) {
    case Operation::kQuotient:
      return On(Pipe::kDouble, 10, 1);
    case Operation::kReciprocal:
    case Operation::kRoot:
    case Operation::kReciprocalRoot:
      return On(Pipe::kDouble, 8, 1);
    case Operation::kLeast:
    case Operation::kGreatest:
    case Operation::kCompare:
    case Operation::kCompareToValue:
      return On(Pipe::kDouble, in.opcode == Opcode::kSet ? 2 : 1);
    case Operation::kNegation:
    case Operation::kMagnitude:
      return On(Pipe::kAlu, 0);
    default:
      return On(Pipe::kDouble);
  }
}

MachineWork OnHalves(Operation operation, Type type) {
  const int each = ptx::BitsOf(type) == 32 ? 2 : 1;
  switch (operation) {
    case Operation::kExp2:
    case Operation::kTanh:
      return On(Pipe::kSpecial, each);
    case Operation::kNegation:
    case Operation::kMagnitude:
      return On(Pipe::kAlu, 0);
    default:
      return On(Pipe::kHalf);
  }
}

MachineWork OnFloats(const Instruction& in, Operation operation) {
  const bool rounded = in.Has(Mod::kRn) || in.Has(Mod::kRz) || in.Has(Mod::kRp) || in.Has(Mod::kRm);
  switch (operation) {
    case Operation::kQuotient:
      return rounded ? On(Pipe::kFma, 8, 1) : On(Pipe::kFma, 3, 1);
    case Operation::kReciprocal:
      return rounded ? On(Pipe::kFma, 4, 1) : On(Pipe::kSpecial);
    case Operation::kRoot:
      return rounded ? On(Pipe::kFma, 7, 1) : On(Pipe::kSpecial);
    case Operation::kReciprocalRoot:
    case Operation::kSine:
    case Operation::kCosine:
    case Operation::kTanh:
      return On(Pipe::kSpecial);
    case Operation::kExp2:
    case Operation::kLog2:
      // Small arguments are scaled there and back.
      return in.Has(Mod::kFtz) ? On(Pipe::kSpecial) : On(Pipe::kFma, 2, 1);
    case Operation::kLeast:
    case Operation::kGreatest:
    case Operation::kCompare:
    case Operation::kCompareToValue:
    case Operation::kCopySign:
      return On(Pipe::kAlu);
    case Operation::kNegation:
    case Operation::kMagnitude:
      return On(Pipe::kAlu, 0);  // Part of whoever reads it.
    default:
      return On(Pipe::kFma, in.type() == Type::kF32x2 ? 2 : 1);
  }
}

MachineWork OnIntegers(const Instruction& in, Operation operation) {
  const int words = WordsOf(in.type());
  switch (operation) {
    case Operation::kProduct:
    case Operation::kMultiplyAdd:
      if (words == 2) return On(Pipe::kFma, in.Has(Mod::kHi) ? 8 : 4);
      return On(Pipe::kFma, in.Has(Mod::kWide) ? 2 : 1);
    case Operation::kQuotient:
    case Operation::kRemainder:
      return words == 2 ? On(Pipe::kAlu, 60, 1) : On(Pipe::kAlu, 14, 1);
    default:
      break;
  }
  switch (in.opcode) {
    case Opcode::kPopc:
    case Opcode::kClz:
    case Opcode::kBrev:
    case Opcode::kBfind:
      return On(Pipe::kSpecial, words);
    case Opcode::kDp2a:
    case Opcode::kDp4a:
    case Opcode::kMul24:
    case Opcode::kMad24:
      return On(Pipe::kFma);
    case Opcode::kBfe:
    case Opcode::kBfi:
      return On(Pipe::kAlu, 2 * words);
    default:
      return On(Pipe::kAlu, words);
  }
}

MachineWork OfConversion(const Instruction& in) {
  const Type to = in.type(0);
  const Type from = in.type(1);
  if (to == Type::kF64 || from == Type::kF64) return On(Pipe::kConvert, 4);
  if (ptx::IsInteger(to) && ptx::IsInteger(from)) {
    // A half of a wider one is there already.
    return On(Pipe::kAlu, ptx::BitsOf(to) > ptx::BitsOf(from) ? 1 : 0);
  }
  // A bfloat16 is the upper half of a float.
  if (from == Type::kBF16 && to == Type::kF32) return On(Pipe::kAlu);
  if (from == Type::kF16 && to == Type::kF32) return On(Pipe::kHalf);
  if (ptx::BitsOf(to) == 64 || ptx::BitsOf(from) == 64) return On(Pipe::kConvert, 4);
  return On(Pipe::kConvert);
}

MachineWork OfMove(const Instruction& in) {
  if (in.opcode != Opcode::kMov) return On(Pipe::kAlu, WordsOf(in.type()));
  // Halves of a word are put together; whatever else is copied is not.
  const bool halves =
      ptx::BitsOf(in.type()) == 32 && std::ranges::any_of(in.operands, [](const auto& operand) {
        return operand.kind == ptx::Operand::Kind::kVector;
      });
  return On(Pipe::kAlu, halves ? 1 : 0);
}

MachineWork OfMemory(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kCvta:
      return On(Pipe::kAlu, 0);
    case Opcode::kLd:
    case Opcode::kLdu:
    case Opcode::kSt: {
      const bool parameter = in.space == Space::kParam || in.space == Space::kParamEntry ||
                             in.space == Space::kParamFunc || in.space == Space::kConst;
      return parameter ? On(Pipe::kAlu, 0) : On(Pipe::kMemory);
    }
    default:
      return On(Pipe::kAlu);
  }
}

MachineWork ByOperation(const Instruction& in) {
  const Operation operation = ptx::FormOf(in).rules.operation;
  // Of set, the first type is the result's.
  const Type type =
      in.opcode == Opcode::kSet || in.opcode == Opcode::kSlct ? in.type(1) : in.type();
  if (type == Type::kF64) return OnDoubles(in, operation);
  if (IsHalf(type)) return OnHalves(operation, type);
  if (type == Type::kF32 || type == Type::kF32x2) return OnFloats(in, operation);
  return OnIntegers(in, operation);
}

MachineWork OfFamily(const Instruction& in) {
  switch (ptx::FamilyOf(in.opcode)) {
    case Family::kControl:
    case Family::kBarrier:
    case Family::kFence:
      return On(Pipe::kControl);
    case Family::kMbarrier:
    case Family::kAtomic:
      return On(Pipe::kMemory);
    case Family::kAsyncCopy:
      return ptx::FormOf(in).rules.effect == ptx::Effect::kGroup ? On(Pipe::kControl)
                                                                 : On(Pipe::kMemory);
    case Family::kMemory:
      return OfMemory(in);
    case Family::kWarp:
      if (in.opcode == Opcode::kShfl) return On(Pipe::kShuffle);
      return in.opcode == Opcode::kRedux ? On(Pipe::kShuffle, 2) : On(Pipe::kAlu);
    case Family::kMatrix:
      if (ptx::FormOf(in).rules.effect == ptx::Effect::kGroup &&
          in.opcode != Opcode::kWgmmaMmaAsync)
        return On(Pipe::kControl);
      return ptx::FormOf(in).rules.shadow == ptx::Shadow::kProduct ||
                     in.opcode == Opcode::kWgmmaMmaAsync
                 ? On(Pipe::kMatrix)
                 : On(Pipe::kMemory);
    case Family::kMove:
      return OfMove(in);
    case Family::kConvert:
      return OfConversion(in);
    default:
      return ByOperation(in);
  }
}

}  // namespace

MachineWork WorkOf(const Instruction& in) {
  MachineWork work = OfFamily(in);
  const ptx::Effect effect = ptx::FormOf(in).rules.effect;
  work.barrier = effect == ptx::Effect::kBlock;
  work.ends_region = ptx::Leaves(effect) || effect == ptx::Effect::kCall || work.barrier ||
                     effect == ptx::Effect::kFence || effect == ptx::Effect::kPeers;
  return work;
}

MatrixType MatrixTypeOf(const Instruction& in) {
  // Products of halves name the types of accumulators alone (wmma), or all four.
  const Type type = in.types.size() > 2 ? in.type(1) : Type::kF16;
  switch (ptx::BitsOf(type)) {
    case 64:
      return MatrixType::kDouble;
    case 32:
      return MatrixType::kTf32;
    case 16:
      return MatrixType::kHalf;
    case 8:
      return MatrixType::kByte;
    default:
      return MatrixType::kSmall;
  }
}

}  // namespace assay::emu

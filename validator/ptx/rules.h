// What an instruction does, in the terms in which others reason about it: one enumeration a question, one answer a row.
//
// The rows of opcodes.def answer for every form of a mnemonic, and ptx::Form carries the answers together with what isa.def says of
// operands (roles, types, widths, how memory is accessed). Whoever wants to know what an instruction does to addresses, undefined
// bits, numbers or control reads them there; nobody asks what it is called. What the answers mean is up to those who act on them:
// emu/watch (definedness, overflow, what the machine chose), emu/shadow, facts.
//
// Values only; a Rules has four bytes, so that decoded instructions hold theirs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::ptx {

/// What is computed, as algebra: for numbers of any type.
enum class Operation : std::uint8_t {
  kNone,  ///< Nothing that anybody reasons about.
  kCopy,
  kConvert,
  kSelect,          ///< a or b, by a predicate.
  kSelectBySign,    ///< a or b, by the sign of c.
  kCompare,         ///< To predicates.
  kCompareToValue,  ///< To a register.
  kMatch,           ///< Which lanes have equal values.
  kSum,
  kDifference,
  kProduct,
  kMultiplyAdd,
  kQuotient,
  kRemainder,
  kNegation,
  kMagnitude,
  kLeast,
  kGreatest,
  kAnd,
  kOr,
  kXor,
  kLogic,  ///< Of three operands, by a table.
  kShiftLeft,
  kShiftRight,
  kExtract,  ///< A bit field.
  kReciprocal,
  kRoot,
  kReciprocalRoot,
  kExp2,
  kLog2,
  kSine,
  kCosine,
  kTanh,
  kCopySign,
  kChangeSpace,   ///< The address, as another state space has it.
  kPeerAddress,   ///< The address, in another block of the cluster.
  kStackAddress,  ///< An address of the thread's own stack.
  kUseAddress,    ///< Takes an address, without brackets, for what an address is for.
};
inline constexpr std::size_t kOperationCount = static_cast<std::size_t>(Operation::kUseAddress) + 1;

/// What happens besides results in registers and accesses to memory (those are operands' roles).
enum class Effect : std::uint8_t {
  kNone,
  kBranch,
  kTable,  ///< A branch by a list of targets.
  kCall,
  kReturn,
  kExit,
  kTrap,
  kWarp,   ///< Lanes of the warp meet.
  kBlock,  ///< Threads of the block meet.
  kPeers,  ///< Blocks see each other, beyond plain accesses to memory.
  kFence,  ///< Orders accesses.
  kGroup,  ///< Starts, closes or awaits asynchronous work.
  kCarry,  ///< Reads the carry that a `.cc` before it wrote.
  kStack,  ///< Moves the top of the thread's stack.
};
/// May control go elsewhere than to the next instruction, other than by a call?
constexpr bool Leaves(Effect effect) {
  return effect == Effect::kBranch || effect == Effect::kTable || effect == Effect::kReturn ||
         effect == Effect::kExit || effect == Effect::kTrap;
}

/// How undefined bits of sources become undefined bits of results (emu/watch/undefined.h).
enum class Definedness : std::uint8_t {
  kWhole,      ///< One undefined bit makes all undefined.
  kMoved,      ///< Bits of the sources are moved about,
  kMovedOne,   ///< of the first source: the others say how;
  kMovedTwo,   ///< of the first two.
  kConverted,  ///< kMovedOne between integers, kPaired to pairs, otherwise kWhole.
  kBitwise,    ///< Each bit by itself.
  kUpward,     ///< Integers: from the lowest undefined bit upwards; pairs: kByHalves.
  kByHalves,   ///< Of pairs, each half by itself; otherwise kWhole.
  kCompared,   ///< Of pairs, a predicate for each half; of integers for equality, kDecided.
  kMatrix,     ///< By rows of A and columns of B.
  // What the row's answer comes to for some instructions:
  kPaired,   ///< Two values become the halves of one.
  kDecided,  ///< Known as soon as defined bits differ.
};

/// What becomes of the history of numbers (emu/shadow/plan.h). Operations on floats that have a
/// formula follow it, whatever the row says.
enum class Shadow : std::uint8_t {
  kPlain,   ///< No numbers with a history come out.
  kOpaque,  ///< They may, and it is lost.
  kBits,    ///< Bits that may be those of floats are worked on.
  kMove,
  kSelect,
  kConvert,
  kCompare,
  kShuffle,
  kLoad,
  kStore,
  kAtomic,
  kAsyncCopy,
  kProduct,   ///< Of matrices.
  kRows,      ///< Rows of matrices, from or to shared memory.
  kFragment,  ///< Fragments of matrices, from or to memory.
};

struct Rules {
  Operation operation = Operation::kNone;
  Effect effect = Effect::kNone;
  Definedness definedness = Definedness::kWhole;
  Shadow shadow = Shadow::kPlain;
  bool operator==(const Rules&) const = default;
};

}  // namespace assay::ptx

// How one warp executes one decoded instruction: the contract between the core and the instruction families.
//
// Registers are structures of arrays. A register file is an array of *slots* of 128 bytes, 32 lanes by 4 bytes:
//   16- and 32-bit registers take one slot (16-bit lanes are packed in its first 64 bytes, as uint16_t[32]),
//   64-bit registers two slots (uint64_t[32]), 128-bit registers four (lane-major: 16 bytes a lane).
// 8-bit PTX registers do not exist as storage: .b8/.u8/.s8 registers are kept in 16-bit lanes.
// Predicates are not slots but LaneMasks, one bit a lane.
//
// Immediates, special registers that do not change while a warp lives, and symbol addresses are *constant slots*: the decoder
// gives them slots in the same file, filled when the warp starts. A handler therefore sees registers only.
//
// A handler is a plain function for one (opcode, types, modifiers) combination, chosen once by a resolver. It computes all 32 lanes
// and keeps the results of those in `warp.exec` (the active lanes that pass the guard). Handlers for arithmetic know nothing of
// monitors: definedness of registers is propagated by the core from Decoded's operand slots.
//
// Example, the whole of add.s32:
//   Handler ResolveAdd(const ptx::Instruction& in) {
//     switch (in.type()) { case Type::kS32: return in.Has(Mod::kSat) ? &Map2<u32, AddSatS32> : &Map2<u32, AddU32>; ... }
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "validator/emu/semantics/warp_size.h"
#include "validator/ptx/module.h"
#include "validator/ptx/rules.h"

namespace assay::emu {

inline constexpr std::size_t kSlotBytes = 128;
using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = 0xffffffffu;

struct Warp;
struct Decoded;
using Handler = void (*)(Warp& warp, const Decoded& op);

/// One operand, resolved.
struct DecodedOperand {
  enum class Kind : std::uint8_t { kNone, kSlot, kPredicate, kSink };
  Kind kind = Kind::kNone;
  bool negated = false;   ///< Of a predicate.
  std::uint8_t bits = 0;  ///< Width of the register as declared: 16, 32, 64, 128; 1 for predicates.
  Slot slot = kNoSlot;    ///< Slot number, or index into the predicate file.
  std::uint32_t shadow = 0;  ///< Index into the frame's definedness masks.
  std::int64_t offset = 0;   ///< Of an address operand: added to the base in `slot`.
};

/// One decoded instruction. 64 bytes or so; the program is a flat array of these.
struct Decoded {
  Handler run = nullptr;
  Handler monitored = nullptr;  ///< Replaces `run` when monitors watch; null: the same.
  // The common operands, so that three-operand arithmetic touches one cache line: destination and up to four sources.
  Slot d = kNoSlot;
  Slot a = kNoSlot;
  Slot b = kNoSlot;
  Slot c = kNoSlot;
  /// All operands in PTX order (vectors flattened, destination first), `operand_count` of them from Program::operands.
  const DecodedOperand* operands = nullptr;
  std::uint16_t operand_count = 0;
  std::uint16_t destinations = 0;  ///< How many of them, from the front, are written.
  std::uint32_t guard = kNoSlot;   ///< Predicate index, or kNoSlot.
  bool guard_negated = false;
  std::uint8_t propagate = 0;    ///< Who says what undefined sources make of the destinations.
  std::uint16_t flags = 0;       ///< For the core.
  std::uint16_t extra_work = 0;  ///< ExtraWork (work.h).
  ptx::Rules rules;              ///< The row's; `definedness` as it comes to for this instruction.
  std::uint64_t immediate =
      0;  ///< Address offset, lop3 table, cvt details: whatever the resolver put there.
  std::uint32_t target = 0;  ///< Branch target, as a program counter.
  std::uint32_t aux = 0;     ///< Free for the family: a table index, a shape.
  const ptx::Instruction* source = nullptr;
};

/// Deterministic perturbation of approximate results within their documented bound; off when seed is 0.
struct Perturbation {
  std::uint64_t seed = 0;
};

/// What a handler may touch. The core derives its own richer state from this (core.h).
struct Warp {
  std::byte* slots = nullptr;  ///< 128-byte aligned.
  LaneMask* predicates = nullptr;
  LaneMask exec = 0;   ///< Lanes to execute: active and passing the guard.
  LaneMask carry = 0;  ///< CC.CF, a bit a lane.
  Perturbation perturbation;

  template <class T>
  T* Lanes(Slot slot) {
    return reinterpret_cast<T*>(slots + static_cast<std::size_t>(slot) * kSlotBytes);
  }
};

/// Chooses the handler of an instruction, or null when the family does not cover this form (the program is then refused as
/// `inconclusive`, naming instruction and line). May set `immediate` and `aux` of `decoded`.
using Resolver = Handler (*)(const ptx::Instruction& instruction, Decoded& decoded);

/// One row a covered opcode; families export a table of these (handlers/*.cc) and the core joins them (resolver.h).
struct ResolverRow {
  ptx::Opcode opcode;
  Resolver resolve;
};

}  // namespace assay::emu

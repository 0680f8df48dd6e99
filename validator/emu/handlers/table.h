// Handlers as a table: one row an instruction form, matched whole.
//
// A row names opcode, types and the exact set of modifiers. A form that no row matches has no
// handler, and the program is refused; so a modifier that nobody thought of is never ignored. `.rn`
// is not part of the set: where rounding is optional it is the default, and where it is not the
// verifier has asked for a mode.
//
// `prepare` completes the decoded instruction (an immediate, a mode) or refuses operands that the
// row does not cover; then the rows after it are tried.
//
//   constexpr HandlerRow kRows[] = {
//       {Opcode::kAdd, {Type::kS32}, {}, Map<Add<u32>>},
//       {Opcode::kAdd, {Type::kS32}, Mods(Mod::kSat), Map<AddSat>},
//   };
#pragma once

#include <cstdint>

#include "validator/emu/exec.h"

namespace assay::emu {

using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

/// A set of modifiers among the first 128 of modifiers.def, where all that concern arithmetic are.
struct ModSet {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  constexpr bool operator==(const ModSet&) const = default;
  constexpr ModSet operator|(ModSet other) const { return {low | other.low, high | other.high}; }
};
constexpr ModSet SetOf(Mod mod) {
  const auto bit = static_cast<unsigned>(mod);
  if (bit < 64) return {std::uint64_t{1} << bit, 0};
  return {0, bit < 128 ? std::uint64_t{1} << (bit - 64) : 0};
}
template <class... M>
constexpr ModSet Mods(M... mods) {
  return (ModSet{} | ... | SetOf(mods));
}
static_assert(static_cast<unsigned>(Mod::kRight) < 128);

struct TypeList {
  Type type[4] = {};
  constexpr bool operator==(const TypeList&) const = default;
};

/// May fill `immediate` and `aux`; false: this row does not cover it.
using Prepare = bool (*)(const ptx::Instruction& instruction, Decoded& decoded);

/// A handler and how many sources its instruction must have; -1: its `prepare` knows.
struct LaneHandler {
  Handler run = nullptr;
  int sources = -1;
  constexpr LaneHandler() = default;
  constexpr LaneHandler(Handler handler, int count) : run(handler), sources(count) {}
  constexpr LaneHandler(Handler handler) : run(handler) {}  // NOLINT(google-explicit-constructor)
};

struct HandlerRow {
  Opcode opcode;
  TypeList types;
  ModSet mods;
  LaneHandler handler;
  Prepare prepare = nullptr;
};

/// What the rows are matched with.
struct Signature {
  Opcode opcode{};
  TypeList types;
  ModSet mods;
  bool beyond = false;  ///< Has more types or other modifiers than a row can express.
};
Signature SignatureOf(const ptx::Instruction& instruction);

/// The handler of the row that matches, prepared; null when there is none.
Handler FindHandler(const HandlerRow* rows, std::size_t count, const ptx::Instruction& instruction,
                    Decoded& decoded);
Handler FindHandler(const HandlerRow* rows, std::size_t count, const Signature& signature,
                    const ptx::Instruction& instruction, Decoded& decoded);

template <std::size_t kCount>
Handler FindHandler(const HandlerRow (&rows)[kCount], const ptx::Instruction& instruction,
                    Decoded& decoded) {
  return FindHandler(rows, kCount, instruction, decoded);
}

}  // namespace assay::emu

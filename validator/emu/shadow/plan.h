// How the shadow tracker treats one instruction: decided once, by what its row says (ptx::Shadow), types and modifiers.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/emu/program.h"
#include "validator/emu/shadow/formula.h"
#include "validator/emu/shadow/ledger.h"

namespace assay::emu {

enum class Act : std::uint8_t {
  kUnknown,  ///< Not looked at yet.
  kPlain,    ///< No numbers with a history come out: destinations stand for themselves.
  kOpaque,   ///< Numbers may come out whose history is lost.
  kFormula,  ///< Floating-point arithmetic.
  kNarrow,   ///< cvt between floating-point formats, lane by lane.
  kPack,     ///< cvt of two f32 to a pair of halves.
  kFromInteger,
  kToInteger,
  kRoundToIntegral,  ///< cvt.rni.f32.f32 and the like.
  kCompare,
  kMove,    ///< Pieces keep their order: mov with and without vectors.
  kSelect,  ///< selp
  kBits,    ///< Integer and logical instructions, which people also use on floats.
  kShuffle,
  kLoad,
  kStore,
  kAtomic,
  kAsyncCopy,   ///< cp.async
  kMatrix,      ///< mma of floating-point operands
  kMatrixRows,  ///< ldmatrix, stmatrix
  kFragment,    ///< wmma.load, wmma.store
};

struct Plan {
  Act act = Act::kUnknown;
  NumberFormat from = NumberFormat::kNone;
  NumberFormat to = NumberFormat::kNone;
  std::uint8_t packed = 1;       ///< Numbers a register.
  std::uint8_t operands = 0;     ///< Of a formula.
  bool saturates = false;        ///< To [0, 1].
  bool clamps_negative = false;  ///< .relu
  /// Sources that hold an f32, as far as types tell, where bits are worked on: bit i for operand i.
  std::uint32_t float_sources = 0;
  bool steps = false;  ///< Adds a constant so large that the sum is rounded to an integer.
  const FormulaRow* formula = nullptr;
  SiteId site = kOtherSite;  ///< Set by the tracker.
};

/// Registers of a function that hold the bits of an f32, or an integer made from those or into one:
/// by RegisterIndex. Follows types, moves and what keeps most of the bits.
std::vector<bool> FloatRegisters(const ptx::Function& function);

/// `floats` are the FloatRegisters of the function that `pc` lies in.
Plan PlanFor(const Program::Impl& program, std::uint32_t pc, const std::vector<bool>& floats);

}  // namespace assay::emu

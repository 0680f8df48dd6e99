#include "validator/emu/operand_width.h"

#include <algorithm>

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

int RegisterBits(Type type) {
  if (type == Type::kPred) return 1;
  return std::max(16, ptx::BitsOf(type));
}

/// Exceptions from "as wide as the first type": operand `index` (kAll: every one from `index` on)
/// takes `bits`, or type `type`.
struct WidthRow {
  Opcode opcode;
  std::size_t first;
  std::size_t last;
  int bits;  ///< 0: take type number `type`.
  std::size_t type;
};

constexpr std::size_t kRest = 99;
constexpr WidthRow kWidths[] = {
    {Opcode::kShl, 2, 2, 32, 0},
    {Opcode::kShr, 2, 2, 32, 0},
    {Opcode::kShf, 0, kRest, 32, 0},
    {Opcode::kBfe, 2, 3, 32, 0},
    {Opcode::kBfi, 3, 4, 32, 0},
    {Opcode::kFns, 0, kRest, 32, 0},
    {Opcode::kLop3, 0, kRest, 32, 0},
    {Opcode::kPrmt, 0, kRest, 32, 0},
    {Opcode::kBmsk, 0, kRest, 32, 0},
    {Opcode::kSzext, 0, kRest, 32, 0},
    {Opcode::kDp2a, 0, kRest, 32, 0},
    {Opcode::kDp4a, 0, kRest, 32, 0},
    {Opcode::kSet, 1, 2, 0, 1},
    {Opcode::kSlct, 3, 3, 0, 1},
    {Opcode::kCvt, 1, kRest, 0, 1},
    {Opcode::kCvtPack, 1, kRest, 32, 0},
    {Opcode::kShfl, 0, kRest, 32, 0},
    {Opcode::kMatch, 0, 0, 32, 0},
    {Opcode::kMatch, 2, 3, 32, 0},
    {Opcode::kRedux, 2, 2, 32, 0},
    {Opcode::kActivemask, 0, 0, 32, 0},
    {Opcode::kElect, 0, kRest, 32, 0},
    {Opcode::kNanosleep, 0, 0, 32, 0},
    {Opcode::kBrx, 0, 0, 32, 0},
    {Opcode::kBar, 0, kRest, 32, 0},
    {Opcode::kBarrier, 0, kRest, 32, 0},
    {Opcode::kBarWarpSync, 0, kRest, 32, 0},
    {Opcode::kSetmaxnreg, 0, 0, 32, 0},
    {Opcode::kMapa, 2, 2, 32, 0},
    {Opcode::kGetctarank, 0, 0, 32, 0},
    {Opcode::kMbarrierInit, 1, 1, 32, 0},
    {Opcode::kMbarrierArrive, 1, 2, 32, 0},
    {Opcode::kMbarrierArriveDrop, 1, 2, 32, 0},
    {Opcode::kMbarrierExpectTx, 1, 1, 32, 0},
    {Opcode::kMbarrierCompleteTx, 1, 1, 32, 0},
    {Opcode::kMbarrierPendingCount, 0, 0, 32, 0},
    {Opcode::kCpAsync, 2, 3, 32, 0},
    {Opcode::kCpAsyncWaitGroup, 0, 0, 32, 0},
    {Opcode::kCpAsyncBulkWaitGroup, 0, 0, 32, 0},
    {Opcode::kCpAsyncBulk, 2, 2, 32, 0},
    {Opcode::kCpAsyncBulk, 4, 4, 16, 0},
    {Opcode::kCpReduceAsyncBulk, 2, 2, 32, 0},
    {Opcode::kAlloca, 1, 2, 32, 0},
    {Opcode::kCreatePolicy, 1, kRest, 32, 0},
    {Opcode::kPmevent, 0, 0, 32, 0},
    {Opcode::kWgmmaWaitGroup, 0, 0, 32, 0},
    {Opcode::kPrefetch, 0, 0, 64, 0},
    {Opcode::kMma, 0, kRest, 32, 0},
    {Opcode::kWmmaLoad, 2, 2, 32, 0},
    {Opcode::kWmmaStore, 2, 2, 32, 0},
    {Opcode::kWgmmaMmaAsync, 3, 3, 1, 0},
    {Opcode::kWgmmaMmaAsync, 4, kRest, 32, 0},
};

/// Opcodes that write nothing, whatever stands first.
constexpr Opcode kNoDestination[] = {
    Opcode::kSt,
    Opcode::kRed,
    Opcode::kRedAsync,
    Opcode::kStAsync,
    Opcode::kStBulk,
    Opcode::kApplyPriority,
    Opcode::kDiscard,
    Opcode::kPrefetch,
    Opcode::kPrefetchu,
    Opcode::kStackrestore,
    Opcode::kCpAsync,
    Opcode::kCpAsyncBulk,
    Opcode::kCpAsyncBulkCommitGroup,
    Opcode::kCpAsyncBulkPrefetch,
    Opcode::kCpAsyncBulkPrefetchTensor,
    Opcode::kCpAsyncBulkTensor,
    Opcode::kCpAsyncBulkWaitGroup,
    Opcode::kCpAsyncCommitGroup,
    Opcode::kCpAsyncMbarrierArrive,
    Opcode::kCpAsyncWaitAll,
    Opcode::kCpAsyncWaitGroup,
    Opcode::kCpReduceAsyncBulk,
    Opcode::kCpReduceAsyncBulkTensor,
    Opcode::kTensormapReplace,
    Opcode::kTensormapCpFenceproxy,
    Opcode::kBarWarpSync,
    Opcode::kBarrierCluster,
    Opcode::kFence,
    Opcode::kGriddepcontrol,
    Opcode::kMbarrierCompleteTx,
    Opcode::kMbarrierExpectTx,
    Opcode::kMbarrierInit,
    Opcode::kMbarrierInval,
    Opcode::kMembar,
    Opcode::kStmatrix,
    Opcode::kWgmmaCommitGroup,
    Opcode::kWgmmaFence,
    Opcode::kWgmmaWaitGroup,
    Opcode::kWmmaStore,
    Opcode::kBra,
    Opcode::kBrkpt,
    Opcode::kBrx,
    Opcode::kCall,
    Opcode::kExit,
    Opcode::kNanosleep,
    Opcode::kPmevent,
    Opcode::kRet,
    Opcode::kSetmaxnreg,
    Opcode::kTrap,
    Opcode::kMultimem,
};

}  // namespace

int OperandBits(const Instruction& in, std::size_t index) {
  const Operand& operand = in.operands[index];
  if (operand.kind == Operand::Kind::kAddress || operand.kind == Operand::Kind::kTensor) return 64;
  // A predicate among the sources: selp, the combined forms of setp, bar.red, vote.
  if (in.opcode == Opcode::kVote) return index == 1 ? 1 : 32;
  if ((in.opcode == Opcode::kBar || in.opcode == Opcode::kBarrier) && in.Has(Mod::kRed) &&
      index + 1 == in.operands.size()) {
    return 1;
  }
  if (in.opcode == Opcode::kSelp && index == 3) return 1;
  if (in.opcode == Opcode::kSetp && index >= 3 + (in.operands[1].paired ? 1u : 0u)) return 1;
  if (in.opcode == Opcode::kSet && index == 3) return 1;
  // A sparse product has metadata and a selector before its predicate.
  if (in.opcode == Opcode::kWgmmaMmaAsync && in.Has(Mod::kSp) && index >= 3)
    return index == 5 ? 1 : 32;
  for (const WidthRow& row : kWidths) {
    if (row.opcode != in.opcode || index < row.first || index > row.last) continue;
    return row.bits != 0 ? row.bits : RegisterBits(in.type(row.type));
  }
  if (in.opcode == Opcode::kMbarrierTestWait || in.opcode == Opcode::kMbarrierTryWait) {
    return index == 2 && !in.Has(Mod::kParity) ? 64 : 32;
  }
  const bool wide = in.Has(Mod::kWide) && (in.opcode == Opcode::kMul || in.opcode == Opcode::kMad);
  if (wide && (index == 0 || index == 3)) return 2 * RegisterBits(in.type());
  if (in.type() == Type::kNone) return 32;
  int bits = RegisterBits(in.type());
  if (operand.kind == Operand::Kind::kVector && in.opcode == Opcode::kMov &&
      !operand.elements.empty()) {
    bits = std::max(16, bits / static_cast<int>(operand.elements.size()));
  }
  return bits;
}

std::size_t DestinationOperands(const Instruction& in) {
  if (in.operands.empty() ||
      std::ranges::find(kNoDestination, in.opcode) != std::end(kNoDestination))
    return 0;
  if ((in.opcode == Opcode::kBar || in.opcode == Opcode::kBarrier) && !in.Has(Mod::kRed)) return 0;
  if (in.operands[0].kind == Operand::Kind::kAddress) return 0;
  std::size_t count = 1;
  while (count < in.operands.size() && in.operands[count].paired) ++count;
  return count;
}

}  // namespace assay::emu

// Shadow values: runs a kernel's instructions and follows, in FP64, what each number would be
// without rounding, and which source line's rounding made the difference (docs/shadow-values.md).
//
// Model: every register and memory place that holds a floating-point number with a history has a
// shadow value (ledger.h), found through the 16-bit pieces that it is made of (pieces.h). The actual
// execution decides everything: branches, addresses, integers; shadows only follow. Where an
// instruction is not followed, or bits are treated as something else than a number, the number
// stands for itself from there on (its shadow is its actual value) and `lost` counts. Comparisons
// and roundings to integers that would have come out otherwise for the shadows are counted as
// `flipped`: the shadow is then that of a path that the exact computation would not have taken.
//
// The lanes of an atomic run one by one, in the order in which they would take effect.
//
// Cost: tens of times the plain interpreter, and memory that is bounded by
// Limits::max_memory_bytes (and by kMostBytes); beyond that the run ends with kResourceLimit and says
// nothing. Deterministic. One tracker serves one Run on one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "validator/emu/core.h"
#include "validator/emu/shadow/ledger.h"
#include "validator/emu/shadow/pieces.h"
#include "validator/emu/shadow/plan.h"

namespace assay::emu {

class ShadowTracker {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{768} << 20;

  explicit ShadowTracker(Device& device);

  /// Registers and local memory of the launch before are gone.
  void BeginLaunch();
  /// Runs `op` for warp.exec and follows it.
  void Execute(CoreWarp& warp, const Decoded& op);
  /// A call copied `bytes` of a lane's local memory.
  void CopyLocal(const CoreWarp& warp, int lane, std::uint64_t to, std::uint64_t from,
                 std::uint64_t bytes);
  /// Fills report.origin for the elements that the execution asks about.
  void Finish(Report& report);

 private:
  /// Pieces of a register file, laid out as its bytes.
  struct FramePieces {
    std::vector<Piece> pieces;
    std::vector<std::uint8_t> live;  ///< By slot: it may have pieces.
  };
  /// A register, or an immediate: `stride` bytes a lane.
  struct Register {
    std::byte* data = nullptr;
    Piece* pieces = nullptr;
    std::uint8_t* live = nullptr;
    std::size_t stride = 4;
    std::size_t halves() const { return stride / 2; }
    std::byte* at(int lane) const { return data + static_cast<std::size_t>(lane) * stride; }
    Piece* pieces_at(int lane) const { return pieces + static_cast<std::size_t>(lane) * halves(); }
  };
  /// A number that was read.
  struct Number {
    double actual = 0;
    double shadow = 0;
    ValueId id = kExact;
  };

  // tracker.cc
  Plan& PlanOf(CoreWarp& warp, const Decoded& op);
  SiteId SiteAt(std::uint32_t pc);
  FramePieces& PiecesOf(const CoreWarp& warp);
  Register RegisterOf(CoreWarp& warp, const DecodedOperand& operand);
  bool AnyLive(CoreWarp& warp, const Decoded& op, std::size_t first, std::size_t end);
  /// Those lanes of the destinations stand for themselves.
  void Forget(CoreWarp& warp, const Decoded& op, LaneMask lanes);
  Number Read(NumberFormat format, const std::byte* at, const Piece* pieces);
  Number ReadMemory(NumberFormat format, std::uint64_t key, const std::byte* at);
  static void Write(ValueId id, NumberFormat format, const std::byte* at, Piece* pieces);
  void WriteMemory(ValueId id, NumberFormat format, std::uint64_t key, const std::byte* at);
  /// The value of an operation with this result.
  ValueId Result(const Plan& plan, const Formula& exact, double shadow, const Number* operands,
                 std::size_t count, double actual);
  /// The same where `actual` is infinite or no number.
  ValueId NotFinite(const Plan& plan, double shadow, const Number* operands, std::size_t count,
                    double actual);
  /// Rounding of the value that is being built.
  void Charge(const Plan& plan, double error);
  ValueId Converted(const Plan& plan, const Number& from, double actual);
  void Collect();

  // track_float.cc
  void RunFormula(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunConversion(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunFromInteger(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunToInteger(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunCompare(CoreWarp& warp, const Decoded& op, const Plan& plan);

  // track_bits.cc
  void RunMove(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunSelect(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunBits(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunShuffle(CoreWarp& warp, const Decoded& op, const Plan& plan);
  /// Gives numbers without a history a value, in the lanes and sources where `plan` knows an f32.
  void NameFloats(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void MarkSplit(Piece* pieces, std::size_t count, SiteId site) const;
  ValueId FromFloatBits(const Plan& plan, const Number& from, std::uint32_t bits,
                        std::uint32_t result);

  // track_memory.cc
  std::uint64_t KeyOf(const CoreWarp& warp, const std::byte* at) const;
  void RunLoad(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunStore(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunAtomic(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunAtomicLane(CoreWarp& warp, const Decoded& op, const Plan& plan, int lane);
  void RunAsyncCopy(CoreWarp& warp, const Decoded& op, const Plan& plan);

  // track_matrix.cc
  void RunMatrix(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunMatrixRows(CoreWarp& warp, const Decoded& op, const Plan& plan);
  void RunFragment(CoreWarp& warp, const Decoded& op, const Plan& plan);
  /// Pieces between a place in memory and a part of a register, either way.
  void LoadPieces(std::uint64_t key, std::size_t halves, const Register& to, Piece* pieces);

  Device& engine_;
  std::uint64_t max_bytes_;
  Ledger ledger_;
  PieceMap memory_;
  std::unordered_map<const Frame*, std::unique_ptr<FramePieces>> frames_;
  const Frame* last_frame_ = nullptr;
  FramePieces* last_pieces_ = nullptr;
  std::uint64_t frame_bytes_ = 0;
  std::vector<Plan> plans_;                                     ///< By pc.
  std::map<std::uint32_t, std::vector<bool>> float_registers_;  ///< By function.
  std::map<std::pair<std::string, std::uint32_t>, SiteId> sites_;
  std::vector<std::uint32_t> site_pcs_;    ///< By SiteId: the first instruction that was charged.
  std::vector<std::uint32_t> site_first_;  ///< By SiteId: the first instruction that ran.
  std::uint64_t launch_ = 0;
  std::uint64_t flipped_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace assay::emu

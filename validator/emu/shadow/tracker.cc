#include "validator/emu/shadow/tracker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "validator/emu/memory.h"
#include "validator/emu/shadow/lanes.h"
#include "validator/emu/site.h"

namespace assay::emu {
namespace {

constexpr std::size_t kPiecesPerSlot = kSlotBytes / 2;
/// What FP64 itself rounds away is no error of the kernel.
constexpr double kNoise = 1e-14;

}  // namespace

ShadowTracker::ShadowTracker(Device& device)
    : engine_(device),
      max_bytes_(std::min(kMostBytes, device.execution.limits.max_memory_bytes)),
      ledger_(max_bytes_),
      plans_(device.program.code.size()),
      site_pcs_(1, kNoPc),
      site_first_(1, kNoPc) {}

void ShadowTracker::BeginLaunch() {
  frames_.clear();
  last_frame_ = nullptr;
  frame_bytes_ = 0;
  ++launch_;
}

void ShadowTracker::Execute(CoreWarp& warp, const Decoded& op) {
  if (ledger_.WantsCollection()) Collect();
  const Plan& plan = PlanOf(warp, op);
  using Run = void (ShadowTracker::*)(CoreWarp&, const Decoded&, const Plan&);
  Run run = nullptr;
  switch (plan.act) {
    case Act::kFormula:
      run = &ShadowTracker::RunFormula;
      break;
    case Act::kNarrow:
    case Act::kPack:
    case Act::kRoundToIntegral:
      run = &ShadowTracker::RunConversion;
      break;
    case Act::kFromInteger:
      run = &ShadowTracker::RunFromInteger;
      break;
    case Act::kToInteger:
      run = &ShadowTracker::RunToInteger;
      break;
    case Act::kCompare:
      run = &ShadowTracker::RunCompare;
      break;
    case Act::kMove:
      run = &ShadowTracker::RunMove;
      break;
    case Act::kSelect:
      run = &ShadowTracker::RunSelect;
      break;
    case Act::kBits:
      run = &ShadowTracker::RunBits;
      break;
    case Act::kShuffle:
      run = &ShadowTracker::RunShuffle;
      break;
    case Act::kLoad:
      run = &ShadowTracker::RunLoad;
      break;
    case Act::kStore:
      run = &ShadowTracker::RunStore;
      break;
    case Act::kAtomic:
      run = &ShadowTracker::RunAtomic;
      break;
    case Act::kAsyncCopy:
      run = &ShadowTracker::RunAsyncCopy;
      break;
    case Act::kMatrix:
      run = &ShadowTracker::RunMatrix;
      break;
    case Act::kMatrixRows:
      run = &ShadowTracker::RunMatrixRows;
      break;
    case Act::kFragment:
      run = &ShadowTracker::RunFragment;
      break;
    case Act::kOpaque:
    case Act::kPlain:
    case Act::kUnknown:
      break;
  }
  if (run != nullptr) {
    (this->*run)(warp, op, plan);
    return;
  }
  if (plan.act == Act::kOpaque) ++lost_;
  op.run(warp, op);
  if (op.destinations > 0) Forget(warp, op, warp.exec);
}

Plan& ShadowTracker::PlanOf(CoreWarp& warp, const Decoded& op) {
  const std::uint32_t pc = warp.PcOf(op);
  Plan& plan = plans_[pc];
  if (plan.act == Act::kUnknown) {
    const std::uint32_t function = engine_.program.function_of[pc];
    auto [floats, inserted] = float_registers_.try_emplace(function);
    if (inserted) floats->second = FloatRegisters(*engine_.program.functions[function].function);
    plan = PlanFor(engine_.program, pc, floats->second);
    plan.site = SiteAt(pc);
  }
  return plan;
}

SiteId ShadowTracker::SiteAt(std::uint32_t pc) {
  const SourceSite site = SiteOf(engine_, pc);
  const auto key =
      site.line != 0 ? std::pair(site.file, site.line) : std::pair(std::string(), site.ptx_line);
  const auto [found, inserted] = sites_.try_emplace(key, static_cast<SiteId>(site_pcs_.size()));
  if (inserted) {
    site_pcs_.push_back(kNoPc);
    site_first_.push_back(pc);
  }
  return found->second;
}

ShadowTracker::FramePieces& ShadowTracker::PiecesOf(const CoreWarp& warp) {
  if (warp.frame == last_frame_) return *last_pieces_;
  std::unique_ptr<FramePieces>& pieces = frames_[warp.frame];
  if (pieces == nullptr) {
    const std::size_t slots = engine_.program.functions[warp.frame->function].slot_count;
    pieces = std::make_unique<FramePieces>();
    pieces->pieces.resize(slots * kPiecesPerSlot);
    pieces->live.resize(slots);
    frame_bytes_ += slots * kPiecesPerSlot * sizeof(Piece);
    if (frame_bytes_ > max_bytes_)
      engine_.End(Stop::kResourceLimit, "shadow values need more memory than the limit allows");
  }
  last_frame_ = warp.frame;
  last_pieces_ = pieces.get();
  return *pieces;
}

ShadowTracker::Register ShadowTracker::RegisterOf(CoreWarp& warp, const DecodedOperand& operand) {
  if (operand.kind != DecodedOperand::Kind::kSlot) return {};
  FramePieces& pieces = PiecesOf(warp);
  return {.data = warp.Lanes<std::byte>(operand.slot),
          .pieces = pieces.pieces.data() + std::size_t{operand.slot} * kPiecesPerSlot,
          .live = &pieces.live[operand.slot],
          .stride = operand.bits / 8u};
}

bool ShadowTracker::AnyLive(CoreWarp& warp, const Decoded& op, std::size_t first, std::size_t end) {
  const FramePieces& pieces = PiecesOf(warp);
  for (std::size_t i = first; i < end; ++i) {
    const DecodedOperand& operand = op.operands[i];
    if (operand.kind == DecodedOperand::Kind::kSlot && pieces.live[operand.slot] != 0) return true;
  }
  return false;
}

void ShadowTracker::Forget(CoreWarp& warp, const Decoded& op, LaneMask lanes) {
  for (std::size_t i = 0; i < op.destinations; ++i) {
    const Register d = RegisterOf(warp, op.operands[i]);
    if (d.live == nullptr || *d.live == 0) continue;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((lanes >> lane & 1) != 0) std::fill_n(d.pieces_at(lane), d.halves(), Piece{});
    }
    if (lanes == kAllLanes) *d.live = 0;
  }
}

ShadowTracker::Number ShadowTracker::Read(NumberFormat format, const std::byte* at,
                                          const Piece* pieces) {
  const std::size_t bytes = BytesOf(format);
  Number number;
  number.actual = number.shadow = ToDouble(format, BitsAt(at, bytes));
  if (pieces == nullptr) return number;
  const std::size_t halves = bytes / 2;
  // The uppermost piece decides whose number this is.
  const Piece& top = pieces[halves - 1];
  if (top.value == kExact || top.bits != HalfAt(at + bytes - 2)) return number;
  const ShadowValue value = ledger_.At(top.value);
  bool whole = value.format == format && top.part == halves - 1;
  bool zeros_below = true;
  for (std::size_t h = 0; h + 1 < halves; ++h) {
    const Piece& piece = pieces[h];
    const std::uint16_t half = HalfAt(at + 2 * h);
    whole = whole && piece.value == top.value && piece.part == h && piece.bits == half;
    zeros_below = zeros_below && half == 0;
  }
  // bf16 is the upper half of an f32 whose lower half is zero.
  const bool widened =
      format == NumberFormat::kF32 && value.format == NumberFormat::kBF16 && zeros_below;
  if (whole || widened) {
    number.shadow = value.shadow;
    number.id = top.value;
    return number;
  }
  const bool truncated = value.format == NumberFormat::kF32 && top.part == 1 && zeros_below &&
                         (format == NumberFormat::kBF16 || format == NumberFormat::kF32);
  if (!truncated) {
    ++lost_;
    return number;
  }
  number.shadow = value.shadow;
  ledger_.Begin();
  ledger_.AddScaled(top.value, 1);
  ledger_.Charge(top.split, number.actual - value.actual);
  number.id = ledger_.End(number.actual, number.shadow, format);
  return number;
}

ShadowTracker::Number ShadowTracker::ReadMemory(NumberFormat format, std::uint64_t key,
                                                const std::byte* at) {
  if (key == 0 || memory_.empty()) return Read(format, at, nullptr);
  Piece pieces[4];
  for (std::size_t h = 0; h < BytesOf(format) / 2; ++h) {
    if (const Piece* const piece = memory_.Find(key + h)) pieces[h] = *piece;
  }
  return Read(format, at, pieces);
}

void ShadowTracker::Write(ValueId id, NumberFormat format, const std::byte* at, Piece* pieces) {
  for (std::size_t h = 0; h < BytesOf(format) / 2; ++h) {
    pieces[h] = id == kExact ? Piece{}
                             : Piece{.value = id,
                                     .bits = HalfAt(at + 2 * h),
                                     .part = static_cast<std::uint8_t>(h),
                                     .split = kOtherSite};
  }
}

void ShadowTracker::WriteMemory(ValueId id, NumberFormat format, std::uint64_t key,
                                const std::byte* at) {
  if (key == 0) return;
  Piece pieces[4];
  Write(id, format, at, pieces);
  for (std::size_t h = 0; h < BytesOf(format) / 2; ++h) memory_.Set(key + h, pieces[h]);
}

ValueId ShadowTracker::Result(const Plan& plan, const Formula& exact, double shadow,
                              const Number* operands, std::size_t count, double actual) {
  if (!std::isfinite(actual)) return NotFinite(plan, shadow, operands, count, actual);
  // FP64 arithmetic cannot be checked in FP64.
  double rounding = plan.to == NumberFormat::kF64 ? 0 : actual - exact.value;
  const bool noise = std::fabs(rounding) <= kNoise * std::fabs(actual);
  if (!std::isfinite(exact.value) || noise) rounding = 0;
  bool history = false;
  for (std::size_t i = 0; i < count; ++i) history = history || operands[i].id != kExact;
  if (!history && rounding == 0) return kExact;
  ledger_.Begin();
  for (std::size_t i = 0; i < count; ++i) ledger_.AddScaled(operands[i].id, exact.derivative[i]);
  if (rounding != 0) Charge(plan, rounding);
  return ledger_.End(actual, shadow, plan.to);
}

// Infinity or NaN comes from an operand that is one, or begins here. Infinities that are constants
// of the kernel have no history, and a NaN made of them (-inf - -inf) begins where it is made.
ValueId ShadowTracker::NotFinite(const Plan& plan, double shadow, const Number* operands,
                                 std::size_t count, double actual) {
  bool begins = true;
  ledger_.Begin();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isfinite(operands[i].actual)) continue;
    ledger_.AddScaled(operands[i].id, 1);
    begins = begins && std::isnan(actual) && !std::isnan(operands[i].actual);
  }
  if (begins) Charge(plan, HUGE_VAL);
  return ledger_.End(actual, shadow, plan.to);
}

void ShadowTracker::Charge(const Plan& plan, double error) {
  ledger_.Charge(plan.site, error);
  std::uint32_t& pc = site_pcs_[plan.site];
  if (pc == kNoPc) pc = static_cast<std::uint32_t>(&plan - plans_.data());
}

ValueId ShadowTracker::Converted(const Plan& plan, const Number& from, double actual) {
  Formula exact{from.actual, {1}};
  double shadow = from.shadow;
  if (plan.saturates && !(exact.value >= 0 && exact.value <= 1)) exact = {actual, {}};
  if (plan.saturates) shadow = std::clamp(shadow, 0.0, 1.0);
  if (plan.clamps_negative && exact.value < 0) exact = {0, {}};
  if (plan.clamps_negative) shadow = std::max(shadow, 0.0);
  return Result(plan, exact, shadow, &from, 1, actual);
}

void ShadowTracker::Collect() {
  ledger_.Collect([&](auto visit) {
    memory_.ForEach(visit);
    for (auto& [frame, pieces] : frames_) {
      for (Piece& piece : pieces->pieces) {
        if (piece.value != kExact) visit(piece.value);
      }
    }
  });
  if (ledger_.exhausted() || memory_.bytes() > max_bytes_)
    engine_.End(Stop::kResourceLimit, "shadow values need more memory than the limit allows");
}

void ShadowTracker::Finish(Report& report) {
  const ShadowFocus& focus = engine_.execution.focus;
  const auto& specs = engine_.execution.buffers;
  if (focus.elements <= 0 || focus.buffer >= specs.size() || engine_.stopped) return;
  constexpr NumberFormat kFormats[] = {NumberFormat::kBF16, NumberFormat::kF16, NumberFormat::kF32,
                                       NumberFormat::kF64};
  const DType dtype = specs[focus.buffer].dtype;
  if (dtype < DType::kBF16) return;
  const NumberFormat format =
      kFormats[static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::kBF16)];
  const MemoryRegion& region = engine_.buffers[focus.buffer].region;
  std::vector<double> sizes(site_pcs_.size()), overflows(site_pcs_.size());
  // Errors may share their sign, or point away from zero together.
  std::vector<double> upward(site_pcs_.size()), outward(site_pcs_.size());
  ErrorOrigin origin;
  const std::int64_t end = std::min(specs[focus.buffer].elements, focus.first + focus.elements);
  for (std::int64_t i = std::max<std::int64_t>(0, focus.first); i < end; ++i) {
    const std::byte* const at = region.data + static_cast<std::size_t>(i) * SizeOf(dtype);
    const Number number = ReadMemory(format, reinterpret_cast<std::uintptr_t>(at) / 2, at);
    origin.exact.push_back(number.shadow);
    for (const Contribution& part : ledger_.ContributionsOf(number.id)) {
      if (!std::isfinite(part.error)) {
        overflows[part.site] += 1;
        continue;
      }
      sizes[part.site] += std::fabs(part.error);
      upward[part.site] += part.error;
      outward[part.site] += number.shadow < 0 ? -part.error : part.error;
    }
  }
  // What overflowed outweighs whatever was rounded.
  const bool overflowed = std::ranges::any_of(overflows, [](double n) { return n > 0; });
  const auto total_of = [](const std::vector<double>& shares) {
    return std::accumulate(shares.begin(), shares.end(), 0.0,
                           [](double sum, double share) { return sum + std::fabs(share); });
  };
  const std::vector<double>& common = total_of(upward) > total_of(outward) ? upward : outward;
  const std::vector<double>& shares = overflowed ? overflows : focus.common_sign ? common : sizes;
  const double total = total_of(shares);
  for (SiteId site = 0; site < shares.size() && total > 0; ++site) {
    if (shares[site] == 0) continue;
    ErrorShare share{.site = {}, .share = std::fabs(shares[site]) / total};
    if (site != kOtherSite)
      share.site = SiteOf(engine_, site_pcs_[site] != kNoPc ? site_pcs_[site] : site_first_[site]);
    origin.shares.push_back(std::move(share));
  }
  std::ranges::stable_sort(origin.shares, std::greater{}, &ErrorShare::share);
  if (origin.shares.size() > kMostErrorShares) origin.shares.resize(kMostErrorShares);
  origin.flipped = flipped_;
  origin.lost = lost_;
  report.origin = std::move(origin);
}

}  // namespace assay::emu

// membar and fence (PTX ISA 9.7.13.4). They move nothing: the race detector, and through it what
// loads may return (stale.h), needs to hear of them.
#include "validator/emu/core.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/weak/stale.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;

void Nothing(Warp&, const Decoded&) {}

void Fence(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (static_cast<Scope>(op.aux) >= Scope::kGpu) warp.device->NoteMeeting();
  if (!warp.device->race) return;
  warp.device->race->OnFence(warp.number, warp.exec, static_cast<Order>(op.immediate),
                             static_cast<Scope>(op.aux));
  if (warp.device->stale != nullptr && warp.device->stale->TakesTurns())
    warp.outcome = Outcome::kYield;
}

void ProxyFence(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  if (warp.device->race) warp.device->race->OnProxyFence(warp.number, warp.exec);
}

Handler ResolveFence(const Instruction& in, Decoded& decoded) {
  decoded.propagate = kPropagateSelf;
  // The asynchronous proxy is in step with the generic one here; mbarrier_init is a release of its
  // own.
  if (in.Has(Mod::kProxy)) {
    if (in.Has(Mod::kAsync)) decoded.monitored = &ProxyFence;
    return &Nothing;
  }
  Scope scope = Scope::kSys;
  if (in.Has(Mod::kCta)) scope = Scope::kCta;
  if (in.Has(Mod::kCluster)) scope = Scope::kCluster;
  if (in.Has(Mod::kGpu) || in.Has(Mod::kGl)) scope = Scope::kGpu;
  if (in.opcode == Opcode::kMembar && in.Has(Mod::kCta)) scope = Scope::kCta;
  Order order = Order::kAcqRel;
  if (in.Has(Mod::kAcquire)) order = Order::kAcquire;
  if (in.Has(Mod::kRelease)) order = Order::kRelease;
  // membar is fence.sc (9.7.13.4).
  if (in.opcode == Opcode::kMembar || in.Has(Mod::kSc)) order = Order::kSeqCst;
  decoded.immediate = static_cast<std::uint64_t>(order);
  decoded.aux = static_cast<std::uint32_t>(scope);
  decoded.monitored = &Fence;
  decoded.flags |= kFlagFence;
  return &Nothing;
}

constexpr ResolverRow kRows[] = {{Opcode::kFence, &ResolveFence}, {Opcode::kMembar, &ResolveFence}};

}  // namespace

std::span<const ResolverRow> FenceRows() { return kRows; }

}  // namespace assay::emu

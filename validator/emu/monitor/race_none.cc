#include "validator/emu/monitor/race.h"
namespace assay::emu {
struct RaceDetector::Impl { std::vector<Race> races; };
RaceDetector::RaceDetector(std::uint64_t) : impl_(std::make_unique<Impl>()) {}
RaceDetector::~RaceDetector() = default;
void RaceDetector::BeginLaunch(const Shape&) {}
void RaceDetector::EndBlock(BlockNumber, RegionId) {}
void RaceDetector::OnAccess(const WarpAccess&) {}
void RaceDetector::OnBarrierArrive(BlockNumber, std::uint32_t, WarpNumber, LaneMask, bool) {}
void RaceDetector::OnBarrierComplete(BlockNumber, std::uint32_t) {}
void RaceDetector::OnWarpBarrier(WarpNumber, LaneMask) {}
void RaceDetector::OnClusterArrive(BlockNumber, WarpNumber, LaneMask, bool) {}
void RaceDetector::OnClusterComplete(std::uint32_t) {}
void RaceDetector::OnFence(WarpNumber, LaneMask, Order, Scope) {}
std::uint64_t RaceDetector::OnAsyncIssue(WarpNumber, LaneMask, const WarpAccess&, const WarpAccess&) { return 0; }
void RaceDetector::OnAsyncWait(WarpNumber, std::uint8_t, std::uint64_t) {}
const std::vector<Race>& RaceDetector::races() const { return impl_->races; }
bool RaceDetector::exhausted() const { return false; }
std::uint64_t RaceDetector::shadow_bytes() const { return 0; }
}

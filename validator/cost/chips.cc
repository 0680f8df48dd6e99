#include "validator/cost/chips.h"

#include <algorithm>

namespace assay::cost {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

// By Pipe: fma, alu, half, double, special, convert, shuffle, memory, matrix, control.
constexpr std::array<double, kPipeCount> kAmpere = {2, 2, 4, 1, 0.5, 0.5, 1, 1, 1, 4};
constexpr std::array<double, kPipeCount> kHopper = {4, 2, 4, 2, 0.5, 2, 1, 1, 1, 4};
// By MatrixType: half, tf32, byte, double, small.
constexpr std::array<double, kMatrixTypeCount> kAmpereProducts = {1024, 512, 2048, 64, 4096};
constexpr std::array<double, kMatrixTypeCount> kHopperProducts = {2048, 1024, 4096, 128, 4096};

constexpr Chip Ampere() {
  Chip chip;
  chip.arch = "sm_80";
  chip.multiprocessors = 108;
  chip.clock_hz = 1.41e9;
  chip.l2_bytes_per_second = 3.6e12;
  chip.l2_bytes = 40 * kMiB;
  chip.shared_bytes = 164 * kKiB;
  chip.l1_bytes = 192 * kKiB;
  chip.pipes = kAmpere;
  chip.products = kAmpereProducts;
  chip.l1_latency = 38;
  chip.l2_latency = 262;
  chip.dram_latency = 466;
  return chip;
}

constexpr Chip Hopper() {
  Chip chip;
  chip.arch = "sm_90";
  chip.multiprocessors = 132;
  chip.clock_hz = 1.83e9;
  chip.l2_bytes_per_second = 5.5e12;
  chip.l2_bytes = 50 * kMiB;
  chip.shared_bytes = 228 * kKiB;
  chip.l1_bytes = 256 * kKiB;
  chip.pipes = kHopper;
  chip.products = kHopperProducts;
  chip.single_warp_share = 0.65;
  chip.l1_latency = 41;
  chip.l2_latency = 263;
  chip.dram_latency = 479;
  return chip;
}

constexpr Chip Named(Chip chip, std::string_view name, std::string_view title, double bandwidth) {
  chip.name = name;
  chip.title = title;
  chip.dram_bytes_per_second = bandwidth;
  return chip;
}

constexpr Chip HopperOnACard() {
  Chip chip = Hopper();
  chip.multiprocessors = 114;
  chip.clock_hz = 1.755e9;
  return chip;
}

// The first of a target stands for it.
constexpr std::array kChips = {
    Named(Hopper(), "h100", "H100 SXM5 80 GB", 3.35e12),
    Named(Hopper(), "h200", "H200 SXM5 141 GB", 4.8e12),
    Named(HopperOnACard(), "h100-pcie", "H100 PCIe 80 GB", 2.0e12),
    Named(Ampere(), "a100", "A100 SXM4 80 GB", 2.039e12),
    Named(Ampere(), "a100-40", "A100 SXM4 40 GB", 1.555e12),
};

}  // namespace

std::span<const Chip> Chips() { return kChips; }

const Chip* FindChip(std::string_view name) {
  const auto found = std::ranges::find(kChips, name, &Chip::name);
  return found == kChips.end() ? nullptr : &*found;
}

const Chip* ChipOf(std::string_view arch) {
  while (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) arch.remove_suffix(1);
  const auto found = std::ranges::find(kChips, arch, &Chip::arch);
  return found == kChips.end() ? nullptr : &*found;
}

}  // namespace assay::cost

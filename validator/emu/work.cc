#include "validator/emu/work.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace assay::emu {
namespace {

/// M N K of "m16n8k16"; 0 for other words.
std::uint64_t ProductsOf(std::string_view shape) {
  std::uint64_t product = 1;
  for (const char letter : {'m', 'n', 'k'}) {
    if (shape.empty() || shape.front() != letter) return 0;
    shape.remove_prefix(1);
    std::uint64_t extent = 0;
    const auto [end, problem] = std::from_chars(shape.data(), shape.data() + shape.size(), extent);
    if (problem != std::errc{}) return 0;
    shape.remove_prefix(static_cast<std::size_t>(end - shape.data()));
    product *= extent;
  }
  return shape.empty() ? product : 0;
}

/// Multiplications of a matrix product in the time of a plain instruction of a warp.
constexpr std::uint64_t kProductsOfWork = 16;

struct WorkRow {
  ptx::Opcode opcode;
  std::uint16_t extra;
};
/// Medians over kernels of corpus/large, which differ by a factor of three (docs/performance.md).
constexpr WorkRow kWorkOfOpcode[] = {
    {ptx::Opcode::kSt, 50},
    {ptx::Opcode::kCpAsync, 280},
    {ptx::Opcode::kCpAsyncBulk, 500},
    {ptx::Opcode::kCpAsyncBulkTensor, 500},
    {ptx::Opcode::kCpReduceAsyncBulk, 500},
    {ptx::Opcode::kCpReduceAsyncBulkTensor, 500},
    {ptx::Opcode::kWmmaLoad, 100},
    {ptx::Opcode::kWmmaStore, 900},
};
struct FamilyRow {
  ptx::Family family;
  std::uint16_t extra;
};
constexpr FamilyRow kWorkOfFamily[] = {
    {ptx::Family::kMemory, 25},   {ptx::Family::kAtomic, 400}, {ptx::Family::kAsyncCopy, 10},
    {ptx::Family::kWarp, 4},      {ptx::Family::kBarrier, 8},  {ptx::Family::kFence, 1000},
    {ptx::Family::kMbarrier, 40}, {ptx::Family::kMatrix, 60},
};

}  // namespace

std::uint64_t ExtraSteps(const ptx::Instruction& in) {
  const bool warpgroup = in.opcode == ptx::Opcode::kWgmmaMmaAsync;
  if (!warpgroup && in.opcode != ptx::Opcode::kMma && in.opcode != ptx::Opcode::kWmmaMma) return 0;
  for (const ptx::Mod mod : in.mods) {
    if (const std::uint64_t products = ProductsOf(ptx::Name(mod)); products != 0)
      return products / kProductsOfStep / (warpgroup ? 4 : 1);
  }
  return 0;
}

std::uint16_t ExtraWork(const ptx::Instruction& in) {
  if (const std::uint64_t products = ExtraSteps(in) * kProductsOfStep; products != 0)
    return static_cast<std::uint16_t>(products / kProductsOfWork);
  // Parameters lie in the frame of the kernel, and nobody watches them.
  if (in.space == ptx::Space::kParam || in.space == ptx::Space::kParamEntry ||
      in.space == ptx::Space::kParamFunc)
    return 0;
  const auto opcode = std::ranges::find(kWorkOfOpcode, in.opcode, &WorkRow::opcode);
  if (opcode != std::end(kWorkOfOpcode)) return opcode->extra;
  const auto family =
      std::ranges::find(kWorkOfFamily, ptx::FamilyOf(in.opcode), &FamilyRow::family);
  return family != std::end(kWorkOfFamily) ? family->extra : 0;
}

}  // namespace assay::emu

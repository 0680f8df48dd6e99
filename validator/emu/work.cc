#include "validator/emu/work.h"

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

}  // namespace assay::emu

// Chooses, once, among the handlers compiled for several levels of x86-64.
#include "validator/emu/handlers/rows.h"

#include <array>

#include "validator/emu/handlers/address_lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/semantics/tensor_levels.h"

namespace assay::emu {

/// The resolvers of a level. They are defined in the inline namespace of that name, in translation
/// units compiled for it.
#define DECLARE_LEVEL(LEVEL)                                                                      \
  namespace LEVEL {                                                                               \
  Handler ResolveInteger(const ptx::Instruction& instruction, Decoded& decoded);                  \
  Handler ResolveArithmetic(const ptx::Instruction& instruction, Decoded& decoded);               \
  Handler ResolveMove(const ptx::Instruction& instruction, Decoded& decoded);                     \
  Handler ResolveCompare(const ptx::Instruction& instruction, Decoded& decoded);                  \
  Handler ResolveFloatFamily(const ptx::Instruction& instruction, Decoded& decoded);              \
  Handler ResolveConvert(const ptx::Instruction& instruction, Decoded& decoded);                  \
  void TensorMultiplyLevel(const TensorProduct& product, const std::uint32_t* a,                  \
                           const std::uint32_t* b, const float* c, float* d);                     \
  void TensorMultiplyIntegerLevel(int m, int n, int k, bool saturate, const std::int32_t* a,      \
                                  const std::int32_t* b, const std::int32_t* c, std::int32_t* d); \
  void TensorMultiplyF64Level(int m, int n, int k, const double* a, const double* b,              \
                              const double* c, double* d);                                        \
  AddressCheck CheckAddressesLevel(const std::uint64_t* address, LaneMask lanes,                  \
                                   std::uint64_t bytes, const AddressRange& range,                \
                                   std::uintptr_t* pointer);                                      \
  PointerSpan SpanOfPointersLevel(const std::uintptr_t* pointer, LaneMask lanes);                 \
  }
DECLARE_LEVEL(v2)
DECLARE_LEVEL(v3)
DECLARE_LEVEL(v4)

namespace {

struct Level {
  Resolver integer;
  Resolver arithmetic;
  Resolver move;
  Resolver compare;
  Resolver floating;
  Resolver convert;
  decltype(&TensorMultiplyBest) tensor_multiply;
  decltype(&TensorMultiplyIntegerBest) tensor_multiply_integer;
  decltype(&TensorMultiplyF64Best) tensor_multiply_f64;
  decltype(&CheckAddressesBest) check_addresses;
  decltype(&SpanOfPointersBest) span_of_pointers;
};
#define LEVEL_ROW(LEVEL)                                                                        \
  Level {                                                                                       \
    LEVEL::ResolveInteger, LEVEL::ResolveArithmetic, LEVEL::ResolveMove, LEVEL::ResolveCompare, \
        LEVEL::ResolveFloatFamily, LEVEL::ResolveConvert, LEVEL::TensorMultiplyLevel,           \
        LEVEL::TensorMultiplyIntegerLevel, LEVEL::TensorMultiplyF64Level,                       \
        LEVEL::CheckAddressesLevel, LEVEL::SpanOfPointersLevel                                  \
  }

constexpr std::array kLevels = {LEVEL_ROW(v2), LEVEL_ROW(v3), LEVEL_ROW(v4)};

const Level& Chosen() {
  static const Level& level = kLevels[static_cast<std::size_t>(SupportedLevels() - 1)];
  return level;
}

Resolver OfFamily(const Level& level, ptx::Family family) {
  switch (family) {
    case ptx::Family::kArithmetic:
      return level.arithmetic;
    case ptx::Family::kInteger:
      return level.integer;
    case ptx::Family::kMove:
      return level.move;
    case ptx::Family::kCompare:
      return level.compare;
    case ptx::Family::kFloat:
      return level.floating;
    case ptx::Family::kConvert:
      return level.convert;
    default:
      return nullptr;
  }
}

}  // namespace

void TensorMultiplyBest(const TensorProduct& product, const std::uint32_t* a,
                        const std::uint32_t* b, const float* c, float* d) {
  Chosen().tensor_multiply(product, a, b, c, d);
}

void TensorMultiplyIntegerBest(int m, int n, int k, bool saturate, const std::int32_t* a,
                               const std::int32_t* b, const std::int32_t* c, std::int32_t* d) {
  Chosen().tensor_multiply_integer(m, n, k, saturate, a, b, c, d);
}

void TensorMultiplyF64Best(int m, int n, int k, const double* a, const double* b, const double* c,
                           double* d) {
  Chosen().tensor_multiply_f64(m, n, k, a, b, c, d);
}

AddressCheck CheckAddressesBest(const std::uint64_t* address, LaneMask lanes, std::uint64_t bytes,
                                const AddressRange& range, std::uintptr_t* pointer) {
  return Chosen().check_addresses(address, lanes, bytes, range, pointer);
}

PointerSpan SpanOfPointersBest(const std::uintptr_t* pointer, LaneMask lanes) {
  return Chosen().span_of_pointers(pointer, lanes);
}

int SupportedLevels() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return 3;
  return __builtin_cpu_supports("x86-64-v3") ? 2 : 1;
}

Handler ResolveAtLevel(int level, const ptx::Instruction& instruction, Decoded& decoded) {
  const Resolver resolver =
      OfFamily(kLevels[static_cast<std::size_t>(level)], ptx::FamilyOf(instruction.opcode));
  return resolver == nullptr ? nullptr : resolver(instruction, decoded);
}

Resolver LaneResolver(ptx::Family family) { return OfFamily(Chosen(), family); }

}  // namespace assay::emu

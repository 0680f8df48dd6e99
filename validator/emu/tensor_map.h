// Tensor maps (CUtensorMap): what cp.async.bulk.tensor knows of a tensor in global memory.
//
// The driver's 128 bytes are opaque, and so are these: they are written from the description in the
// launch (execution.h) and read back by the instruction, checked anew each time, since a kernel may
// have put them together itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "validator/emu/core.h"

namespace assay::emu {

inline constexpr std::size_t kTensorMapBytes = 128;
inline constexpr int kMaxTensorRank = 5;

/// Dimension 0 is the innermost; its stride is one element.
struct TensorMap {
  std::uint64_t address = 0;
  std::uint32_t rank = 0;
  std::uint32_t element_bytes = 0;
  ptx::Type type{};
  bool fill_nan = false;  ///< What lies outside reads as NaN instead of zero.
  int swizzle = 0;        ///< Address bits exchanged: 0 to 3 (none, 32, 64, 128 bytes).
  std::array<std::uint64_t, kMaxTensorRank> size{};
  std::array<std::uint64_t, kMaxTensorRank> stride{};  ///< Bytes.
  std::array<std::uint32_t, kMaxTensorRank> box{};

  std::uint64_t box_bytes() const {
    std::uint64_t bytes = element_bytes;
    for (std::uint32_t d = 0; d < rank; ++d) bytes *= box[d];
    return bytes;
  }
};

using TensorMapImage = std::array<std::byte, kTensorMapBytes>;
TensorMapImage Pack(const TensorMap& map);
/// False when the bytes are no tensor map.
bool Unpack(const TensorMapImage& image, TensorMap& map);

/// What tensormap.replace sets (PTX ISA 9.7.9.26).
enum class TensorMapField : std::uint8_t {
  kAddress,
  kRank,           ///< Less one.
  kBox,            ///< Of dimension `ordinal`, like the three that follow.
  kSize,           ///< Elements.
  kElementStride,  ///< Only 1 is modelled.
  kStride,         ///< Bytes, of dimension `ordinal` + 1.
  kType,           ///< By the manual's numbers, like the three that follow.
  kInterleave,     ///< Only 0 is modelled.
  kSwizzle,
  kFill,
};
enum class MapReplaced : std::uint8_t {
  kDone,
  kNoMap,  ///< The bytes are neither a tensor map nor all zero, which is how kernels begin one.
  kOutOfRange,  ///< No such value or dimension.
  kNotModelled,
};
MapReplaced ReplaceField(TensorMapImage& image, TensorMapField field, std::uint32_t ordinal,
                         std::uint64_t value);

/// From the launch's description; `address` is the buffer's, which has `bytes`. Returns why not, or
/// nothing: the rules are those of cuTensorMapEncodeTiled.
std::string MakeTensorMap(const TensorMapSpec& spec, std::uint64_t address, std::uint64_t bytes,
                          TensorMap& map);

}  // namespace assay::emu

#include "validator/emu/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace assay::emu {
namespace {

constexpr std::uint64_t kMagic = 0x70616d5f736e6574;

struct Image {
  std::uint64_t magic;
  std::uint64_t address;
  std::uint64_t stride[kMaxTensorRank];
  std::uint32_t size[kMaxTensorRank];
  std::uint16_t box[kMaxTensorRank];
  std::uint8_t rank;
  std::uint8_t element_bytes;
  std::uint8_t type;
  std::uint8_t fill_nan;
  std::uint8_t swizzle;
};
static_assert(sizeof(Image) <= kTensorMapBytes);

using enum ptx::Type;
constexpr std::pair<DType, ptx::Type> kTypes[] = {
    {DType::kF32, kF32},   {DType::kF64, kF64},   {DType::kF16, kF16}, {DType::kBF16, kBF16},
    {DType::kI32, kS32},   {DType::kU32, kU32},   {DType::kI64, kS64}, {DType::kU64, kU64},
    {DType::kI8, kU8},     {DType::kU8, kU8},     {DType::kI16, kU16}, {DType::kU16, kU16},
    {DType::kF8E4M3, kU8}, {DType::kF8E5M2, kU8},
};

/// By the numbers that tensormap.replace gives them; others flush subnormals, round or are narrower
/// than a byte.
constexpr std::pair<std::uint64_t, ptx::Type> kNumberedTypes[] = {
    {0, kU8},  {1, kU16}, {2, kU32}, {3, kS32}, {4, kU64},
    {5, kS64}, {6, kF16}, {7, kF32}, {9, kF64}, {10, kBF16},
};
constexpr std::uint64_t kTypeNumbers = 16;

}  // namespace

MapReplaced ReplaceField(TensorMapImage& bytes, TensorMapField field, std::uint32_t ordinal,
                         std::uint64_t value) {
  Image image;
  std::memcpy(&image, bytes.data(), sizeof(image));
  if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }))
    image.magic = kMagic;
  if (image.magic != kMagic) return MapReplaced::kNoMap;
  const auto set = [](auto& to, std::uint64_t what, bool fits) {
    if (!fits) return MapReplaced::kOutOfRange;
    to = static_cast<std::remove_reference_t<decltype(to)>>(what);
    return MapReplaced::kDone;
  };
  const auto only = [value](std::uint64_t modelled) {
    return value == modelled ? MapReplaced::kDone : MapReplaced::kNotModelled;
  };
  const bool dimension = ordinal < kMaxTensorRank;
  MapReplaced replaced = MapReplaced::kDone;
  switch (field) {
    case TensorMapField::kAddress:
      replaced = set(image.address, value, value % 16 == 0);
      break;
    case TensorMapField::kRank:
      replaced = set(image.rank, value + 1, value < kMaxTensorRank);
      break;
    case TensorMapField::kBox:
      replaced = dimension ? set(image.box[ordinal], value, value >= 1 && value <= 256)
                           : MapReplaced::kOutOfRange;
      break;
    case TensorMapField::kSize:
      replaced =
          dimension ? set(image.size[ordinal], value - 1, value >= 1) : MapReplaced::kOutOfRange;
      break;
    case TensorMapField::kStride:
      replaced = ordinal + 1 < kMaxTensorRank
                     ? set(image.stride[ordinal + 1], value, value % 16 == 0 && value >> 40 == 0)
                     : MapReplaced::kOutOfRange;
      break;
    case TensorMapField::kElementStride:
      replaced = dimension ? only(1) : MapReplaced::kOutOfRange;
      break;
    case TensorMapField::kType: {
      const auto* const row =
          std::ranges::find(kNumberedTypes, value, &std::pair<std::uint64_t, ptx::Type>::first);
      if (row == std::end(kNumberedTypes))
        return value < kTypeNumbers ? MapReplaced::kNotModelled : MapReplaced::kOutOfRange;
      image.type = static_cast<std::uint8_t>(row->second);
      image.element_bytes = static_cast<std::uint8_t>(ptx::BitsOf(row->second) / 8);
      break;
    }
    case TensorMapField::kInterleave:
      replaced = only(0);
      break;
    case TensorMapField::kSwizzle:
      replaced = value <= 3 ? set(image.swizzle, value, true) : MapReplaced::kNotModelled;
      break;
    case TensorMapField::kFill:
      replaced = set(image.fill_nan, value, value <= 1);
      break;
  }
  if (replaced == MapReplaced::kDone) std::memcpy(bytes.data(), &image, sizeof(image));
  return replaced;
}

TensorMapImage Pack(const TensorMap& map) {
  Image image{};
  image.magic = kMagic;
  image.address = map.address;
  for (std::size_t d = 0; d < kMaxTensorRank; ++d) {
    image.stride[d] = map.stride[d];
    image.size[d] = static_cast<std::uint32_t>(map.size[d] - 1);
    image.box[d] = static_cast<std::uint16_t>(map.box[d]);
  }
  image.rank = static_cast<std::uint8_t>(map.rank);
  image.element_bytes = static_cast<std::uint8_t>(map.element_bytes);
  image.type = static_cast<std::uint8_t>(map.type);
  image.fill_nan = map.fill_nan ? 1 : 0;
  image.swizzle = static_cast<std::uint8_t>(map.swizzle);
  TensorMapImage bytes{};
  std::memcpy(bytes.data(), &image, sizeof(image));
  return bytes;
}

bool Unpack(const TensorMapImage& bytes, TensorMap& map) {
  Image image;
  std::memcpy(&image, bytes.data(), sizeof(image));
  const auto* const type = std::ranges::find_if(
      kTypes, [&](const auto& row) { return static_cast<std::uint8_t>(row.second) == image.type; });
  if (image.magic != kMagic || image.rank < 1 || image.rank > kMaxTensorRank || image.swizzle > 3 ||
      type == std::end(kTypes) || image.element_bytes * 8 != ptx::BitsOf(type->second))
    return false;
  map.address = image.address;
  map.rank = image.rank;
  map.element_bytes = image.element_bytes;
  map.type = type->second;
  map.fill_nan = image.fill_nan != 0;
  map.swizzle = image.swizzle;
  for (std::size_t d = 0; d < kMaxTensorRank; ++d) {
    map.stride[d] = image.stride[d];
    map.size[d] = std::uint64_t{image.size[d]} + 1;
    map.box[d] = image.box[d];
    if (d < map.rank && (map.box[d] < 1 || map.box[d] > 256 || map.stride[d] >> 40 != 0))
      return false;
  }
  return true;
}

std::string MakeTensorMap(const TensorMapSpec& spec, std::uint64_t address, std::uint64_t bytes,
                          TensorMap& map) {
  const auto* const type =
      std::ranges::find_if(kTypes, [&](const auto& row) { return row.first == spec.dtype; });
  const std::size_t rank = spec.shape.size();
  if (type == std::end(kTypes))
    return fmt::format("a tensor map cannot have elements of {}", Name(spec.dtype));
  if (rank < 1 || rank > kMaxTensorRank || spec.box.size() != rank ||
      spec.strides.size() + 1 != rank)
    return "a tensor map has 1 to 5 dimensions, a box of as many, and one stride less";
  map = TensorMap{};
  map.address = address;
  map.rank = static_cast<std::uint32_t>(rank);
  map.element_bytes = static_cast<std::uint32_t>(SizeOf(spec.dtype));
  map.type = type->second;
  map.fill_nan = spec.fill_nan;
  map.swizzle = spec.swizzle;
  map.size.fill(1);
  map.box.fill(1);
  std::uint64_t last = 0;  // Of the last element, from the tensor's first.
  for (std::size_t d = 0; d < rank; ++d) {
    if (spec.shape[d] < 1 || spec.shape[d] > std::uint64_t{1} << 32)
      return fmt::format("dimension {} of a tensor map has {} elements, outside of [1, 2^32]", d,
                         spec.shape[d]);
    if (spec.box[d] < 1 || spec.box[d] > 256)
      return fmt::format("the box has {} elements in dimension {}, outside of [1, 256]",
                         spec.box[d], d);
    map.size[d] = spec.shape[d];
    map.box[d] = spec.box[d];
    map.stride[d] = d == 0 ? map.element_bytes : spec.strides[d - 1];
    if (d > 0 && (map.stride[d] % 16 != 0 || map.stride[d] >> 40 != 0))
      return fmt::format(
          "the stride of dimension {} is {} bytes: it must be a multiple of 16 "
          "below 2^40",
          d, map.stride[d]);
    last += (map.size[d] - 1) * map.stride[d];
  }
  if (last + map.element_bytes > bytes)
    return fmt::format("the tensor map reaches {} bytes far, but its buffer has {}",
                       last + map.element_bytes, bytes);
  if (address % 16 != 0) return "a tensor map's buffer must be aligned to 16 bytes";
  const std::uint64_t inner = std::uint64_t{map.box[0]} * map.element_bytes;
  if (inner % 16 != 0)
    return fmt::format("the box is {} bytes wide: it must be a multiple of 16", inner);
  if (map.swizzle != 0 && inner > std::uint64_t{16} << map.swizzle)
    return fmt::format("the box is {} bytes wide, wider than its swizzle of {}", inner,
                       std::uint64_t{16} << map.swizzle);
  return {};
}

}  // namespace assay::emu

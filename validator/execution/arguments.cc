#include "validator/execution/arguments.h"

namespace assay {

std::vector<std::uint8_t> FitScalar(const Argument& argument, std::uint64_t bytes) {
  std::vector<std::uint8_t> value = argument.bytes;
  if (value.size() == bytes) return value;
  if (IsFloat(argument.dtype)) return {};
  const bool negative =
      IsSignedInteger(argument.dtype) && !value.empty() && (value.back() & 0x80) != 0;
  const std::uint8_t fill = negative ? 0xff : 0;
  if (value.size() < bytes) {
    value.resize(bytes, fill);
    return value;
  }
  for (std::size_t i = bytes; i < value.size(); ++i) {
    if (value[i] != fill) return {};
  }
  // The sign must survive as well, where there is one: 200 does not fit a signed byte, but PTX
  // parameters carry no sign.
  if (negative && (value[bytes - 1] & 0x80) == 0) return {};
  value.resize(bytes);
  return value;
}

}  // namespace assay

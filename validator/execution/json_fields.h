// Field readers that the JSON forms of executions and reports share.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace assay::execution_detail {

/// An unsigned integer that must fit T.
template <class T>
Result<T> Narrow(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(const std::uint64_t value, reader.Required<std::uint64_t>(key));
  if (value > std::numeric_limits<T>::max()) {
    return Fail(ErrorKind::kMalformedInput, "is too large", reader.PlaceOf(key));
  }
  return static_cast<T>(value);
}

/// A word out of `names`; enumerators are numbered as the names are.
template <class E>
Result<E> EnumFromJson(ObjectReader& reader, std::string_view key,
                       std::span<const std::string_view> names) {
  ASSAY_TRY(const std::string word, reader.Required<std::string>(key));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) return static_cast<E>(i);
  }
  return Fail(ErrorKind::kMalformedInput, "unknown value '" + word + "'", reader.PlaceOf(key));
}

/// A list of T, each read by `read(json, place)`.
template <class T, class Read>
Result<std::vector<T>> List(ObjectReader& reader, std::string_view key, Read read) {
  ASSAY_TRY(const Json list, reader.Required<Json>(key));
  const std::string place = reader.PlaceOf(key);
  if (!list.is_array()) return Fail(ErrorKind::kMalformedInput, "must be a list", place);
  std::vector<T> result;
  result.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSAY_TRY(T item, read(list[i], place + "/" + std::to_string(i)));
    result.push_back(std::move(item));
  }
  return result;
}

/// A list of unsigned integers that must fit T.
template <class T>
Result<std::vector<T>> UnsignedList(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(const std::vector<std::int64_t> values,
            reader.Required<std::vector<std::int64_t>>(key));
  std::vector<T> result;
  result.reserve(values.size());
  for (const std::int64_t value : values) {
    if (value < 0 || static_cast<std::uint64_t>(value) > std::numeric_limits<T>::max())
      return Fail(ErrorKind::kMalformedInput, "is out of range", reader.PlaceOf(key));
    result.push_back(static_cast<T>(value));
  }
  return result;
}

inline Result<std::vector<std::uint8_t>> Bytes(ObjectReader& reader, std::string_view key) {
  return UnsignedList<std::uint8_t>(reader, key);
}

}  // namespace assay::execution_detail

// What reading verdicts and counterexamples has in common.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace assay::verdict {

/// The document says that it is of `schema`, the only version that is read.
inline Status CheckSchema(ObjectReader& reader, std::string_view schema) {
  ASSAY_TRY(const std::string given, reader.Required<std::string>("schema"));
  if (given == schema) return {};
  return Fail(ErrorKind::kMalformedInput,
              "schema '" + given + "' is not '" + std::string(schema) + "'",
              reader.PlaceOf("schema"), "use the version of assay that wrote the file");
}

/// A list of what `read` makes of each item; without the key, an empty one.
template <class T, class Read>
Result<std::vector<T>> ListFromJson(ObjectReader& reader, std::string_view key, Read read) {
  ASSAY_TRY(const Json list, reader.Optional<Json>(key, Json::array()));
  const std::string place = reader.PlaceOf(key);
  if (!list.is_array()) return Fail(ErrorKind::kMalformedInput, "must be an array", place);
  std::vector<T> items;
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSAY_TRY(T item, read(list[i], place + "/" + std::to_string(i)));
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace assay::verdict

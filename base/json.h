// JSON at the edges: strict reading with located errors, and one way to print.
//
// Every format of Assay is read through ObjectReader, which knows where in the document it is and refuses keys that nobody asked
// for: a misspelled key is an error with a suggestion, never a silent default.
//
//   ASSAY_TRY(Json document, ParseJson(text, "op.json"));
//   ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, "op.json"));
//   ASSAY_TRY(std::string name, reader.Required<std::string>("name"));
//   ASSAY_TRY(std::int64_t limit, reader.Optional<std::int64_t>("limit", 10));
//   ASSAY_TRY_VOID(reader.Finish());     // unknown key 'nmae' -> "op.json: /nmae: unknown key, did you mean 'name'?"
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay {

/// Keys keep the order in which they were written, so that documents read as their author meant them.
using Json = nlohmann::ordered_json;

/// Parses `text`; errors name `file`, line and column. Depth is limited to 200, duplicate keys are refused.
Result<Json> ParseJson(std::string_view text, std::string_view file);
Result<Json> ReadJsonFile(const std::string& path);
/// Two-space indentation and a final newline; invalid UTF-8 is replaced.
std::string PrettyJson(const Json& document);
/// One line; invalid UTF-8 is replaced.
std::string CompactJson(const Json& document);

/// The candidate nearest to `word` in edit distance, or empty when none is near.
std::string Nearest(std::string_view word, std::span<const std::string> candidates);

namespace json_detail {
/// Converts, or fails with "must be a string" and the like. Instantiated for bool, int64_t, uint64_t, double, std::string, Json,
/// std::vector<std::string>, std::vector<std::int64_t>.
template <class T>
Result<T> Convert(const Json& value, const std::string& place);
}  // namespace json_detail

class ObjectReader {
 public:
  /// `place` is where the object stands, e.g. "op.json" or "op.json: /inputs/x".
  static Result<ObjectReader> Of(const Json& object, std::string place);

  bool Has(std::string_view key) const;
  /// The place of a key, for error messages of the caller.
  std::string PlaceOf(std::string_view key) const;

  template <class T>
  Result<T> Required(std::string_view key) {
    ASSAY_TRY(const Json* value, Find(key, true));
    return json_detail::Convert<T>(*value, PlaceOf(key));
  }
  template <class T>
  Result<T> Optional(std::string_view key, T fallback) {
    ASSAY_TRY(const Json* value, Find(key, false));
    if (value == nullptr) return fallback;
    return json_detail::Convert<T>(*value, PlaceOf(key));
  }
  /// Marks a key as known without reading it.
  void Ignore(std::string_view key) { known_.emplace_back(key); }
  /// Fails on the first key that was never asked for.
  Status Finish() const;

 private:
  ObjectReader(const Json& object, std::string place)
      : object_(&object), place_(std::move(place)) {}
  Result<const Json*> Find(std::string_view key, bool required);

  const Json* object_;
  std::string place_;
  std::vector<std::string> known_;
};

}  // namespace assay

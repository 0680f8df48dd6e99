#include "base/fields.h"

#include <cmath>

namespace assay {

Json AnyNumber::Write(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Result<double> AnyNumber::Read(const Json& json, const std::string& place) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::nan("");
  if (json == "inf") return HUGE_VAL;
  if (json == "-inf") return -HUGE_VAL;
  return Fail(ErrorKind::kMalformedInput, "must be a number, \"nan\", \"inf\" or \"-inf\"", place);
}

namespace json_detail {

Status CheckSchema(const JsonSchema& schema, ObjectReader& reader) {
  ASSAY_TRY(const std::string given, reader.Required<std::string>("schema"));
  if (given == schema.name) return {};
  return Fail(ErrorKind::kMalformedInput, "unknown schema '" + given + "'",
              reader.PlaceOf("schema"), "this version reads " + std::string(schema.name));
}

std::optional<std::size_t> FindWord(const Json& json, std::span<const std::string_view> words) {
  const auto* const word = json.get_ptr<const std::string*>();
  if (word == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == *word) return i;
  }
  return std::nullopt;
}

std::unexpected<Error> UnknownWord(const Json& json, std::span<const std::string_view> words,
                                   const std::string& place, std::string_view otherwise) {
  const std::vector<std::string> known(words.begin(), words.end());
  const std::string word = json.is_string() ? json.get<std::string>() : CompactJson(json);
  const std::string nearest = Nearest(word, known);
  std::string cure(otherwise);
  if (cure.empty()) {
    for (const std::string& each : known) cure += (cure.empty() ? "one of " : ", ") + each;
  }
  return Fail(ErrorKind::kMalformedInput, "unknown value '" + word + "'", place,
              nearest.empty() || !otherwise.empty() ? cure : "did you mean '" + nearest + "'?");
}

Result<std::int64_t> ReadInteger(const Json& json, std::int64_t least, std::int64_t most,
                                 const std::string& place) {
  ASSAY_TRY(const std::int64_t value, Convert<std::int64_t>(json, place));
  if (value >= least && value <= most) return value;
  return Fail(ErrorKind::kMalformedInput,
              "must be between " + std::to_string(least) + " and " + std::to_string(most), place);
}

Status MustBeList(const Json& json, const std::string& place) {
  if (json.is_array()) return {};
  return Fail(ErrorKind::kMalformedInput, "must be an array", place);
}

Status MustBeObject(const Json& json, const std::string& place) {
  if (json.is_object()) return {};
  return Fail(ErrorKind::kMalformedInput, "must be an object", place);
}

}  // namespace json_detail
}  // namespace assay

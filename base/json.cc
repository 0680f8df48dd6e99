#include "base/json.h"

#include <algorithm>
#include <iterator>

#include "base/file.h"

namespace assay {
namespace {

constexpr std::size_t kMaxDepth = 200;

std::string LineAndColumn(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return std::to_string(line) + ":" + std::to_string(column);
}

// What nlohmann's parser lets pass: duplicate keys. A pass of its own, since a parser that asks a callback looks at
// all elements of an array for each object in it.
class DuplicateKeys final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    starts_.push_back(keys_.size());
    return true;
  }
  bool key(string_t& key) override {
    keys_.push_back(std::move(key));
    return true;
  }
  bool end_object() override {
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(starts_.back());
    std::sort(begin, keys_.end());
    const auto twice = std::adjacent_find(begin, keys_.end());
    if (twice != keys_.end()) first_ = *twice;
    keys_.erase(begin, keys_.end());
    starts_.pop_back();
    return first_.empty();
  }
  // The second pass says what is wrong.
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
  /// Of the first object that ends with a key twice; empty where there is none.
  const std::string& first() const { return first_; }

 private:
  std::vector<std::string> keys_;    // Of all objects that are open,
  std::vector<std::size_t> starts_;  // and where those of each begin.
  std::string first_;
};

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::unexpected<Error> MustBe(const char* what, const Json& value, const std::string& place) {
  return Fail(ErrorKind::kMalformedInput,
              std::string("must be ") + what + ", not " + value.type_name(), place);
}

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view file) {
  // Destroying and comparing a document recurses, so bottomless nesting is refused before anything is built.
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) {
        return Fail(ErrorKind::kMalformedInput, "nested deeper than 200 levels",
                    std::string(file) + ":" + LineAndColumn(text, i));
      }
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  try {
    DuplicateKeys duplicates;
    Json::sax_parse(text, &duplicates);
    if (!duplicates.first().empty()) {
      return Fail(ErrorKind::kMalformedInput, "the key '" + duplicates.first() + "' appears twice",
                  std::string(file), "keep one of them");
    }
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: MESSAGE"
    if (const auto colon = what.find(": "); colon != std::string::npos)
      what = what.substr(colon + 2);
    return Fail(ErrorKind::kMalformedInput, "not valid JSON: " + what,
                std::string(file) + ":" + LineAndColumn(text, error.byte > 0 ? error.byte - 1 : 0));
  } catch (const Json::exception& error) {
    return Fail(ErrorKind::kMalformedInput, std::string("not valid JSON: ") + error.what(),
                std::string(file));
  }
}

Result<Json> ReadJsonFile(const std::string& path) {
  ASSAY_TRY(const std::string text, ReadFile(path));
  return ParseJson(text, path);
}

std::string PrettyJson(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string CompactJson(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

namespace json_detail {

template <>
Result<bool> Convert<bool>(const Json& value, const std::string& place) {
  if (!value.is_boolean()) return MustBe("true or false", value, place);
  return value.get<bool>();
}

template <>
Result<std::int64_t> Convert<std::int64_t>(const Json& value, const std::string& place) {
  if (!value.is_number_integer()) return MustBe("an integer", value, place);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
    return Fail(ErrorKind::kMalformedInput, "the integer leaves 63 bits", place);
  }
  return value.get<std::int64_t>();
}

template <>
Result<std::uint64_t> Convert<std::uint64_t>(const Json& value, const std::string& place) {
  if (!value.is_number_unsigned()) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
      return MustBe("an integer of at least 0", value, place);
    }
  }
  return value.get<std::uint64_t>();
}

template <>
Result<double> Convert<double>(const Json& value, const std::string& place) {
  if (!value.is_number()) return MustBe("a number", value, place);
  return value.get<double>();
}

template <>
Result<std::string> Convert<std::string>(const Json& value, const std::string& place) {
  if (!value.is_string()) return MustBe("a string", value, place);
  return value.get<std::string>();
}

template <>
Result<Json> Convert<Json>(const Json& value, const std::string&) {
  return value;
}

template <class T>
Result<std::vector<T>> ConvertArray(const Json& value, const std::string& place) {
  if (!value.is_array()) return MustBe("an array", value, place);
  std::vector<T> items;
  for (std::size_t i = 0; i < value.size(); ++i) {
    Result<T> item = Convert<T>(value[i], place);
    // Where it stands is said of what is wrong alone: lists are long.
    if (!item)
      return std::unexpected(Convert<T>(value[i], place + "/" + std::to_string(i)).error());
    items.push_back(*std::move(item));
  }
  return items;
}

template <>
Result<std::vector<std::string>> Convert<std::vector<std::string>>(const Json& value,
                                                                   const std::string& place) {
  return ConvertArray<std::string>(value, place);
}

template <>
Result<std::vector<std::int64_t>> Convert<std::vector<std::int64_t>>(const Json& value,
                                                                     const std::string& place) {
  return ConvertArray<std::int64_t>(value, place);
}

}  // namespace json_detail

Result<ObjectReader> ObjectReader::Of(const Json& object, std::string place) {
  if (!object.is_object()) return MustBe("an object", object, place);
  return ObjectReader(object, std::move(place));
}

bool ObjectReader::Has(std::string_view key) const { return object_->contains(key); }

std::string ObjectReader::PlaceOf(std::string_view key) const {
  const bool root = place_.find(": /") == std::string::npos;
  return place_ + (root ? ": /" : "/") + std::string(key);
}

Result<const Json*> ObjectReader::Find(std::string_view key, bool required) {
  known_.emplace_back(key);
  const auto found = object_->find(key);
  if (found != object_->end()) return &*found;
  if (!required) return nullptr;
  return Fail(ErrorKind::kMalformedInput, "the key '" + std::string(key) + "' is missing", place_,
              "add it; it is required");
}

Status ObjectReader::Finish() const {
  for (const auto& [key, value] : object_->items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    const std::string nearest = Nearest(key, known_);
    return Fail(ErrorKind::kMalformedInput, "unknown key '" + key + "'", PlaceOf(key),
                nearest.empty() ? "remove it" : "did you mean '" + nearest + "'?");
  }
  return {};
}

}  // namespace assay

// Objects of JSON by tables: one row a member says its key and whether it must be there, and both directions follow.
//
//   struct GateRow { std::string gate, status; };
//   static constexpr auto JsonFields(const GateRow*) {
//     return std::tuple(Required("gate", &GateRow::gate), Required("status", &GateRow::status));
//   }
//   Json json = WriteJson(row);
//   ASSAY_TRY(GateRow read, ReadJson<GateRow>(json, "summary.json: /gates/0"));
//
// JsonFields is found by the type's namespace, so it stands in it, not in an unnamed one. Keys that no row names are refused, with the
// nearest known one. A type whose members must agree with each other has a `Status JsonCheck(const T&, const ObjectReader&)` beside its
// table. An enum has `JsonWords(const E*)`, its values' names in order. Other types specialise JsonForm.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace assay {

/// How values of T are written and read: `static Json Write(const T&)`, `static Result<T> Read(const Json&, const std::string& place)`.
template <class T>
struct JsonForm;

/// A number that may be NaN or infinite, for which JSON has no form: "nan", "inf", "-inf".
struct AnyNumber {
  static Json Write(double value);
  static Result<double> Read(const Json& json, const std::string& place);
};

template <class T>
Json WriteJson(const T& value) {
  return JsonForm<T>::Write(value);
}
template <class T>
Result<T> ReadJson(const Json& json, const std::string& place) {
  return JsonForm<T>::Read(json, place);
}

/// For types that have a ToJson and a reader of their own: `template <> struct JsonForm<Ledger> : JsonThrough<&LedgerFromJson> {};`
template <auto kRead>
struct JsonThrough {
  static Json Write(const auto& value) { return ToJson(value); }
  static auto Read(const Json& json, const std::string& place) { return kRead(json, place); }
};

enum class Presence : std::uint8_t {
  kRequired,  ///< Always written; must be there.
  kOptional,  ///< Always written; where it is missing the member keeps its default.
  kSparse,    ///< Written where it is not the default; may be missing.
};

template <Presence kHow, class Form, class C, class M>
struct JsonMember {
  std::string_view key;
  M C::* member;
};
struct JsonSchema {
  std::string_view name;
};
template <class C, class... Ts>
struct JsonTagged {
  std::string_view key;
  std::variant<Ts...> C::* member;
  std::string_view otherwise;
};
template <class C, class M>
struct JsonInlined {
  M C::* member;
};
template <class C, class M, class Row>
struct JsonWithin {
  M C::* member;
  Row row;
};
template <Presence kHow, class Rows>
struct JsonNested {
  std::string_view key;
  Rows rows;
};
struct JsonIgnored {
  std::string_view key;
};

/// Rows. `Form` says how the member is written, where that is not what its type says.
template <class Form = void, class C, class M>
constexpr JsonMember<Presence::kRequired, Form, C, M> Required(std::string_view key,
                                                               M C::* member) {
  return {key, member};
}
template <class Form = void, class C, class M>
constexpr JsonMember<Presence::kOptional, Form, C, M> Optional(std::string_view key,
                                                               M C::* member) {
  return {key, member};
}
template <class Form = void, class C, class M>
constexpr JsonMember<Presence::kSparse, Form, C, M> Sparse(std::string_view key, M C::* member) {
  return {key, member};
}
/// A variant among our rows: which of its types it holds stands under `key`, by that type's `std::string_view JsonTag(const T*)`, and
/// the rows of that type's table stand beside it. `otherwise` is the cure where it is none of them.
template <class C, class... Ts>
constexpr JsonTagged<C, Ts...> Tagged(std::string_view key, std::variant<Ts...> C::* member,
                                      std::string_view otherwise) {
  return {key, member, otherwise};
}
/// The rows of a member's own table, among ours.
template <class C, class M>
constexpr JsonInlined<C, M> Inlined(M C::* member) {
  return {member};
}
/// A row of a member's own table, among ours. Of an optional member that is not there the default is written, and nothing kept of
/// what is read: a row before this one says whether it is there.
template <class C, class M, class Row>
constexpr JsonWithin<C, M, Row> Within(M C::* member, Row row) {
  return {member, row};
}
/// Rows of the value itself that stand in an object of their own, under `key`.
template <Presence kHow = Presence::kRequired, class... Rows>
constexpr JsonNested<kHow, std::tuple<Rows...>> Nested(std::string_view key, Rows... rows) {
  return {key, std::tuple(rows...)};
}
/// A key that may be there and is not read.
constexpr JsonIgnored Ignored(std::string_view key) { return {key}; }
/// The key "schema" with this text, and no other.
constexpr JsonSchema Schema(std::string_view name) { return {name}; }

namespace json_detail {

/// Lists, texts and what may be missing are empty by default, whatever else of them can be compared.
template <class M>
bool IsDefault(const M& value, const M& otherwise) {
  if constexpr (requires { value.has_value(); }) {
    return !value.has_value();
  } else if constexpr (requires(M other) { other.clear(); }) {
    return value.empty();
  } else {
    return value == otherwise;
  }
}

template <class Form, class M>
using FormOf = std::conditional_t<std::is_void_v<Form>, JsonForm<M>, Form>;

template <class T, Presence kHow, class Form, class C, class M>
void WriteMember(const JsonMember<kHow, Form, C, M>& row, const T& value, Json& json) {
  if constexpr (kHow == Presence::kSparse) {
    if (IsDefault(value.*row.member, T{}.*row.member)) return;
  }
  json[std::string(row.key)] = FormOf<Form, M>::Write(value.*row.member);
}
template <class T, class C, class M>
void WriteMember(const JsonInlined<C, M>& row, const T& value, Json& json);
template <class T, class C, class... Ts>
void WriteMember(const JsonTagged<C, Ts...>& row, const T& value, Json& json);
template <class T, class C, class M, class Row>
void WriteMember(const JsonWithin<C, M, Row>& within, const T& value, Json& json);
template <class T, Presence kHow, class Rows>
void WriteMember(const JsonNested<kHow, Rows>& nested, const T& value, Json& json);
template <class T>
void WriteMember(const JsonSchema& schema, const T&, Json& json) {
  json["schema"] = schema.name;
}
template <class T>
void WriteMember(const JsonIgnored&, const T&, Json&) {}

template <class T, Presence kHow, class Form, class C, class M>
Status ReadMember(const JsonMember<kHow, Form, C, M>& row, ObjectReader& reader, T& value) {
  if (kHow != Presence::kRequired && !reader.Has(row.key)) {
    reader.Ignore(row.key);
    return {};
  }
  ASSAY_TRY(const Json json, reader.Required<Json>(row.key));
  ASSAY_TRY(value.*row.member, FormOf<Form, M>::Read(json, reader.PlaceOf(row.key)));
  return {};
}
template <class T, class C, class M>
Status ReadMember(const JsonInlined<C, M>& row, ObjectReader& reader, T& value);
template <class T, class C, class... Ts>
Status ReadMember(const JsonTagged<C, Ts...>& row, ObjectReader& reader, T& value);
template <class T, class C, class M, class Row>
Status ReadMember(const JsonWithin<C, M, Row>& within, ObjectReader& reader, T& value);
template <class T, Presence kHow, class Rows>
Status ReadMember(const JsonNested<kHow, Rows>& nested, ObjectReader& reader, T& value);
Status CheckSchema(const JsonSchema& schema, ObjectReader& reader);
template <class T>
Status ReadMember(const JsonSchema& schema, ObjectReader& reader, T&) {
  return CheckSchema(schema, reader);
}
template <class T>
Status ReadMember(const JsonIgnored& row, ObjectReader& reader, T&) {
  reader.Ignore(row.key);
  return {};
}

/// Which of `words` it is.
std::optional<std::size_t> FindWord(const Json& json, std::span<const std::string_view> words);
std::unexpected<Error> UnknownWord(const Json& json, std::span<const std::string_view> words,
                                   const std::string& place, std::string_view otherwise = {});
Result<std::int64_t> ReadInteger(const Json& json, std::int64_t least, std::int64_t most,
                                 const std::string& place);
Status MustBeList(const Json& json, const std::string& place);
Status MustBeObject(const Json& json, const std::string& place);

}  // namespace json_detail

template <class T>
concept HasJsonFields = requires { JsonFields(static_cast<const T*>(nullptr)); };
template <class T>
concept HasJsonWords = requires { JsonWords(static_cast<const T*>(nullptr)); };

/// By rows that are given, where a type stands in more than one form: std::tuple(Required(...), ...).
template <class Rows, class T>
Status ReadRows(const Rows& rows, ObjectReader& reader, T& value) {
  Status status;
  std::apply(
      [&](const auto&... row) {
        // The first that fails is what is told.
        static_cast<void>(
            (true && ... && (status = json_detail::ReadMember(row, reader, value)).has_value()));
      },
      rows);
  return status;
}
template <class Rows, class T>
void WriteRows(const Rows& rows, const T& value, Json& json) {
  std::apply([&](const auto&... row) { (json_detail::WriteMember(row, value, json), ...); }, rows);
}

/// The members of `value` that `reader` holds; for objects that hold more. Finish is the caller's.
template <HasJsonFields T>
Status ReadMembers(ObjectReader& reader, T& value) {
  ASSAY_TRY_VOID(ReadRows(JsonFields(static_cast<const T*>(nullptr)), reader, value));
  if constexpr (requires { JsonCheck(value, reader); }) ASSAY_TRY_VOID(JsonCheck(value, reader));
  return {};
}
template <HasJsonFields T>
void WriteMembers(const T& value, Json& json) {
  WriteRows(JsonFields(static_cast<const T*>(nullptr)), value, json);
}

template <class T, class C, class M>
void json_detail::WriteMember(const JsonInlined<C, M>& row, const T& value, Json& json) {
  WriteMembers(value.*row.member, json);
}
template <class T, class C, class M>
Status json_detail::ReadMember(const JsonInlined<C, M>& row, ObjectReader& reader, T& value) {
  return ReadMembers(reader, value.*row.member);
}

template <class T, class C, class M, class Row>
void json_detail::WriteMember(const JsonWithin<C, M, Row>& within, const T& value, Json& json) {
  const M& inner = value.*within.member;
  if constexpr (requires { *inner; }) {
    WriteMember(within.row, inner ? *inner : typename M::value_type{}, json);
  } else {
    WriteMember(within.row, inner, json);
  }
}
template <class T, class C, class M, class Row>
Status json_detail::ReadMember(const JsonWithin<C, M, Row>& within, ObjectReader& reader,
                               T& value) {
  M& inner = value.*within.member;
  if constexpr (requires { *inner; }) {
    typename M::value_type nowhere{};
    return ReadMember(within.row, reader, inner ? *inner : nowhere);
  } else {
    return ReadMember(within.row, reader, inner);
  }
}

template <class T, Presence kHow, class Rows>
void json_detail::WriteMember(const JsonNested<kHow, Rows>& nested, const T& value, Json& json) {
  Json object = Json::object();
  WriteRows(nested.rows, value, object);
  json[std::string(nested.key)] = std::move(object);
}
template <class T, Presence kHow, class Rows>
Status json_detail::ReadMember(const JsonNested<kHow, Rows>& nested, ObjectReader& reader,
                               T& value) {
  if (kHow != Presence::kRequired && !reader.Has(nested.key)) {
    reader.Ignore(nested.key);
    return {};
  }
  ASSAY_TRY(const Json object, reader.Required<Json>(nested.key));
  ASSAY_TRY(ObjectReader inner, ObjectReader::Of(object, reader.PlaceOf(nested.key)));
  ASSAY_TRY_VOID(ReadRows(nested.rows, inner, value));
  return inner.Finish();
}

template <class T, class C, class... Ts>
void json_detail::WriteMember(const JsonTagged<C, Ts...>& row, const T& value, Json& json) {
  const auto write = [&]<class Each>(const Each& each) {
    json[std::string(row.key)] = JsonTag(static_cast<const Each*>(nullptr));
    WriteMembers(each, json);
  };
  std::visit(write, value.*row.member);
}
template <class T, class C, class... Ts>
Status json_detail::ReadMember(const JsonTagged<C, Ts...>& row, ObjectReader& reader, T& value) {
  constexpr std::array<std::string_view, sizeof...(Ts)> kTags = {
      JsonTag(static_cast<const Ts*>(nullptr))...};
  ASSAY_TRY(const Json tag, reader.Required<Json>(row.key));
  Status status = UnknownWord(tag, kTags, reader.PlaceOf(row.key), row.otherwise);
  const auto read = [&]<class Each>(const Each*) {
    if (tag != JsonTag(static_cast<const Each*>(nullptr))) return;
    Each each;
    status = ReadMembers(reader, each);
    if (status) value.*row.member = std::move(each);
  };
  (read(static_cast<const Ts*>(nullptr)), ...);
  return status;
}

template <HasJsonFields T>
struct JsonForm<T> {
  static Json Write(const T& value) {
    Json json = Json::object();
    WriteMembers(value, json);
    return json;
  }
  static Result<T> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
    T value;
    ASSAY_TRY_VOID(ReadMembers(reader, value));
    ASSAY_TRY_VOID(reader.Finish());
    return value;
  }
};

template <HasJsonWords E>
struct JsonForm<E> {
  static Json Write(E value) {
    return JsonWords(static_cast<const E*>(nullptr))[static_cast<std::size_t>(value)];
  }
  static Result<E> Read(const Json& json, const std::string& place) {
    const std::span<const std::string_view> words = JsonWords(static_cast<const E*>(nullptr));
    if (const auto found = json_detail::FindWord(json, words)) return static_cast<E>(*found);
    return json_detail::UnknownWord(json, words, place);
  }
};

/// An enum of another namespace: its values' names stand in `kNames`, in order.
template <class E, const auto& kNames>
struct WordsOf {
  static Json Write(E value) { return kNames[static_cast<std::size_t>(value)]; }
  static Result<E> Read(const Json& json, const std::string& place) {
    if (const auto found = json_detail::FindWord(json, kNames)) return static_cast<E>(*found);
    return json_detail::UnknownWord(json, kNames, place);
  }
};

/// An enum of which only Name() is known here: the values it may have.
template <auto... kValues>
struct Words {
  using E = std::common_type_t<decltype(kValues)...>;
  static Json Write(E value) { return Name(value); }
  static Result<E> Read(const Json& json, const std::string& place) {
    const std::array<std::string_view, sizeof...(kValues)> words = {Name(kValues)...};
    constexpr std::array<E, sizeof...(kValues)> kAll = {kValues...};
    if (const auto found = json_detail::FindWord(json, words)) return kAll[*found];
    return json_detail::UnknownWord(json, words, place);
  }
};

template <class T>
  requires std::same_as<T, bool> || std::same_as<T, std::string> || std::same_as<T, double> ||
           std::same_as<T, std::uint64_t> || std::same_as<T, std::int64_t> || std::same_as<T, Json>
struct JsonForm<T> {
  static Json Write(const T& value) { return value; }
  static Result<T> Read(const Json& json, const std::string& place) {
    return json_detail::Convert<T>(json, place);
  }
};

/// An integer of these, ends included.
template <std::integral T, std::int64_t kLeast, std::int64_t kMost>
struct Between {
  static Json Write(T value) { return value; }
  static Result<T> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const std::int64_t value, json_detail::ReadInteger(json, kLeast, kMost, place));
    return static_cast<T>(value);
  }
};

/// Integers of fewer bits; those that do not fit are refused.
template <class T>
  requires(std::integral<T> && sizeof(T) < 8 && !std::same_as<T, bool>)
struct JsonForm<T> {
  static Json Write(T value) { return value; }
  static Result<T> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const std::int64_t value,
              json_detail::ReadInteger(json, std::numeric_limits<T>::min(),
                                       std::numeric_limits<T>::max(), place));
    return static_cast<T>(value);
  }
};

/// A list whose items have this form.
template <class T, class Form>
struct ListOf {
  static Json Write(const std::vector<T>& values) {
    Json json = Json::array();
    for (const T& value : values) json.push_back(Form::Write(value));
    return json;
  }
  static Result<std::vector<T>> Read(const Json& json, const std::string& place) {
    ASSAY_TRY_VOID(json_detail::MustBeList(json, place));
    std::vector<T> values;
    for (std::size_t i = 0; i < json.size(); ++i) {
      ASSAY_TRY(T value, Form::Read(json[i], place + "/" + std::to_string(i)));
      values.push_back(std::move(value));
    }
    return values;
  }
};
template <class T>
struct JsonForm<std::vector<T>> : ListOf<T, JsonForm<T>> {};

template <class T, std::size_t kSize>
struct JsonForm<std::array<T, kSize>> {
  static Json Write(const std::array<T, kSize>& values) {
    Json json = Json::array();
    for (const T& value : values) json.push_back(WriteJson(value));
    return json;
  }
  static Result<std::array<T, kSize>> Read(const Json& json, const std::string& place) {
    ASSAY_TRY_VOID(json_detail::MustBeList(json, place));
    if (json.size() != kSize)
      return Fail(ErrorKind::kMalformedInput, "must have " + std::to_string(kSize) + " elements",
                  place);
    std::array<T, kSize> values{};
    for (std::size_t i = 0; i < kSize; ++i) {
      ASSAY_TRY(values[i], ReadJson<T>(json[i], place + "/" + std::to_string(i)));
    }
    return values;
  }
};

template <>
struct JsonForm<std::filesystem::path> {
  static Json Write(const std::filesystem::path& path) { return path.string(); }
  static Result<std::filesystem::path> Read(const Json& json, const std::string& place) {
    return ReadJson<std::string>(json, place);
  }
};

/// Null where there is none.
template <class T>
struct JsonForm<std::optional<T>> {
  static Json Write(const std::optional<T>& value) { return value ? WriteJson(*value) : Json(); }
  static Result<std::optional<T>> Read(const Json& json, const std::string& place) {
    if (json.is_null()) return std::nullopt;
    return ReadJson<T>(json, place);
  }
};

template <class T, class Less>
struct JsonForm<std::map<std::string, T, Less>> {
  using Map = std::map<std::string, T, Less>;
  static Json Write(const Map& values) {
    Json json = Json::object();
    for (const auto& [key, value] : values) json[key] = WriteJson(value);
    return json;
  }
  static Result<Map> Read(const Json& json, const std::string& place) {
    ASSAY_TRY_VOID(json_detail::MustBeObject(json, place));
    Map values;
    for (const auto& [key, item] : json.items()) {
      ASSAY_TRY(values[key], ReadJson<T>(item, place + "/" + key));
    }
    return values;
  }
};

}  // namespace assay

#include "validator/findings/finding.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace assay {
namespace {

struct KindRow {
  FindingKind kind;
  std::string_view name;
  std::string_view family;
  std::string_view meaning;
};

constexpr KindRow kKinds[] = {
#define X(name, json, family, meaning) {FindingKind::k##name, json, family, meaning},
    ASSAY_FINDING_KINDS(X)
#undef X
};

const KindRow& RowOf(FindingKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  ASSAY_CHECK(index < std::size(kKinds));
  return kKinds[index];
}

// JSON has no NaN or infinity, and a wrong value is very often one of them.
Json NumberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Result<double> NumberFromJson(const Json& json, const std::string& place) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::nan("");
  if (json == "inf") return HUGE_VAL;
  if (json == "-inf") return -HUGE_VAL;
  return Fail(ErrorKind::kMalformedInput, "must be a number, \"nan\", \"inf\" or \"-inf\"", place);
}

Json Dim3ToJson(const Dim3& dim) { return Json::array({dim[0], dim[1], dim[2]}); }

Result<Dim3> Dim3FromJson(const Json& json, const std::string& place) {
  if (!json.is_array() || json.size() != 3)
    return Fail(ErrorKind::kMalformedInput, "must be three integers", place);
  Dim3 dim{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!json[i].is_number_unsigned() || json[i].get<std::uint64_t>() > 0xffffffffu) {
      return Fail(ErrorKind::kMalformedInput, "must be three integers below 2^32", place);
    }
    dim[i] = json[i].get<std::uint32_t>();
  }
  return dim;
}

template <class T>
Result<T> Unsigned(ObjectReader& reader, std::string_view key, T fallback) {
  ASSAY_TRY(const std::uint64_t value, reader.Optional<std::uint64_t>(key, fallback));
  if (value > std::uint64_t{static_cast<T>(~T{0})}) {
    return Fail(ErrorKind::kMalformedInput, "is too large", reader.PlaceOf(key));
  }
  return static_cast<T>(value);
}

Json SiteToJson(const SourceSite& site) {
  Json json = Json::object();
  if (!site.file.empty()) json["file"] = site.file;
  if (site.line != 0) json["line"] = site.line;
  if (!site.called_at.empty()) json["called_at"] = site.called_at;
  if (site.column != 0) json["column"] = site.column;
  if (site.ptx_line != 0) json["ptx_line"] = site.ptx_line;
  if (!site.instruction.empty()) json["instruction"] = site.instruction;
  if (!site.excerpt.empty()) json["excerpt"] = site.excerpt;
  return json;
}

Result<Access> AccessFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Access access;
  ASSAY_TRY(access.what, reader.Optional<std::string>("what", ""));
  if (reader.Has("site")) {
    ASSAY_TRY(const Json site, reader.Required<Json>("site"));
    ASSAY_TRY(access.site, SourceSiteFromJson(site, reader.PlaceOf("site")));
  }
  ASSAY_TRY(const Json block, reader.Required<Json>("block"));
  ASSAY_TRY(access.thread.block, Dim3FromJson(block, reader.PlaceOf("block")));
  ASSAY_TRY(const Json thread, reader.Required<Json>("thread"));
  ASSAY_TRY(access.thread.thread, Dim3FromJson(thread, reader.PlaceOf("thread")));
  ASSAY_TRY(access.threads, reader.Optional<std::uint64_t>("threads", 1));
  ASSAY_TRY(access.value, reader.Optional<std::string>("value", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return access;
}

Result<MemoryPlace> MemoryFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  MemoryPlace memory;
  ASSAY_TRY(memory.space, reader.Required<std::string>("space"));
  ASSAY_TRY(memory.buffer, reader.Optional<std::string>("buffer", ""));
  ASSAY_TRY(memory.index, reader.Optional<std::int64_t>("index", 0));
  ASSAY_TRY(memory.elements, reader.Optional<std::uint64_t>("elements", 0));
  ASSAY_TRY(memory.address, reader.Optional<std::uint64_t>("address", 0));
  ASSAY_TRY(memory.bytes, Unsigned<std::uint32_t>(reader, "bytes", 0));
  ASSAY_TRY_VOID(reader.Finish());
  return memory;
}

Result<ElementPlace> ElementFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ElementPlace element;
  ASSAY_TRY(element.output, reader.Required<std::string>("output"));
  ASSAY_TRY(element.index, reader.Required<std::vector<std::int64_t>>("index"));
  for (const auto& [key, target] :
       {std::pair{"expected", &element.expected}, std::pair{"got", &element.got},
        std::pair{"allowance", &element.allowance}}) {
    ASSAY_TRY(const Json number, reader.Required<Json>(key));
    ASSAY_TRY(*target, NumberFromJson(number, reader.PlaceOf(key)));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return element;
}

Result<Statistic> StatisticFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Statistic statistic;
  ASSAY_TRY(statistic.name, reader.Required<std::string>("name"));
  ASSAY_TRY(const Json value, reader.Required<Json>("value"));
  ASSAY_TRY(statistic.value, NumberFromJson(value, reader.PlaceOf("value")));
  ASSAY_TRY(const Json limit, reader.Optional<Json>("limit", Json(0.0)));
  ASSAY_TRY(statistic.limit, NumberFromJson(limit, reader.PlaceOf("limit")));
  ASSAY_TRY(statistic.note, reader.Optional<std::string>("note", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return statistic;
}

Result<ErrorShare> ShareFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ErrorShare share;
  ASSAY_TRY(const Json site, reader.Required<Json>("site"));
  ASSAY_TRY(share.site, SourceSiteFromJson(site, reader.PlaceOf("site")));
  ASSAY_TRY(share.share, reader.Required<double>("share"));
  ASSAY_TRY_VOID(reader.Finish());
  return share;
}

template <class T, class Read>
Status ReadList(ObjectReader& reader, std::string_view key, std::vector<T>& into, Read read) {
  if (!reader.Has(key)) return {};
  ASSAY_TRY(const Json list, reader.Required<Json>(key));
  const std::string place = reader.PlaceOf(key);
  if (!list.is_array()) return Fail(ErrorKind::kMalformedInput, "must be a list", place);
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSAY_TRY(T item, read(list[i], place + "/" + std::to_string(i)));
    into.push_back(std::move(item));
  }
  return {};
}

}  // namespace

std::string_view Name(FindingKind kind) { return RowOf(kind).name; }
std::string_view FamilyOf(FindingKind kind) { return RowOf(kind).family; }
std::string_view MeaningOf(FindingKind kind) { return RowOf(kind).meaning; }

std::optional<FindingKind> ParseFindingKind(std::string_view name) {
  for (const KindRow& row : kKinds) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

Json ToJson(const SourceSite& site) { return SiteToJson(site); }

Result<SourceSite> SourceSiteFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  SourceSite site;
  ASSAY_TRY(site.file, reader.Optional<std::string>("file", ""));
  ASSAY_TRY(site.line, Unsigned<std::uint32_t>(reader, "line", 0));
  ASSAY_TRY(const auto calls, reader.Optional<std::vector<std::int64_t>>("called_at", {}));
  if (calls.size() > kMostCallSites ||
      std::ranges::any_of(calls, [](std::int64_t line) { return line < 1 || line > 0xffffffff; }))
    return Fail(ErrorKind::kMalformedInput, "must be a few lines", reader.PlaceOf("called_at"));
  for (const std::int64_t line : calls) site.called_at.push_back(static_cast<std::uint32_t>(line));
  ASSAY_TRY(site.column, Unsigned<std::uint32_t>(reader, "column", 0));
  ASSAY_TRY(site.ptx_line, Unsigned<std::uint32_t>(reader, "ptx_line", 0));
  ASSAY_TRY(site.instruction, reader.Optional<std::string>("instruction", ""));
  ASSAY_TRY(site.excerpt, reader.Optional<std::string>("excerpt", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return site;
}

Json ToJson(const Finding& finding) {
  Json json;
  json["schema"] = "assay.finding/1";
  json["kind"] = Name(finding.kind);
  json["message"] = finding.message;
  if (!finding.accesses.empty()) {
    Json list = Json::array();
    for (const Access& access : finding.accesses) {
      Json item;
      item["what"] = access.what;
      item["site"] = SiteToJson(access.site);
      item["block"] = Dim3ToJson(access.thread.block);
      item["thread"] = Dim3ToJson(access.thread.thread);
      item["threads"] = access.threads;
      if (!access.value.empty()) item["value"] = access.value;
      list.push_back(std::move(item));
    }
    json["accesses"] = std::move(list);
  }
  if (finding.memory) {
    const MemoryPlace& memory = *finding.memory;
    json["memory"] = {{"space", memory.space},     {"buffer", memory.buffer},
                      {"index", memory.index},     {"elements", memory.elements},
                      {"address", memory.address}, {"bytes", memory.bytes}};
  }
  if (finding.element) {
    const ElementPlace& element = *finding.element;
    json["element"] = {{"output", element.output},
                       {"index", element.index},
                       {"expected", NumberToJson(element.expected)},
                       {"got", NumberToJson(element.got)},
                       {"allowance", NumberToJson(element.allowance)}};
  }
  if (!finding.statistics.empty()) {
    Json list = Json::array();
    for (const Statistic& statistic : finding.statistics) {
      list.push_back({{"name", statistic.name},
                      {"value", NumberToJson(statistic.value)},
                      {"limit", NumberToJson(statistic.limit)},
                      {"note", statistic.note}});
    }
    json["statistics"] = std::move(list);
  }
  if (!finding.missing.empty()) json["missing"] = finding.missing;
  if (!finding.cause.empty()) json["cause"] = finding.cause;
  if (!finding.origins.empty()) json["origins"] = ToJson(finding.origins);
  if (!finding.origin.empty()) json["origin"] = finding.origin;
  return json;
}

Result<Finding> FindingFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.finding/1") {
    return Fail(ErrorKind::kMalformedInput, "unknown schema '" + schema + "'",
                reader.PlaceOf("schema"), "this version reads assay.finding/1");
  }
  Finding finding;
  ASSAY_TRY(const std::string kind, reader.Required<std::string>("kind"));
  const auto parsed = ParseFindingKind(kind);
  if (!parsed)
    return Fail(ErrorKind::kMalformedInput, "unknown kind '" + kind + "'", reader.PlaceOf("kind"));
  finding.kind = *parsed;
  ASSAY_TRY(finding.message, reader.Required<std::string>("message"));
  ASSAY_TRY_VOID(ReadList(reader, "accesses", finding.accesses, AccessFromJson));
  if (reader.Has("memory")) {
    ASSAY_TRY(const Json memory, reader.Required<Json>("memory"));
    ASSAY_TRY(finding.memory, MemoryFromJson(memory, reader.PlaceOf("memory")));
  }
  if (reader.Has("element")) {
    ASSAY_TRY(const Json element, reader.Required<Json>("element"));
    ASSAY_TRY(finding.element, ElementFromJson(element, reader.PlaceOf("element")));
  }
  ASSAY_TRY_VOID(ReadList(reader, "statistics", finding.statistics, StatisticFromJson));
  ASSAY_TRY(finding.missing, reader.Optional<std::string>("missing", ""));
  ASSAY_TRY(finding.cause, reader.Optional<std::string>("cause", ""));
  ASSAY_TRY_VOID(ReadList(reader, "origins", finding.origins, ShareFromJson));
  ASSAY_TRY(finding.origin, reader.Optional<std::string>("origin", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return finding;
}

Json ToJson(const std::vector<ErrorShare>& shares) {
  Json list = Json::array();
  for (const ErrorShare& share : shares)
    list.push_back({{"site", SiteToJson(share.site)}, {"share", share.share}});
  return list;
}

Result<std::vector<ErrorShare>> ErrorSharesFromJson(const Json& json, std::string place) {
  if (!json.is_array()) return Fail(ErrorKind::kMalformedInput, "must be a list", std::move(place));
  std::vector<ErrorShare> shares;
  for (std::size_t i = 0; i < json.size(); ++i) {
    ASSAY_TRY(ErrorShare share, ShareFromJson(json[i], place + "/" + std::to_string(i)));
    shares.push_back(std::move(share));
  }
  return shares;
}

Json ToJson(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(ToJson(finding));
  return list;
}

Result<std::vector<Finding>> FindingsFromJson(const Json& json, std::string place) {
  if (!json.is_array())
    return Fail(ErrorKind::kMalformedInput, "must be a list of findings", std::move(place));
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < json.size(); ++i) {
    ASSAY_TRY(Finding finding, FindingFromJson(json[i], place + "/" + std::to_string(i)));
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace assay

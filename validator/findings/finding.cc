#include "validator/findings/finding.h"

#include <algorithm>

#include "base/fields.h"
#include "validator/findings/statistic_fields.h"

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

}  // namespace

template <>
struct JsonForm<FindingKind> {
  static Json Write(FindingKind kind) { return Name(kind); }
  static Result<FindingKind> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const std::string name, ReadJson<std::string>(json, place));
    if (const auto kind = ParseFindingKind(name)) return *kind;
    return Fail(ErrorKind::kMalformedInput, "unknown kind '" + name + "'", place);
  }
};

static constexpr auto JsonFields(const SourceSite*) {
  using S = SourceSite;
  return std::tuple(Sparse("file", &S::file), Sparse("line", &S::line),
                    Sparse("called_at", &S::called_at), Sparse("column", &S::column),
                    Sparse("ptx_line", &S::ptx_line), Sparse("instruction", &S::instruction),
                    Sparse("excerpt", &S::excerpt));
}
static Status JsonCheck(const SourceSite& site, const ObjectReader& reader) {
  if (site.called_at.size() <= kMostCallSites &&
      std::ranges::find(site.called_at, 0u) == site.called_at.end())
    return {};
  return Fail(ErrorKind::kMalformedInput, "must be a few lines", reader.PlaceOf("called_at"));
}
static constexpr auto JsonFields(const ThreadId*) {
  return std::tuple(Required("block", &ThreadId::block), Required("thread", &ThreadId::thread));
}
static constexpr auto JsonFields(const Access*) {
  using A = Access;
  return std::tuple(Optional("what", &A::what), Optional("site", &A::site), Inlined(&A::thread),
                    Optional("threads", &A::threads), Sparse("value", &A::value));
}
static constexpr auto JsonFields(const MemoryPlace*) {
  using M = MemoryPlace;
  return std::tuple(Required("space", &M::space), Optional("buffer", &M::buffer),
                    Optional("index", &M::index), Optional("elements", &M::elements),
                    Optional("address", &M::address), Optional("bytes", &M::bytes));
}
static constexpr auto JsonFields(const ElementPlace*) {
  using E = ElementPlace;
  return std::tuple(Required("output", &E::output), Required("index", &E::index),
                    Required<AnyNumber>("expected", &E::expected),
                    Required<AnyNumber>("got", &E::got),
                    Required<AnyNumber>("allowance", &E::allowance));
}
static constexpr auto JsonFields(const ErrorShare*) {
  return std::tuple(Required("site", &ErrorShare::site), Required("share", &ErrorShare::share));
}
static constexpr auto JsonFields(const Finding*) {
  using F = Finding;
  return std::tuple(Schema("assay.finding/1"), Required("kind", &F::kind),
                    Required("message", &F::message), Sparse("accesses", &F::accesses),
                    Sparse("memory", &F::memory), Sparse("element", &F::element),
                    Sparse("statistics", &F::statistics), Sparse("missing", &F::missing),
                    Sparse("cause", &F::cause), Sparse("origins", &F::origins),
                    Sparse("origin", &F::origin));
}

std::string_view Name(FindingKind kind) { return RowOf(kind).name; }
std::string_view FamilyOf(FindingKind kind) { return RowOf(kind).family; }
std::string_view MeaningOf(FindingKind kind) { return RowOf(kind).meaning; }

std::optional<FindingKind> ParseFindingKind(std::string_view name) {
  for (const KindRow& row : kKinds) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

Json ToJson(const SourceSite& site) { return WriteJson(site); }
Json ToJson(const Finding& finding) { return WriteJson(finding); }
Json ToJson(const std::vector<Finding>& findings) { return WriteJson(findings); }
Json ToJson(const std::vector<ErrorShare>& shares) { return WriteJson(shares); }

Result<SourceSite> SourceSiteFromJson(const Json& json, std::string place) {
  return ReadJson<SourceSite>(json, place);
}
Result<Finding> FindingFromJson(const Json& json, std::string place) {
  return ReadJson<Finding>(json, place);
}
Result<std::vector<Finding>> FindingsFromJson(const Json& json, std::string place) {
  return ReadJson<std::vector<Finding>>(json, place);
}
Result<std::vector<ErrorShare>> ErrorSharesFromJson(const Json& json, std::string place) {
  return ReadJson<std::vector<ErrorShare>>(json, place);
}

}  // namespace assay

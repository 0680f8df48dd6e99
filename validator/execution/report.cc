#include <algorithm>
#include <cmath>

#include "validator/execution/coverage.h"
#include "validator/execution/execution.h"
#include "validator/execution/json_fields.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 6> kStops = {
    "completed", "fault", "step_limit", "unsupported", "resource_limit", "engine_failure"};

using FindingsForm = JsonThrough<&FindingsFromJson>;
using SharesForm = JsonThrough<&ErrorSharesFromJson>;

/// Null: unknown.
struct KnownNumber {
  static Json Write(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
  static Result<double> Read(const Json& json, const std::string& place) {
    if (json.is_null()) return std::nan("");
    if (json.is_number()) return json.get<double>();
    return Fail(ErrorKind::kMalformedInput, "must be a number or null", place);
  }
};

/// Numbers, five for each branch: a run has hundreds, and hundreds of runs are a judgement.
struct CoverageForm {
  static constexpr std::size_t kNumbers = 5;

  static Json Write(const std::vector<BranchCoverage>& coverage) {
    std::vector<std::string> files;
    std::vector<std::int64_t> numbers;
    for (const BranchCoverage& branch : coverage) {
      const auto known = std::ranges::find(files, branch.file);
      const auto file = static_cast<std::int64_t>(known - files.begin());
      if (known == files.end()) files.push_back(branch.file);
      numbers.insert(numbers.end(),
                     {branch.ptx_line, file, branch.line, branch.column, branch.sides});
    }
    return {{"files", files}, {"branches", numbers}};
  }

  static Result<std::vector<BranchCoverage>> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
    ASSAY_TRY(const auto files, reader.Required<std::vector<std::string>>("files"));
    ASSAY_TRY(const auto numbers, reader.Required<std::vector<std::int64_t>>("branches"));
    ASSAY_TRY_VOID(reader.Finish());
    const auto malformed = [&](std::string_view what) {
      return Fail(ErrorKind::kMalformedInput, std::string(what), reader.PlaceOf("branches"));
    };
    if (numbers.size() % kNumbers != 0) return malformed("must have five numbers for each branch");
    std::vector<BranchCoverage> coverage;
    coverage.reserve(numbers.size() / kNumbers);
    for (auto at = numbers.begin(); at != numbers.end(); at += kNumbers) {
      const auto file = static_cast<std::size_t>(at[1]);
      if (std::any_of(at, at + kNumbers, [](std::int64_t n) { return n < 0 || n > UINT32_MAX; }) ||
          file >= files.size() || at[4] > (kBothWays | kOfSelection))
        return malformed("has a number that is none of a line, a file or a way");
      coverage.push_back({.ptx_line = static_cast<std::uint32_t>(at[0]),
                          .file = files[file],
                          .line = static_cast<std::uint32_t>(at[2]),
                          .column = static_cast<std::uint32_t>(at[3]),
                          .sides = static_cast<std::uint8_t>(at[4])});
    }
    return coverage;
  }
};

/// The same, five for each number.
struct NumbersForm {
  static constexpr std::size_t kNumbers = 5;

  static Json Write(const std::vector<NarrowNumber>& numbers) {
    std::vector<std::uint64_t> flat;
    for (const NarrowNumber& number : numbers)
      flat.insert(flat.end(),
                  {number.ptx_line, number.which, number.digits, number.line, number.most});
    return flat;
  }

  static Result<std::vector<NarrowNumber>> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const auto flat, ReadJson<std::vector<std::uint64_t>>(json, place));
    if (flat.size() % kNumbers != 0)
      return Fail(ErrorKind::kMalformedInput, "must have five numbers for each number", place);
    std::vector<NarrowNumber> numbers;
    for (auto at = flat.begin(); at != flat.end(); at += kNumbers) {
      if (at[0] > UINT32_MAX || at[1] > 1 || at[2] < 15 || at[2] > 63 || at[3] > UINT32_MAX)
        return Fail(ErrorKind::kMalformedInput, "has a number that is none of a line or of digits",
                    place);
      numbers.push_back({.ptx_line = static_cast<std::uint32_t>(at[0]),
                         .which = static_cast<std::uint8_t>(at[1]),
                         .digits = static_cast<std::uint8_t>(at[2]),
                         .line = static_cast<std::uint32_t>(at[3]),
                         .most = at[4]});
    }
    return numbers;
  }
};

}  // namespace

static constexpr std::span<const std::string_view> JsonWords(const Stop*) { return kStops; }
static constexpr auto JsonFields(const Counters*) {
  using C = Counters;
  return std::tuple(
      Required("steps", &C::steps), Required("warp_steps", &C::warp_steps),
      Required("work", &C::work), Required("bytes_read", &C::bytes_read),
      Required("bytes_written", &C::bytes_written), Required("barriers", &C::barriers),
      Required("atomics", &C::atomics), Required("used_atomics", &C::used_atomics),
      Required("may_meet", &C::may_meet), Required("strong_loads", &C::strong_loads),
      Required("stale_chances", &C::stale_chances), Required("stale_reads", &C::stale_reads));
}
static constexpr auto JsonFields(const ErrorOrigin*) {
  using E = ErrorOrigin;
  return std::tuple(Required<SharesForm>("shares", &E::shares),
                    Required<ListOf<double, KnownNumber>>("exact", &E::exact),
                    Required("flipped", &E::flipped), Required("lost", &E::lost));
}
static constexpr auto JsonFields(const OrderReport*) {
  using O = OrderReport;
  return std::tuple(Required<FindingsForm>("sums", &O::sums),
                    Required<FindingsForm>("contests", &O::contests), Required("pairs", &O::pairs),
                    Required("orders", &O::orders), Required("held", &O::held));
}
static constexpr auto JsonFields(const WrittenRange*) {
  using W = WrittenRange;
  return std::tuple(Required("range", &W::range), Required("launch", &W::launch),
                    Required("block", &W::block));
}
static constexpr auto JsonFields(const DrawnWord*) {
  using D = DrawnWord;
  return std::tuple(Required("word", &D::word), Required("times", &D::times),
                    Required("value", &D::value));
}
static constexpr auto JsonFields(const Report*) {
  using R = Report;
  return std::tuple(
      Schema("assay.report/1"), Required("stop", &R::stop), Required("reason", &R::reason),
      Required<FindingsForm>("findings", &R::findings), Required("watched", &R::watched),
      Required("counters", &R::counters), Required<CoverageForm>("coverage", &R::coverage),
      Sparse<NumbersForm>("numbers", &R::numbers), Required("unwritten_bytes", &R::unwritten_bytes),
      Required("first_unwritten", &R::first_unwritten),
      Sparse<FindingsForm>("stale_reads", &R::stale_reads), Sparse("order", &R::order),
      Sparse("missing", &R::missing), Sparse("writers", &R::writers), Sparse("drawn", &R::drawn),
      Sparse("disguised", &R::disguised), Sparse("launch_steps", &R::launch_steps),
      Sparse("origin", &R::origin));
}

std::string_view Name(Stop stop) { return kStops[static_cast<std::size_t>(stop)]; }

Json ToJson(const Report& report) { return WriteJson(report); }
Result<Report> ReportFromJson(const Json& json) { return ReadJson<Report>(json, "report"); }

}  // namespace assay

#include "report/batch_view.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>

namespace assay::report {
namespace {

constexpr std::uintmax_t kLargestSummary = 64u << 20;

const Json& At(const Json& json, const char* key) {
  static const Json kNothing;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : kNothing;
}
std::string Text(const Json& json, const char* key) {
  const Json& value = At(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}
std::uint64_t Whole(const Json& json, const char* key) {
  const Json& value = At(json, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}
double Real(const Json& json, const char* key) {
  const Json& value = At(json, key);
  const double number = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(number) ? number : 0;
}
bool Truth(const Json& json, const char* key) {
  const Json& value = At(json, key);
  return value.is_boolean() && value.get<bool>();
}
// Items of a list; none where it is no list.
const Json& List(const Json& json, const char* key) {
  static const Json kNone = Json::array();
  const Json& value = At(json, key);
  return value.is_array() ? value : kNone;
}

BatchRow RowOf(const Json& json) {
  BatchRow row{.instance = Text(json, "instance"),
               .op = Text(json, "op"),
               .model = Text(json, "model"),
               .outcome = Text(json, "outcome"),
               .reason = Text(json, "reason"),
               .sister = Text(json, "sister"),
               .run = Text(json, "run"),
               .up_to_date = Truth(json, "up_to_date"),
               .attempts = List(json, "attempts").size()};
  for (const Json& gate : List(json, "gates"))
    row.gates.emplace_back(Text(gate, "gate"), Text(gate, "status"));
  row.read = Whole(At(json, "tokens"), "input");
  row.written = Whole(At(json, "tokens"), "output");
  if (At(json, "usd").is_number()) row.usd = Real(json, "usd");
  return row;
}

DriftView DriftOf(const Json& json) {
  DriftView drift{.instance = Text(json, "instance"),
                  .before = Text(json, "before"),
                  .after = Text(json, "after"),
                  .reason = Text(json, "reason"),
                  .gate = Text(json, "gate"),
                  .finding = Text(json, "finding"),
                  .drifted = Truth(json, "drifted")};
  for (const Json& part : List(json, "changed"))
    drift.changed.push_back(Text(part, "cause") + ": " + Text(part, "part"));
  return drift;
}

}  // namespace

std::optional<double> SecondsOf(std::string_view stamp) {
  if (stamp.size() < 20 || stamp[4] != '-' || stamp[7] != '-' || stamp[10] != 'T' ||
      stamp[13] != ':' || stamp[16] != ':' || stamp.back() != 'Z')
    return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t length) {
    int value = -1;
    const char* const end = stamp.data() + at + length;
    return std::from_chars(stamp.data() + at, end, value).ptr == end ? value : -1;
  };
  using namespace std::chrono;
  const int numbers[] = {number(0, 4),  number(5, 2),  number(8, 2),
                         number(11, 2), number(14, 2), number(17, 2)};
  if (std::ranges::any_of(numbers, [](int value) { return value < 0; })) return std::nullopt;
  const year_month_day day(year(numbers[0]), month(static_cast<unsigned>(numbers[1])),
                           std::chrono::day(static_cast<unsigned>(numbers[2])));
  if (!day.ok()) return std::nullopt;
  double fraction = 0;
  if (stamp[19] == '.') {
    const std::string_view digits = stamp.substr(20, stamp.size() - 21);
    int value = 0;
    const char* const end = digits.data() + std::min<std::size_t>(digits.size(), 3);
    if (digits.empty() || std::from_chars(digits.data(), end, value).ptr != end)
      return std::nullopt;
    fraction = value * std::pow(10.0, -static_cast<double>(end - digits.data()));
  }
  const double days = static_cast<double>(sys_days(day).time_since_epoch().count());
  return days * 86400 + numbers[3] * 3600 + numbers[4] * 60 + numbers[5] + fraction;
}

std::uint64_t BatchView::CountOf(std::string_view outcome) const {
  return static_cast<std::uint64_t>(std::ranges::count(rows, outcome, &BatchRow::outcome));
}

bool HoldsBatch(const Path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "batch.json", error) ||
         std::filesystem::exists(folder / "summary.json", error);
}

Result<BatchView> BatchViewOf(const Json& summary, const std::string& place) {
  if (Text(summary, "schema") != "assay.batch_summary/1") {
    return Fail(ErrorKind::kMalformedInput, "is no summary of a batch (assay.batch_summary/1)",
                place, "name a run's folder, or a batch's");
  }
  BatchView view;
  view.kind = Text(summary, "kind");
  const Json& measured = At(summary, "measured");
  view.name = Text(measured, "batch");
  view.executor = Text(measured, "executor");
  view.began = Text(measured, "began");
  view.stopped = Text(measured, "stopped");
  view.seconds = Real(measured, "seconds");
  std::map<std::string, const Json*> costs;
  for (const Json& cost : List(measured, "instances")) costs[Text(cost, "instance")] = &cost;
  const std::optional<double> began = SecondsOf(view.began);
  for (const Json& json : List(summary, "instances")) {
    BatchRow& row = view.rows.emplace_back(RowOf(json));
    const auto cost = costs.find(row.instance);
    if (cost == costs.end()) continue;
    row.seconds = Real(*cost->second, "seconds");
    const std::optional<double> ended = SecondsOf(Text(*cost->second, "ended"));
    if (began && ended && *ended >= *began) row.ended = *ended - *began;
  }
  for (const Json& json : List(summary, "drift")) view.drift.push_back(DriftOf(json));
  return view;
}

Result<BatchView> ReadBatchView(const Path& folder) {
  const Path file = folder / "summary.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return Fail(ErrorKind::kUsage, "this batch has no summary yet", folder.string(),
                "wait for its end, or let assay batch --resume write it");
  }
  ASSAY_TRY(const std::string text, ReadFile(file, kLargestSummary));
  ASSAY_TRY(const Json summary, ParseJson(text, file.string()));
  ASSAY_TRY(BatchView view, BatchViewOf(summary, file.string()));
  const Path plain = folder.lexically_normal();
  if (view.name.empty())
    view.name = (plain.has_filename() ? plain.filename() : plain.parent_path().filename()).string();
  return view;
}

}  // namespace assay::report

#include "validator/execution/json_fields.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 4> kPolicies = {"sequential", "permuted", "reversed",
                                                       "priorities"};

}  // namespace

std::span<const std::string_view> JsonWords(const Schedule::Policy*) { return kPolicies; }

std::string NotWatched(const Checks& asked, const Checks& watched) {
  std::string missing;
  const auto compare = [&](const auto& row) {
    if (!(asked.*row.member) || watched.*row.member) return;
    missing += (missing.empty() ? "" : ", ") + std::string(row.key);
  };
  std::apply([&](const auto&... row) { (compare(row), ...); },
             JsonFields(static_cast<const Checks*>(nullptr)));
  return missing;
}

Json ToJson(const Checks& checks) { return WriteJson(checks); }
Json ToJson(const OrderPair& pair) { return WriteJson(pair); }
Json ToJson(const Schedule& schedule) { return WriteJson(schedule); }
Result<Checks> ChecksFromJson(const Json& json, std::string place) {
  return ReadJson<Checks>(json, place);
}
Result<OrderPair> OrderPairFromJson(const Json& json, std::string place) {
  return ReadJson<OrderPair>(json, place);
}
Result<Schedule> ScheduleFromJson(const Json& json, std::string place) {
  return ReadJson<Schedule>(json, place);
}

}  // namespace assay

#include "validator/verdict/verdict.h"

#include <array>

#include "base/fields.h"
#include "validator/findings/statistic_fields.h"

namespace assay::verdict {
namespace {

constexpr std::array<std::string_view, 4> kOutcomes = {"accepted", "refuted", "inconclusive",
                                                       "internal_error"};
constexpr std::array<std::string_view, 4> kStatuses = {"passed", "refuted", "inconclusive",
                                                       "skipped"};

using CounterexampleForm = JsonThrough<&CounterexampleFromJson>;
using LedgerForm = JsonThrough<&LedgerFromJson>;
using ProfileForm = JsonThrough<&ErrorProfileFromJson>;

}  // namespace

static constexpr std::span<const std::string_view> JsonWords(const Outcome*) { return kOutcomes; }
static constexpr std::span<const std::string_view> JsonWords(const GateStatus*) {
  return kStatuses;
}
static constexpr auto JsonFields(const GateResult*) {
  using G = GateResult;
  return std::tuple(
      Required("gate", &G::gate), Required("status", &G::status), Optional("reason", &G::reason),
      Optional("cases", &G::cases), Optional("steps", &G::steps), Optional("seeds", &G::seeds),
      Optional("statistics", &G::statistics),
      Optional<ListOf<Counterexample, CounterexampleForm>>("counterexamples", &G::counterexamples),
      Optional("seconds", &G::seconds),
      Sparse<ListOf<ErrorProfile, ProfileForm>>("errors", &G::errors));
}
static constexpr auto JsonFields(const Verdict*) {
  using V = Verdict;
  // Verdicts written before there was a ledger have none.
  return std::tuple(Schema("assay.verdict/1"), Required("outcome", &V::outcome),
                    Optional("reason", &V::reason), Required("instance", &V::instance),
                    Required("engine", &V::engine), Optional("truth", &V::truth),
                    Required("unsafe_no_jail", &V::unsafe_no_jail), Optional("gates", &V::gates),
                    Optional<LedgerForm>("ledger", &V::ledger));
}

std::string_view Name(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::string_view Name(GateStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

int ExitCode(Outcome outcome) {
  constexpr std::array kCodes = {0, 1, 2, 4};
  return kCodes[static_cast<std::size_t>(outcome)];
}

void SetInconclusive(GateResult& result, std::string reason) {
  result.status = GateStatus::kInconclusive;
  result.reason = std::move(reason);
}

std::vector<const Counterexample*> Verdict::Counterexamples() const {
  std::vector<const Counterexample*> all;
  for (const GateResult& result : gates) {
    for (const Counterexample& counterexample : result.counterexamples)
      all.push_back(&counterexample);
  }
  return all;
}

Json ToJson(const Verdict& verdict) { return WriteJson(verdict); }
Result<Verdict> VerdictFromJson(const Json& json, std::string place) {
  return ReadJson<Verdict>(json, place);
}

}  // namespace assay::verdict

#include "report/testing/pages.h"

#include <fmt/format.h>

#include "report/page.h"
#include "runs/folder.h"
#include "runs/testing/fakes.h"

namespace assay::testing {

std::string DemoPage(const Path& folder) {
  const Path run = folder / "demo";
  std::filesystem::create_directories(run);
  std::filesystem::copy_file(Path(ASSAY_SOURCE_DIR) / "report/testdata/demo/events.jsonl",
                             run / "events.jsonl");
  const auto view =
      report::ReadRunView(run, [](const std::string&, const runs::Usage&) { return 0.25; });
  ASSAY_CHECK(view.has_value(), view ? "" : ToString(view.error()));
  return report::RunPage(*view);
}

void WriteHostileRun(const Path& folder) {
  const std::string attack =
      "</code></style><script>alert(1)</script><img src=x "
      "onerror=alert(1)>\xff\x1b[2J\xe2\x80\xae\"'";
  FakeClock clock;
  auto run = runs::RunFolder::Create(folder, clock, "go on");
  ASSAY_CHECK(run.has_value(), run ? "" : ToString(run.error()));
  const auto record = [&](runs::Event event) {
    const Status status = run->Record(std::move(event));
    ASSAY_CHECK(status.has_value(), status ? "" : ToString(status.error()));
  };
  record(runs::RunStarted{{{"instance", attack},
                           {"op", {{"name", attack}}},
                           {"model", attack},
                           {"arch", attack},
                           {"binding", {{attack, attack}}},
                           {"settings", {{attack, attack}}}},
                          attack});
  // Longer than a page may be, in many lines and in one.
  std::string endless;
  for (int i = 0; i < 40'000; ++i) endless += "  x = " + attack + ";\n";
  const std::string sources[] = {attack + "\n" + attack, endless,
                                 std::string(2'000'000, 'x') + "<script>"};
  int number = 0;
  for (const std::string& source : sources) {
    ++number;
    record(runs::AttemptsPlanned{
        {{number, runs::DraftKind::kRepair, number - 1, {{runs::Role::kUser, attack, false}}}}});
    record(runs::ReplyReceived{number,
                               {.text = "```cuda\n" + source + "\n```\n```json\n{\"x\": \"" +
                                        std::string("<script>") + "\"}\n```\n"},
                               true});
    verdict::Verdict verdict = VerdictOf(RmsNorm(), {source, "{}"}, "refute race data_race");
    verdict.reason = attack;
    verdict.engine = attack;
    verdict.ledger.Planned(attack, 3);
    verdict.ledger.LeaveOut(attack, attack, attack, 3);
    verdict.ledger.Tried(attack, -5, verdict::Extent::kWhole, -9);
    verdict.ledger.NotReached(
        {{attack, 1}, {"kernel.cu:2: " + attack, 2}, {"kernel.cu:99999999999999999999: x", 1}});
    verdict::GateResult& gate = verdict.gates.back();
    gate.gate = attack;
    verdict::Counterexample& counterexample = gate.counterexamples.front();
    counterexample.description = attack;
    Finding& finding = counterexample.findings.front();
    finding.message = finding.missing = finding.cause = attack;
    finding.accesses.front().what = attack;
    finding.accesses.front().site.line = 1;
    finding.accesses.push_back(finding.accesses.front());
    finding.accesses.back().site.line = 4'000'000'000;
    finding.statistics = {{.name = attack, .value = 1e308, .limit = -1e308, .note = attack}};
    record(runs::AttemptJudged{number, std::move(verdict), {}, "", ""});
  }
  record(runs::RunStopped{verdict::Outcome::kRefuted, attack, true});
}

Json BatchSummary(int instances) {
  constexpr const char* kOutcomes[] = {"accepted", "accepted",     "refuted",
                                       "accepted", "inconclusive", "failed"};
  Json rows = Json::array(), costs = Json::array();
  for (int i = 0; i < instances; ++i) {
    const std::string outcome = kOutcomes[i % 6];
    const std::string name = fmt::format("op_{}-T={}-sm_90", i / 2, i % 2 == 0 ? "f32" : "bf16");
    Json gates = Json::array();
    for (const char* const gate : {"format", "policy", "compile", "memory", "race", "numeric"}) {
      const bool last = std::string_view(gate) == (i % 4 == 0 ? "race" : "numeric");
      gates.push_back({{"gate", gate},
                       {"status", !last || outcome == "accepted" ? "passed"
                                  : outcome == "refuted"         ? "refuted"
                                                                 : "inconclusive"}});
      if (last) break;
    }
    rows.push_back(
        {{"instance", name},
         {"op", fmt::format("op_{}", i / 2)},
         {"model", "openai/m"},
         {"outcome", outcome},
         {"reason", outcome == "accepted" ? "" : "the reason in one line"},
         {"up_to_date", i % 7 == 3},
         {"resumable", false},
         {"sister", i % 2 == 1 ? fmt::format("op_{}-T=f32-sm_90", i / 2) : ""},
         {"attempts", Json::array({{{"attempt", 1}}})},
         {"gates", std::move(gates)},
         {"tokens", {{"input", 9000 + 531 * i}, {"cached_input", 4000}, {"output", 1200 + 87 * i}}},
         {"usd", 0.02 * (i + 1)}});
    costs.push_back(
        {{"instance", name},
         {"began", "2026-01-31T12:00:00.000Z"},
         {"ended", fmt::format("2026-01-31T{:02}:{:02}:00.000Z", 12 + i / 30, 2 * i % 60)},
         {"seconds", 40.5 + i}});
  }
  const Json changed = {
      {"cause", "judge"}, {"part", "assay-worker sha256"}, {"before", "a"}, {"after", "b"}};
  return {{"schema", "assay.batch_summary/1"},
          {"kind", "generate"},
          {"instances", std::move(rows)},
          {"drift", Json::array({{{"instance", "op_0-T=f32-sm_90"},
                                  {"before", "accepted"},
                                  {"after", "refuted"},
                                  {"gate", "race"},
                                  {"finding", "data_race"},
                                  {"reason", "why"},
                                  {"drifted", true},
                                  {"changed", Json::array({changed})}}})},
          {"measured",
           {{"batch", "2026-01-31-night"},
            {"executor", "local"},
            {"began", "2026-01-31T12:00:00.000Z"},
            {"seconds", 5400.0},
            {"stopped", ""},
            {"instances", std::move(costs)}}}};
}

}  // namespace assay::testing

#include "tests/litmus/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "tests/litmus/model.h"

namespace assay::litmus {
namespace {

std::string_view NameOf(Test::Expectation expectation) {
  switch (expectation) {
    case Test::Expectation::kForbidden:
      return "never";
    case Test::Expectation::kShown:
      return "shown";
    case Test::Expectation::kNever:
      return "never";
    case Test::Expectation::kRace:
      return "reported as a race";
  }
  return {};
}

std::string Code(const Thread& thread) {
  std::string text = fmt::format("{}.{}: ", thread.block, thread.thread);
  for (const Instruction& in : thread.code)
    text += (&in == thread.code.data() ? "" : "; ") + in.text;
  return text;
}

std::uint64_t Seen(const Recording& recording, const Test& test) {
  const auto at = recording.outcomes.find(test.name);
  if (at == recording.outcomes.end()) return 0;
  std::uint64_t count = 0;
  for (const auto& [text, times] : at->second) {
    const bool matches = std::ranges::all_of(test.outcome, [&](const auto& term) {
      const std::string wanted = fmt::format("{}={}", term.first, term.second);
      return (" " + text + " ").find(" " + wanted + " ") != std::string::npos;
    });
    if (matches) count += times;
  }
  return count;
}

}  // namespace

Result<Recording> RecordingFromJson(const Json& json) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, "recording"));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.litmus/1")
    return Fail(ErrorKind::kMalformedInput, "unknown schema", reader.PlaceOf("schema"));
  Recording recording;
  ASSAY_TRY(recording.device, reader.Required<std::string>("device"));
  ASSAY_TRY(recording.recorded, reader.Required<std::string>("recorded"));
  ASSAY_TRY(const std::int64_t driver, reader.Required<std::int64_t>("cuda_driver"));
  recording.driver = static_cast<int>(driver);
  ASSAY_TRY(const Json tests, reader.Required<Json>("tests"));
  for (const auto& [name, outcomes] : tests.items()) {
    for (const auto& [outcome, count] : outcomes.items()) {
      if (!count.is_number_unsigned())
        return Fail(ErrorKind::kMalformedInput, "must be a count", "recording: /tests/" + name);
      recording.outcomes[name][outcome] = count.get<std::uint64_t>();
    }
  }
  ASSAY_TRY_VOID(reader.Finish());
  return recording;
}

Json ToJson(const Recording& recording) {
  return {{"schema", "assay.litmus/1"},
          {"device", recording.device},
          {"recorded", recording.recorded},
          {"cuda_driver", recording.driver},
          {"tests", recording.outcomes}};
}

Result<std::vector<Recording>> LoadRecordings() {
  const std::string folder = std::string(ASSAY_SOURCE_DIR) + "/tests/litmus/recorded";
  std::vector<Recording> recordings;
  if (!std::filesystem::exists(folder)) return recordings;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().string());
  std::ranges::sort(files);
  for (const std::string& file : files) {
    ASSAY_TRY(const std::string text, ReadFile(file));
    ASSAY_TRY(const Json json, ParseJson(text, file));
    ASSAY_TRY(Recording recording, RecordingFromJson(json));
    recordings.push_back(std::move(recording));
  }
  return recordings;
}

std::vector<std::string> Contradictions(const Recording& recording,
                                        const std::vector<Test>& tests) {
  std::vector<std::string> found;
  for (const Test& test : tests) {
    const auto at = recording.outcomes.find(test.name);
    if (at == recording.outcomes.end()) continue;
    std::set<std::string> allowed;
    for (const Outcome& outcome : AllowedOutcomes(test)) allowed.insert(ToString(outcome));
    for (const auto& [outcome, count] : at->second) {
      if (!allowed.contains(outcome)) found.push_back(test.name + ": " + outcome);
    }
  }
  return found;
}

std::string Table(const std::vector<Test>& tests, const std::vector<Recording>& recordings) {
  std::string text = "| test | threads | outcome | model | emulator |";
  std::string rule = "|---|---|---|---|---|";
  for (const Recording& recording : recordings) {
    text += fmt::format(" {} |", recording.device);
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  for (const Test& test : tests) {
    std::string code;
    for (const Thread& thread : test.threads) code += (code.empty() ? "" : "<br>") + Code(thread);
    if (test.shared) code += "<br>(shared memory)";
    text += fmt::format("| {} | {} | {} | {} | {} |", test.name, code, ToString(test.outcome),
                        test.allowed() ? "allowed" : "forbidden", NameOf(test.expectation));
    for (const Recording& recording : recordings)
      text += recording.outcomes.contains(test.name) ? fmt::format(" {} |", Seen(recording, test))
                                                     : " |";
    text += "\n";
  }
  return text;
}

}  // namespace assay::litmus

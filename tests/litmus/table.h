// The litmus table of docs/litmus.md, and recordings of what GPUs show.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/litmus/litmus.h"

namespace assay::litmus {

/// What litmus_gpu writes: how often each outcome was seen, by test.
struct Recording {
  std::string device;
  std::string recorded;
  int driver = 0;
  std::map<std::string, std::map<std::string, std::uint64_t>> outcomes;
};
Result<Recording> RecordingFromJson(const Json& json);
Json ToJson(const Recording& recording);
/// Those that lie in tests/litmus/recorded.
Result<std::vector<Recording>> LoadRecordings();

/// What was seen and is not allowed: "TEST: OUTCOME", one each. Tests that no longer exist are left
/// out.
std::vector<std::string> Contradictions(const Recording& recording, const std::vector<Test>& tests);

/// docs/litmus.md between its markers.
std::string Table(const std::vector<Test>& tests, const std::vector<Recording>& recordings);

}  // namespace assay::litmus

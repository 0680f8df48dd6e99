// What can happen in a batch: a line each of its events.jsonl (assay.batch_event/1), the truth about
// it. What happens within an instance stands in its run's own events (runs/events.h); here stands
// that it began, and what came of it.
//
// BatchState is what follows from the events, and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "batch/summary.h"

namespace assay::batch {

struct BatchStarted {
  Json batch;  ///< As batch.json shows it.
};
struct BatchResumed {
  Json batch;
};
struct InstanceStarted {
  std::string instance;
  std::string where;
  std::string sister;  ///< Whose kernel the model is shown; empty: nobody's.
};
/// A kernel that is there for the instance's key.
struct InstanceUpToDate {
  std::string instance;
  std::string key;
  std::string kernel;  ///< SHA-256
  std::string vetted;  ///< Its folder, absolute or below the batch's.
};
struct InstanceEnded {
  std::string instance;
  End end = End::kFailed;
  std::string reason;
  bool resumable = false;
  int attempts = 0;
  runs::Usage tokens;
  runs::Usage lost;
  std::optional<double> usd;  ///< Of `tokens`.
  std::string vetted;         ///< Below the batch's folder.
  std::string kernel;         ///< SHA-256
  std::string where;
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t max_rss_bytes = 0;
};
struct InstanceRechecked {
  DriftRow drift;
};
struct BatchStopped {
  std::string reason;  ///< Empty: it came to its end.
  bool resumable = false;
};

using Event = std::variant<BatchStarted, BatchResumed, InstanceStarted, InstanceUpToDate,
                           InstanceEnded, InstanceRechecked, BatchStopped>;

struct StampedEvent {
  std::uint64_t number = 0;
  std::string time;
  std::uint64_t milliseconds = 0;  ///< Since this process took up the batch.
  Event event;
};

Json ToJson(const StampedEvent& event);
Result<StampedEvent> EventFromJson(const Json& json, const std::string& place);

Json ToJson(const InstanceEnded& ended);
Result<InstanceEnded> EndedFromJson(const Json& json, const std::string& place);
Json ToJson(const DriftRow& row);

struct InstanceState {
  std::string sister;
  std::optional<InstanceUpToDate> up_to_date;
  std::optional<InstanceEnded> ended;  ///< The last one.
  InstanceCost cost;                   ///< Of all its starts.
};

struct BatchState {
  Json batch;
  std::map<std::string, InstanceState> instances;
  std::vector<DriftRow> drift;
  std::uint64_t starts = 0;
  std::uint64_t earlier_milliseconds = 0;
  std::uint64_t session_milliseconds = 0;
  std::string began;
  std::string last;  ///< Time of the last event.
  std::optional<BatchStopped> stopped;

  /// Whether nothing more is to be done for the instance.
  bool Done(const std::string& instance) const;
};
void Apply(const StampedEvent& event, BatchState& state);

}  // namespace assay::batch

// What a batch has come to (summary.json, assay.batch_summary/1): a row an instance, totals, the
// drift of a recheck, and, apart from all that, what was measured.
//
// Everything but `measured` is a function of plan, models and judge: a batch that was killed and
// resumed any number of times has the summary of one that was not. Times, places, tokens that were
// paid for nothing and the batch's own name stand in `measured`. Rows are in the plan's order. A
// summary follows from the batch's events and the runs below it; nothing else knows more.
//
//   ASSAY_TRY(const Summary summary, Summarise(folder));        // batch/folder.h
//   ASSAY_TRY_VOID(WriteFileAtomically(folder / "summary.json", PrettyJson(ToJson(summary))));
//   Compared(ToJson(summary)) == Compared(ToJson(other));
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "runs/conversation.h"

namespace assay::batch {

/// What became of an instance. `kFailed`: the machine or the model's server failed it, no verdict
/// says anything about it. `kWaiting`: not begun, or not at its end.
enum class End : std::uint8_t { kAccepted, kRefuted, kInconclusive, kFailed, kWaiting };
std::string_view Name(End end);
std::optional<End> ParseEnd(std::string_view name);

/// One judged attempt of a run. `gate` and `finding` are those of its first counterexample; empty
/// where it has none.
struct AttemptRow {
  int attempt = 0;
  std::string kind;  ///< "first", "repair", "restart", "optimize"
  int parent = 0;
  std::string outcome;  ///< As in verdicts.
  std::string gate;
  std::string finding;
};

struct GateRow {
  std::string gate;
  std::string status;  ///< As in verdicts.
};

struct InstanceRow {
  std::string instance;  ///< "rms_norm-T=bf16-sm_90"
  std::string op;
  std::string op_sha256;
  std::map<std::string, std::string> binding;
  std::string arch;
  std::string model;
  End end = End::kWaiting;
  std::string reason;       ///< One line for people.
  bool up_to_date = false;  ///< Nothing was done: an earlier batch's kernel is what would be made.
  bool resumable = false;   ///< A limit or an interruption ended it.
  std::string sister;       ///< The instance whose accepted kernel its first prompt shows.
  std::vector<AttemptRow> attempts;
  std::vector<GateRow> gates;  ///< Of the verdict that counts: the accepted one, else the last.
  runs::Usage tokens;          ///< Of the replies.
  std::optional<double> usd;   ///< What these tokens cost, where prices are known.
  std::string kernel;          ///< SHA-256 of the vetted kernel.cu.
  std::string run;             ///< The run's folder below the batch's; empty where up to date.
  std::string vetted;          ///< The kernel's folder: below the batch's, else absolute.
};

struct Totals {
  std::uint64_t instances = 0;
  std::map<std::string, std::uint64_t> ends;  ///< All of End, by name.
  std::uint64_t up_to_date = 0;
  std::uint64_t attempts = 0;
  runs::Usage tokens;
  double usd = 0;  ///< Of the instances whose prices are known.
};

/// A part of a judgement's key that is not what it was: "assay-worker sha256", "nvrtc", "op", ...
struct ChangedPart {
  std::string cause;  ///< "judge", "toolkit", "op" or "options"
  std::string part;
  std::string before;
  std::string after;
};

/// A kernel that was judged again. Where nothing has changed, the old judgement stands and nothing
/// is run.
struct DriftRow {
  std::string instance;
  std::string kernel;  ///< SHA-256 of kernel.cu
  std::string before;  ///< Outcome of the record.
  std::string after;   ///< Outcome of today; empty where it could not be judged.
  std::string reason;
  std::string gate;     ///< The gate that decided against it, where one did.
  std::string finding;  ///< Its first finding.
  bool drifted = false;
  std::vector<ChangedPart> changed;
};

/// Time and place of an instance: all its starts together.
struct InstanceCost {
  std::string instance;
  std::string began;
  std::string ended;
  double seconds = 0;
  std::string where;  ///< "HOST:PID", "slurm JOB_TASK on NODE"
  std::uint64_t starts = 0;
  double cpu_seconds = 0;           ///< Where the executor knows it, else 0.
  std::uint64_t max_rss_bytes = 0;  ///< Likewise.
  std::uint64_t lost_tokens = 0;    ///< Paid for nothing: broken replies, cancelled requests.
};

struct Measured {
  std::string batch;  ///< Its id.
  std::string executor;
  std::string began;
  std::string ended;
  double seconds = 0;                   ///< Of all processes that worked on it.
  std::uint64_t starts = 0;             ///< Of the batch: one, and one a resumption.
  std::string stopped;                  ///< Why it stopped before its end; empty where it did not.
  std::vector<InstanceCost> instances;  ///< Those that ran, in the plan's order.
};

struct Summary {
  std::string kind = "generate";  ///< or "recheck"
  std::vector<InstanceRow> instances;
  Totals totals;
  std::vector<DriftRow> drift;  ///< Of a recheck.
  Measured measured;
};

inline constexpr std::string_view kSummarySchema = "assay.batch_summary/1";

/// Totals of `instances`.
Totals Sum(const std::vector<InstanceRow>& instances);

Json ToJson(const Summary& summary);
Result<Summary> SummaryFromJson(const Json& json, const std::string& place);

/// The part that two runs of one plan agree in.
Json Compared(Json summary);

/// The final table, for people.
std::string RenderTable(const Summary& summary);

}  // namespace assay::batch

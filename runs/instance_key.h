// What a generated kernel depends on, as a key: op with its preludes, prompts, judge, toolkit,
// architecture, binding, model and options. The same key, the same request: a kernel that is there
// for it need not be made again, as a target whose inputs have not changed is not made again.
//
// The parts stay beside the key, so that two keys can be compared: which part changed says why a
// kernel is not up to date, or why today's verdict on it is another (docs/batch.md, "recheck").
//
// An InstanceRecord (assay.instance_record/1) is what a store keeps for a key: the vetted folder's
// files by digest, and where the folder was.
//
//   const InstanceKey key = KeyOf(facts);
//   if (const auto record = FindRecord(store, key)) ...   // up to date
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "ops/op.h"
#include "runs/judgement.h"
#include "runs/store.h"

namespace assay::runs {

struct InstanceFacts {
  const ops::Instance& instance;
  const JudgeFacts& judge;
  std::string prompts_digest;
  Json model;    ///< Its name and what it is asked with; no keys, no time-outs.
  Json options;  ///< Strategy, attempts, feedback: what a run does with the model.
};

/// Parts by name. "op", "preludes", "binding", "arch", "prompts", "model", "options", "engine",
/// "effort", "seed", "jail off", and "version NAME" for each tool and program.
struct InstanceKey {
  std::map<std::string, std::string> parts;
  /// SHA-256 over the parts.
  std::string digest() const;
};
InstanceKey KeyOf(const InstanceFacts& facts);

/// What a part belongs to: "op", "toolkit", "judge" or "options".
std::string_view CauseOf(std::string_view part);

struct Change {
  std::string part;
  std::string before;  ///< Empty: it was not there.
  std::string after;   ///< Empty: it is not there.
};
/// Parts that are not the same, in the order of their names.
std::vector<Change> ChangesOf(const InstanceKey& before, const InstanceKey& after);
/// Of these, the ones that a verdict depends on: not prompts, model and options.
std::vector<Change> JudgementChanges(const InstanceKey& before, const InstanceKey& after);

struct InstanceRecord {
  InstanceKey key;
  std::string instance;
  std::string op;
  std::map<std::string, std::string> binding;
  std::string arch;
  std::string certificate;                   ///< SHA-256 of certificate.json
  std::map<std::string, std::string> files;  ///< Of the vetted folder: name -> digest.
  std::string vetted;                        ///< Where the folder was, absolute.
  std::string author;
};
Json ToJson(const InstanceRecord& record);
Result<InstanceRecord> InstanceRecordFromJson(const Json& json, const std::string& place);

inline constexpr std::string_view kInstanceKind = "instance";

/// Keeps the vetted folder's files and the record, and refers to them as `run`.
Status KeepRecord(const Store& store, InstanceRecord record, const Path& vetted,
                  const std::string& run);
/// The record of a key whose blobs are all there. Nothing where one is not, or where the record
/// cannot be read: then the kernel is made again.
std::optional<InstanceRecord> FindRecord(const Store& store, const InstanceKey& key);
/// All records of a store that can be read, by instance.
std::vector<InstanceRecord> AllRecords(const Store& store);
/// Writes the vetted folder as it was. Its certificate is checked (runs/emit.h).
Status Restore(const Store& store, const InstanceRecord& record, const Path& folder);

}  // namespace assay::runs

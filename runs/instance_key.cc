#include "runs/instance_key.h"

#include <algorithm>

#include "base/digest.h"
#include "base/fields.h"
#include "ops/prelude.h"
#include "runs/emit.h"

namespace assay::runs {
namespace {

constexpr std::string_view kSchema = "assay.instance_record/1";
constexpr std::string_view kVersion = "version ";

// A name of a vetted folder's file: nothing that leads elsewhere.
bool IsFileName(std::string_view name) {
  return !name.empty() && !name.starts_with(".") && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

std::optional<InstanceRecord> Read(const Store& store, const std::string& key) {
  const std::optional<std::string> text = store.GetRecord(key, kInstanceKind);
  if (!text) return std::nullopt;
  const Result<Json> json = ParseJson(*text, key);
  if (!json) return std::nullopt;
  Result<InstanceRecord> record = InstanceRecordFromJson(*json, key);
  if (!record || record->key.digest() != key) return std::nullopt;
  const bool whole =
      std::ranges::all_of(record->files, [&](const auto& file) { return store.Has(file.second); });
  return whole ? std::optional(*std::move(record)) : std::nullopt;
}

}  // namespace

static constexpr auto JsonFields(const InstanceRecord*) {
  using I = InstanceRecord;
  return std::tuple(Schema(kSchema), Within(&I::key, Required("parts", &InstanceKey::parts)),
                    Required("instance", &I::instance), Required("op", &I::op),
                    Required("binding", &I::binding), Required("arch", &I::arch),
                    Required("certificate", &I::certificate), Required("files", &I::files),
                    Required("vetted", &I::vetted), Required("author", &I::author));
}
static Status JsonCheck(const InstanceRecord& record, const ObjectReader& reader) {
  for (const auto& [name, digest] : record.files) {
    if (IsFileName(name) && IsDigest(digest)) continue;
    return Fail(ErrorKind::kMalformedInput, "names no file of a vetted folder",
                reader.PlaceOf("files") + "/" + name);
  }
  return {};
}

std::string InstanceKey::digest() const {
  return Sha256Hex(CompactJson({{"schema", "assay.instance_key/1"}, {"parts", parts}}));
}

InstanceKey KeyOf(const InstanceFacts& facts) {
  const ops::Instance& instance = facts.instance;
  InstanceKey key;
  key.parts = {{"op", instance.op.name + " " + instance.op.digest},
               {"preludes", ops::PreludeDigest()},
               {"binding", CompactJson(BindingWords(instance))},
               {"arch", instance.arch},
               {"prompts", facts.prompts_digest},
               {"model", CompactJson(facts.model)},
               {"options", CompactJson(facts.options)},
               {"engine", facts.judge.engine},
               {"effort", facts.judge.effort},
               {"seed", std::to_string(facts.judge.seed)},
               {"jail off", facts.judge.unsafe_no_jail ? "yes" : "no"}};
  for (const auto& [tool, version] : facts.judge.versions)
    key.parts[std::string(kVersion) + tool] = version;
  return key;
}

std::string_view CauseOf(std::string_view part) {
  if (part == "op") return "op";
  if (part == "version nvrtc") return "toolkit";
  if (part == "preludes" || part.starts_with(kVersion)) return "judge";
  return "options";
}

std::vector<Change> ChangesOf(const InstanceKey& before, const InstanceKey& after) {
  std::map<std::string, Change> changes;
  for (const auto& [part, value] : before.parts) changes[part] = {part, value, {}};
  for (const auto& [part, value] : after.parts) {
    changes[part].part = part;
    changes[part].after = value;
  }
  std::vector<Change> different;
  for (auto& [part, change] : changes) {
    if (change.before != change.after) different.push_back(std::move(change));
  }
  return different;
}

std::vector<Change> JudgementChanges(const InstanceKey& before, const InstanceKey& after) {
  std::vector<Change> changes = ChangesOf(before, after);
  std::erase_if(changes, [](const Change& change) {
    return change.part == "prompts" || change.part == "model" || change.part == "options";
  });
  return changes;
}

Json ToJson(const InstanceRecord& record) { return WriteJson(record); }
Result<InstanceRecord> InstanceRecordFromJson(const Json& json, const std::string& place) {
  return ReadJson<InstanceRecord>(json, place);
}

Status KeepRecord(const Store& store, InstanceRecord record, const Path& vetted,
                  const std::string& run) {
  std::error_code error;
  record.files.clear();
  std::vector<std::string> digests;
  for (const auto& entry : std::filesystem::directory_iterator(vetted, error)) {
    ASSAY_TRY(const std::string bytes, ReadFile(entry.path(), 1ull << 30));
    ASSAY_TRY(std::string digest, store.Put(bytes));
    digests.push_back(digest);
    record.files[entry.path().filename().string()] = std::move(digest);
  }
  if (error) {
    return Fail(ErrorKind::kEnvironment, "cannot be listed: " + error.message(), vetted.string());
  }
  ASSAY_TRY_VOID(store.Refer(run, digests));
  return store.PutRecord(record.key.digest(), kInstanceKind, PrettyJson(ToJson(record)));
}

std::optional<InstanceRecord> FindRecord(const Store& store, const InstanceKey& key) {
  return Read(store, key.digest());
}

std::vector<InstanceRecord> AllRecords(const Store& store) {
  std::vector<InstanceRecord> records;
  for (const std::string& key : store.Records(kInstanceKind)) {
    if (auto record = Read(store, key)) records.push_back(*std::move(record));
  }
  std::ranges::stable_sort(records, {}, &InstanceRecord::instance);
  return records;
}

Status Restore(const Store& store, const InstanceRecord& record, const Path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder, error)) return Publish(folder, record.certificate);
  const Path fresh = folder.string() + ".new";
  std::filesystem::remove_all(fresh, error);
  ASSAY_TRY_VOID(MakeFolders(fresh));
  for (const auto& [name, digest] : record.files) {
    ASSAY_TRY(const std::string bytes, store.Get(digest));
    ASSAY_TRY_VOID(WriteFileAtomically(fresh / name, bytes));
  }
  return Publish(folder, record.certificate);
}

}  // namespace assay::runs

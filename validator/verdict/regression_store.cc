#include "validator/verdict/regression_store.h"

#include <algorithm>
#include <system_error>

#include "base/digest.h"

namespace assay::verdict {
namespace {

constexpr std::uintmax_t kMaxFileBytes = 4u << 20;

// What is run, not what was found: two candidates that fail on the same case share a file.
std::string NameOf(const Counterexample& counterexample) {
  Counterexample bare;
  bare.probe = counterexample.probe;
  bare.property = counterexample.property;
  if (bare.probe) bare.probe->case_.origin.clear();
  return Sha256Hex(CompactJson(ToJson(bare))).substr(0, 24) + ".json";
}

std::vector<Path> Files(const Path& folder) {
  std::vector<Path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".json") files.push_back(it->path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

Path RegressionStore::FolderOf(const ops::Instance& instance) const {
  return folder_ / instance.Id();
}

std::vector<Counterexample> RegressionStore::Load(const ops::Instance& instance,
                                                  std::vector<Error>* problems) const {
  std::vector<Counterexample> known;
  for (const Path& file : Files(FolderOf(instance))) {
    const auto read = [&]() -> Result<Counterexample> {
      ASSAY_TRY(const std::string text, ReadFile(file, kMaxFileBytes));
      ASSAY_TRY(const Json json, ParseJson(text, file.string()));
      return CounterexampleFromJson(json, file.string());
    }();
    if (!read) {
      if (problems != nullptr) problems->push_back(read.error());
      continue;
    }
    if (read->probe && read->op == instance.op.name) known.push_back(*read);
  }
  std::ranges::stable_sort(known, [&](const Counterexample& a, const Counterexample& b) {
    return cases::ShortlexLess(instance, a.probe->case_, b.probe->case_);
  });
  if (known.size() > most_) known.resize(most_);
  return known;
}

Status RegressionStore::Add(const ops::Instance& instance, const Verdict& verdict) const {
  std::vector<const Counterexample*> kept = verdict.Counterexamples();
  std::erase_if(kept, [](const Counterexample* counterexample) {
    return !counterexample->probe || counterexample->gate == "holdout";
  });
  if (kept.empty()) return {};
  const Path folder = FolderOf(instance);
  ASSAY_TRY_VOID(MakeFolders(folder));
  std::size_t count = Files(folder).size();
  for (const Counterexample* counterexample : kept) {
    const Path file = folder / NameOf(*counterexample);
    std::error_code error;
    if (std::filesystem::exists(file, error)) continue;
    if (count >= most_) break;
    ASSAY_TRY_VOID(WriteFileAtomically(file, PrettyJson(ToJson(*counterexample))));
    ++count;
  }
  return {};
}

}  // namespace assay::verdict

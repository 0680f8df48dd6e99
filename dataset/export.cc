#include "dataset/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/digest.h"
#include "base/text.h"
#include "dataset/card.h"
#include "dataset/formats.h"
#include "dataset/pack.h"
#include "dataset/split.h"

namespace assay::dataset {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = 16ull << 30;  // of one file of an export

std::unexpected<Error> CannotWrite(const Path& path) {
  return Fail(ErrorKind::kEnvironment, "cannot be written", path.string(),
              "check free space and permissions");
}

// The files of one format, one a part, opened as rows come.
class PartFiles {
 public:
  explicit PartFiles(Path folder) : folder_(std::move(folder)) {}

  Status Write(const std::string& part, const Json& row) {
    auto found = files_.find(part);
    if (found == files_.end()) {
      ASSAY_TRY_VOID(MakeFolders(folder_));
      found = files_.try_emplace(part, folder_ / (part + ".jsonl"), std::ios::binary).first;
    }
    found->second << CompactJson(row) << '\n';
    return found->second ? Status() : CannotWrite(folder_ / part);
  }
  Status Close() {
    for (auto& [part, file] : files_) {
      file.close();
      if (!file) return CannotWrite(folder_ / part);
    }
    return {};
  }

 private:
  Path folder_;
  std::map<std::string, std::ofstream> files_;
};

std::vector<Path> FilesBelow(const Path& folder) {
  std::vector<Path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

Status Compress(const Path& folder) {
  for (const Path& file : FilesBelow(folder)) {
    if (file.extension() != ".jsonl") continue;
    ASSAY_TRY(const std::string text, ReadFile(file, kMostBytes));
    ASSAY_TRY_VOID(WriteFileAtomically(file.string() + ".zst", Pack(text)));
    std::error_code error;
    fs::remove(file, error);
  }
  return {};
}

Result<std::string> Sums(const Path& folder) {
  std::string sums;
  for (const Path& file : FilesBelow(folder)) {
    const std::string name = file.lexically_relative(folder).generic_string();
    if (name == "SHA256SUMS") continue;
    ASSAY_TRY(const std::string text, ReadFile(file, kMostBytes));
    sums += Sha256Hex(text) + "  " + name + "\n";
  }
  return sums;
}

Result<std::vector<Format>> Chosen(const std::vector<std::string>& names) {
  std::vector<Format> chosen;
  std::vector<std::string> known;
  for (const Format& format : AllFormats()) {
    known.emplace_back(format.name);
    if (names.empty() || std::ranges::find(names, format.name) != names.end())
      chosen.push_back(format);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string nearest = Nearest(name, known);
    return Fail(ErrorKind::kUsage, "there is no format '" + name + "'", "--formats",
                nearest.empty() ? "there are " + fmt::format("{}", fmt::join(known, ", "))
                                : "did you mean '" + nearest + "'?");
  }
  return chosen;
}

// Only what an export wrote may be replaced.
Status MakeRoom(const Path& out, bool replace) {
  std::error_code error;
  if (!fs::exists(out, error)) return {};
  const bool empty = fs::is_directory(out, error) && fs::is_empty(out, error);
  const bool ours = fs::is_regular_file(out / "export.json", error);
  if (empty || (ours && replace)) return {};
  return Fail(ErrorKind::kUsage, "is there already", out.string(),
              ours ? "--replace puts the new export in its place" : "name another folder");
}

Status WriteRows(Corpus& corpus, const ExportOptions& options, const Path& folder,
                 ExportReport& report) {
  ASSAY_TRY(const std::vector<Format> formats, Chosen(options.formats));
  ASSAY_TRY(RowMaker maker, RowMaker::Make(corpus, options.split));
  for (const Format& format : formats) {
    PartFiles files(folder / format.name);
    auto& counts = report.rows[std::string(format.name)];
    const Status made =
        (maker.*format.make)([&](const std::string& part, const Json& row) -> Status {
          if (part == kWithheld) {
            ++report.left_out;
            return {};
          }
          ++counts[part];
          return files.Write(part, row);
        });
    if (!made) return made;
    ASSAY_TRY_VOID(files.Close());
  }
  return {};
}

Result<CardFacts> FactsOf(Corpus& corpus, const ExportOptions& options,
                          const ExportReport& report) {
  CardFacts facts{.options = options, .report = report};
  ASSAY_TRY(facts.recipe, RecipeOf(corpus, options.split));
  ASSAY_TRY(const auto attempts, corpus.Attempts());
  ASSAY_TRY(const auto parts, PartsOf(corpus, options.split));
  for (const AttemptRow& attempt : attempts) {
    if (!attempt.first || parts.at(attempt.id) == kWithheld) continue;
    ++facts.licences[attempt.licence];
    ++facts.models[attempt.model];
    ++facts.ops[attempt.target.op];
  }
  return facts;
}

Status WriteAll(Corpus& corpus, const ExportOptions& options, const Path& folder,
                ExportReport& report) {
  ASSAY_TRY_VOID(MakeFolders(folder));
  ASSAY_TRY_VOID(WriteRows(corpus, options, folder, report));
  if (options.kind == FileKind::kJsonlZst) ASSAY_TRY_VOID(Compress(folder));
  if (options.kind == FileKind::kParquet) {
    ASSAY_CHECK(options.to_parquet != nullptr, "who writes Parquet");
    ASSAY_TRY_VOID(options.to_parquet(folder));
  }
  ASSAY_TRY(const CardFacts facts, FactsOf(corpus, options, report));
  ASSAY_TRY(const std::string fingerprint, corpus.Fingerprint());
  const Json manifest = {
      {"schema", "assay.corpus.export/1"},  {"corpus", fingerprint}, {"split", facts.recipe},
      {"files", ExtensionOf(options.kind)}, {"rows", report.rows},   {"left_out", report.left_out},
      {"licences", facts.licences}};
  ASSAY_TRY_VOID(WriteFileAtomically(folder / "export.json", PrettyJson(manifest)));
  ASSAY_TRY_VOID(WriteFileAtomically(folder / "README.md", CardOf(facts)));
  ASSAY_TRY(const std::string sums, Sums(folder));
  return WriteFileAtomically(folder / "SHA256SUMS", sums);
}

// Every value of key `counterexample_digest`, wherever it stands.
void Gather(const Json& json, std::set<std::string>& digests) {
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object() && key == "counterexample_digest" && value.is_string()) {
      if (value != "") digests.insert(value.get<std::string>());
    } else {
      Gather(value, digests);
    }
  }
}

}  // namespace

Json ToJson(const ExportReport& report) {
  return {
      {"schema", "assay.corpus.exported/1"}, {"rows", report.rows}, {"left_out", report.left_out}};
}

Result<ExportReport> Export(Corpus& corpus, const ExportOptions& options, const Path& out) {
  ASSAY_TRY_VOID(CheckSplit(corpus, options.split));
  ASSAY_TRY(const auto attempts, corpus.db().Number("SELECT count(*) FROM attempt"));
  if (attempts == 0) {
    return Fail(ErrorKind::kUsage, "the corpus is empty", corpus.db().file().string(),
                "assay corpus ingest fills it");
  }
  const Path target = fs::absolute(out).lexically_normal();
  const Path place = target.filename().empty() ? target.parent_path() : target;
  ASSAY_TRY_VOID(MakeRoom(place, options.replace));
  const Path temporary = place.string() + ".part";
  std::error_code error;
  fs::remove_all(temporary, error);
  ExportReport report;
  const Status written = WriteAll(corpus, options, temporary, report);
  if (!written) {
    fs::remove_all(temporary, error);
    return std::unexpected(written.error());
  }
  const Path old = place.string() + ".old";
  fs::remove_all(old, error);
  if (fs::exists(place, error)) fs::rename(place, old, error);
  fs::rename(temporary, place, error);
  if (error) return CannotWrite(place);
  fs::remove_all(old, error);
  return report;
}

Result<std::vector<std::string>> CounterexamplesOf(const Path& exported) {
  ASSAY_TRY(const std::string sums, ReadFile(exported / "SHA256SUMS"));
  std::set<std::string> digests;
  for (const std::string_view line : SplitLines(sums)) {
    const std::size_t gap = line.find("  ");
    if (gap == std::string_view::npos) continue;
    const Path name = line.substr(gap + 2);
    // An export may come from anywhere: it names its own files and no others.
    if (name.is_absolute() || std::ranges::find(name, "..") != name.end()) continue;
    const Path file = exported / name;
    ASSAY_TRY(std::string text, ReadFile(file, kMostBytes));
    if (Sha256Hex(text) != line.substr(0, gap)) {
      return Fail(ErrorKind::kMalformedInput, "is not what SHA256SUMS says", file.string(),
                  "export again");
    }
    if (file.extension() == ".zst") {
      ASSAY_TRY(text, Unpack(text, kMostBytes));
    } else if (file.extension() == ".parquet") {
      return Fail(ErrorKind::kUnsupported, "Parquet is not read here", file.string(),
                  "replay the corpus itself, or an export as JSON lines");
    } else if (file.extension() != ".jsonl") {
      continue;
    }
    for (const std::string_view row : SplitLines(text)) {
      ASSAY_TRY(const Json json, ParseJson(row, file.string()));
      Gather(json, digests);
    }
  }
  return std::vector<std::string>(digests.begin(), digests.end());
}

}  // namespace assay::dataset

// assay corpus: the database of judged attempts, and what trainers load of it.
#include <fmt/format.h>

#include "base/command.h"
#include "base/environment.h"
#include "cli/command.h"
#include "cli/corpus_replay.h"
#include "dataset/export.h"
#include "dataset/formats.h"
#include "dataset/read_run.h"
#include "dataset/split.h"
#include "dataset/stats.h"

namespace assay::cli {
namespace {

using dataset::Corpus;
using Access = dataset::Database::Access;

struct IngestRequest {
  std::string corpus;
  std::vector<std::string> sources;
  dataset::Origin origin;
};

Result<int> Ingest(const IngestRequest& request, bool json) {
  ASSAY_TRY(Corpus corpus, Corpus::Open(request.corpus, Access::kWrite));
  dataset::Added added;
  std::vector<Error> unreadable;
  for (const std::string& source : request.sources) {
    ASSAY_TRY(const dataset::IngestReport report,
              dataset::IngestFrom(corpus, source, request.origin));
    added += report.added;
    unreadable.insert(unreadable.end(), report.unreadable.begin(), report.unreadable.end());
  }
  for (const Error& error : unreadable) Say("left out: " + ToString(error));
  Say(
      fmt::format("{}: {} new runs with {} new attempts ({} of them duplicates); {} attempts were "
                  "there already",
                  request.corpus, added.runs, added.attempts, added.duplicates, added.known));
  if (json) {
    Json left_out = Json::array();
    for (const Error& error : unreadable) left_out.push_back(ToString(error));
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.corpus.ingested/1"},
                              {"runs", added.runs},
                              {"attempts", added.attempts},
                              {"duplicates", added.duplicates},
                              {"known", added.known},
                              {"left_out", std::move(left_out)}}));
  }
  return unreadable.empty() ? kExitDone : kExitInconclusive;
}

Result<int> Stats(const std::string& file, bool json) {
  ASSAY_TRY(Corpus corpus, Corpus::Open(file, Access::kRead));
  ASSAY_TRY(const auto attempts, corpus.Attempts());
  ASSAY_TRY(const auto findings, corpus.Findings());
  const dataset::Stats stats = dataset::StatsOf(attempts, findings);
  Say(dataset::Render(stats));
  if (json) ASSAY_TRY_VOID(PrintJson(dataset::ToJson(stats)));
  return kExitDone;
}

struct SplitRequest {
  std::string corpus;
  dataset::SplitRecipe recipe;
  std::vector<std::string> hold_out;
  std::string tags;
  bool check = false;
};

Result<std::map<std::string, std::set<std::string>>> ReadTags(const std::string& file) {
  std::map<std::string, std::set<std::string>> tags;
  if (file.empty()) return tags;
  ASSAY_TRY(const Json json, ReadJsonFile(file));
  if (!json.is_object()) {
    return Fail(ErrorKind::kMalformedInput, "must be an object", file,
                "write {\"op\": [\"tag\", ...], ...}");
  }
  for (const auto& [op, words] : json.items()) {
    ASSAY_TRY(const auto list,
              json_detail::Convert<std::vector<std::string>>(words, file + ": /" + op));
    tags[op].insert(list.begin(), list.end());
  }
  return tags;
}

Result<int> Split(SplitRequest request, bool json) {
  ASSAY_TRY(Corpus corpus, Corpus::Open(request.corpus, Access::kWrite));
  dataset::SplitReport report;
  if (!request.check) {
    request.recipe.hold_out = {request.hold_out.begin(), request.hold_out.end()};
    ASSAY_TRY(request.recipe.tags, ReadTags(request.tags));
    ASSAY_TRY(report, dataset::MakeSplit(corpus, request.recipe));
  }
  ASSAY_TRY_VOID(dataset::CheckSplit(corpus, request.recipe.name));
  for (const auto& [part, attempts] : report.attempts) {
    std::string families;
    for (const std::string& family : report.families[part]) families += " " + family;
    Say(fmt::format("{}: {} attempts;{}", part, attempts,
                    part == dataset::kWithheld ? " near-duplicates of another part" : families));
  }
  Say("checked: no family of ops is in two parts, and no near-duplicate is");
  if (json) {
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.corpus.split/1"},
                              {"name", request.recipe.name},
                              {"attempts", report.attempts},
                              {"families", report.families},
                              {"leaks", false}}));
  }
  return kExitDone;
}

Result<Path> FindScript(const std::string& name) {
  Path script = OwnEnvironment().scripts / name;
  std::error_code error;
  if (std::filesystem::is_regular_file(script, error)) return script;
  return Fail(ErrorKind::kEnvironment, "the script " + name + " is missing", script.string(),
              "restore scripts/ from the sources");
}

Status ToParquet(const Path& folder) {
  ASSAY_TRY(const Path script, FindScript("jsonl_to_parquet.py"));
  const auto ran = RunCommand({"python3", script.string(), folder.string()}, {.attached = true});
  if (ran && ran->Succeeded()) return {};
  return Fail(
      ErrorKind::kEnvironment, "Parquet could not be written", script.string(),
      "it needs python3 with pyarrow (python3 -m pip install pyarrow); --as jsonl.zst needs "
      "neither");
}

struct ExportRequest {
  std::string corpus;
  std::string out;
  std::string as = "jsonl";
  dataset::ExportOptions options;
};

Result<int> Export(ExportRequest request, bool json) {
  ASSAY_TRY(Corpus corpus, Corpus::Open(request.corpus, Access::kRead));
  for (const auto kind :
       {dataset::FileKind::kJsonl, dataset::FileKind::kJsonlZst, dataset::FileKind::kParquet}) {
    if (request.as == (kind == dataset::FileKind::kJsonl      ? "jsonl"
                       : kind == dataset::FileKind::kJsonlZst ? "jsonl.zst"
                                                              : "parquet")) {
      request.options.kind = kind;
    }
  }
  request.options.to_parquet = ToParquet;
  ASSAY_TRY(const dataset::ExportReport report,
            dataset::Export(corpus, request.options, request.out));
  for (const auto& [format, parts] : report.rows) {
    std::string counts;
    for (const auto& [part, rows] : parts) counts += fmt::format("  {} {}", rows, part);
    Say(format + ":" + (counts.empty() ? "  no rows" : counts));
  }
  Say(fmt::format("{} rows of withheld attempts were left out; written to {}", report.left_out,
                  request.out));
  if (json) ASSAY_TRY_VOID(PrintJson(dataset::ToJson(report)));
  return kExitDone;
}

CLI::Option* AddCorpusOption(CLI::App& command, std::string& corpus) {
  corpus = "corpus.sqlite";
  return command.add_option("--corpus", corpus, "The database.");
}

void AddIngest(CLI::App& corpus, Session& session) {
  CLI::App* command = corpus.add_subcommand("ingest", "Take attempts into the corpus.");
  auto request = std::make_shared<IngestRequest>();
  command
      ->add_option("sources", request->sources,
                   "Run folders, folders that hold such (a batch, runs/), judgements of assay "
                   "reward, other corpora.")
      ->required();
  AddCorpusOption(*command, request->corpus);
  command->add_option("--licence", request->origin.licence,
                      "SPDX expression of what these attempts may be used under.");
  command->add_option("--provenance", request->origin.provenance,
                      "Where they come from, in words. Default: the folder's name.");
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "What is there already is not taken twice; a killed ingest is completed by the next one.\n"
      "Example:\n  assay corpus ingest runs/ --licence CC-BY-4.0\n"
      "Exit codes: 0 all taken, 2 some runs could not be read, 3 bad input.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Ingest(*request, session.json); };
  });
}

void AddStats(CLI::App& corpus, Session& session) {
  CLI::App* command =
      corpus.add_subcommand("stats", "Attempts by model, op and finding; what feedback cured.");
  auto file = std::make_shared<std::string>();
  AddCorpusOption(*command, *file);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer("Example:\n  assay corpus stats --corpus corpus.sqlite");
  command->callback(
      [&session, file] { session.run = [&session, file] { return Stats(*file, session.json); }; });
}

void AddSplit(CLI::App& corpus, Session& session) {
  CLI::App* command = corpus.add_subcommand(
      "split", "Divide into train, validation and test by families of ops, and check it.");
  auto request = std::make_shared<SplitRequest>();
  AddCorpusOption(*command, request->corpus);
  dataset::SplitRecipe& recipe = request->recipe;
  command->add_option("--name", recipe.name, "A corpus may have several splits.");
  command->add_option("--seed", recipe.seed, "Chooses the families.")->check(WholeNumber());
  command->add_option("--test", recipe.test, "Share of the families that test.")
      ->check(NumberFrom(0, 1));
  command->add_option("--validation", recipe.validation, "Share of the families that validate.")
      ->check(NumberFrom(0, 1));
  command->add_option("--hold-out", request->hold_out,
                      "An op whose family tests, whatever the seed. May be given again.");
  command->add_option("--tags", request->tags,
                      "JSON file {\"op\": [\"tag\"]}: ops that share a tag are one family.");
  command->add_flag("--anew", recipe.anew, "Forget what an earlier split of the name held out.");
  command->add_flag("--check", request->check, "Make none; check the one that is there.");
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer("Example:\n  assay corpus split --seed 1 --hold-out softmax --hold-out gemm");
  command->callback([&session, request] {
    session.run = [&session, request] { return Split(*request, session.json); };
  });
}

void AddExport(CLI::App& corpus, Session& session) {
  CLI::App* command =
      corpus.add_subcommand("export", "Write what trainers load, with card and checksums.");
  auto request = std::make_shared<ExportRequest>();
  command->add_option("out", request->out, "Folder to write.")->required();
  AddCorpusOption(*command, request->corpus);
  std::vector<std::string> known;
  for (const dataset::Format& format : dataset::AllFormats()) known.emplace_back(format.name);
  command
      ->add_option("--formats", request->options.formats,
                   "sft, repair, preference, rl, process; a comma between. Default: all.")
      ->delimiter(',')
      ->check(CLI::IsMember(known));
  command->add_option("--as", request->as, "jsonl, jsonl.zst or parquet (needs pyarrow).")
      ->check(CLI::IsMember({"jsonl", "jsonl.zst", "parquet"}));
  command->add_option("--split", request->options.split, "Name of the split.");
  command->add_option("--name", request->options.name, "Title of the dataset card.");
  command->add_flag("--replace", request->options.replace, "An earlier export in the place goes.");
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Examples:\n"
      "  assay corpus export out/ --formats sft,preference\n"
      "  python3 -c 'import datasets; print(datasets.load_dataset(\"out\", \"sft\"))'");
  command->callback([&session, request] {
    session.run = [&session, request] { return Export(*request, session.json); };
  });
}

}  // namespace

void AddCorpus(CLI::App& app, Session& session) {
  CLI::App* corpus =
      app.add_subcommand("corpus", "Judged attempts as a database, and as data to train on.");
  corpus->require_subcommand(1);
  AddIngest(*corpus, session);
  AddStats(*corpus, session);
  AddSplit(*corpus, session);
  AddExport(*corpus, session);
  AddCorpusReplay(*corpus, session);
}

}  // namespace assay::cli

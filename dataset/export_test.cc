#include "dataset/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.h"
#include "dataset/formats.h"
#include "dataset/pack.h"
#include "dataset/split.h"
#include "dataset/testing/synthetic.h"
#include "runs/extract.h"
#include "runs/testing/fakes.h"
#include "runs/testing/schema.h"

namespace assay::dataset {
namespace {

using testing::FilesBelow;
using ::testing::HasSubstr;
using testing::Slurp;
using testing::TemporaryFolder;

Corpus Filled(const Path& file, std::size_t attempts = 300) {
  auto corpus = Corpus::Open(file, Database::Access::kWrite);
  ASSAY_CHECK(corpus.has_value());
  for (const RunRecord& run : testing::SyntheticRuns(5, attempts))
    ASSAY_CHECK(corpus->Ingest(run).has_value());
  ASSAY_CHECK(MakeSplit(*corpus, {.test = 0.2, .validation = 0.2}).has_value());
  return *std::move(corpus);
}

// Rows of a format by part.
std::map<std::string, std::vector<Json>> RowsOf(const Path& folder, const std::string& format) {
  std::map<std::string, std::vector<Json>> rows;
  for (const std::string part : {"train", "validation", "test"}) {
    const auto text = ReadFile(folder / format / (part + ".jsonl"));
    if (!text) continue;
    for (const std::string_view line : SplitLines(*text))
      rows[part].push_back(*ParseJson(line, part));
  }
  return rows;
}

TEST(Export, EachFormatIsWhatItsSchemaSays) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  const Path out = folder.path() / "out";
  const auto report = Export(corpus, {}, out);
  ASSERT_TRUE(report) << ToString(report.error());
  for (const Format& format : AllFormats()) {
    const Json schema =
        testing::ReadSchema("dataset/schemas/" + std::string(format.name) + ".schema.json");
    std::size_t rows = 0;
    for (const auto& [part, list] : RowsOf(out, std::string(format.name))) {
      EXPECT_EQ(list.size(), report->rows.at(std::string(format.name)).at(part));
      for (const Json& row : list) {
        EXPECT_EQ(testing::Violation(schema, row, std::string(format.name)), "");
        ++rows;
      }
    }
    EXPECT_GT(rows, 5u) << format.name;
    // The check itself fires.
    Json broken = RowsOf(out, std::string(format.name)).begin()->second.front();
    broken["about"]["surprise"] = 1;
    EXPECT_NE(testing::Violation(schema, broken, "row"), "");
  }
  EXPECT_EQ(testing::Violation(testing::ReadSchema("dataset/schemas/export.schema.json"),
                               *ReadJsonFile((out / "export.json").string()), "export.json"),
            "");
}

// What trl.data_utils asks of conversational preference data: lists of messages, the prompt ending
// with the user, the answers being the assistant's. And stepwise data: as many labels as steps.
TEST(Export, RowsAreWhatTrainersAskFor) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  const Path out = folder.path() / "out";
  ASSERT_TRUE(Export(corpus, {}, out));
  for (const auto& [part, rows] : RowsOf(out, "preference")) {
    for (const Json& row : rows) {
      EXPECT_EQ(row["prompt"].back()["role"], "user");
      EXPECT_EQ(row["chosen"].size(), 1u);
      EXPECT_EQ(row["chosen"][0]["role"], "assistant");
      EXPECT_EQ(row["rejected"][0]["role"], "assistant");
      EXPECT_NE(row["chosen"], row["rejected"]);
    }
  }
  for (const auto& [part, rows] : RowsOf(out, "sft")) {
    for (const Json& row : rows) {
      EXPECT_EQ(row["messages"].back()["role"], "assistant");
      EXPECT_TRUE(runs::ExtractCandidate({.text = row["messages"].back()["content"]}));
    }
  }
  bool shadow = false;
  bool race = false;
  for (const auto& [part, rows] : RowsOf(out, "process")) {
    for (const Json& row : rows) {
      ASSERT_EQ(row["completions"].size(), row["labels"].size());
      ASSERT_FALSE(row["guilty"].empty());
      for (const Json& line : row["guilty"]) {
        EXPECT_EQ(row["labels"][line["line"].get<std::size_t>() - 1], false);
        shadow = shadow || line["how"] == "shadow_values";
        race = race || line["how"] == "race_site";
      }
    }
  }
  EXPECT_TRUE(shadow && race);
  for (const auto& [part, rows] : RowsOf(out, "repair")) {
    for (const Json& row : rows) {
      const auto parsed = ParseJson(row["counterexample"].get<std::string>(), "counterexample");
      ASSERT_TRUE(parsed);
      const auto counterexample = verdict::CounterexampleFromJson(*parsed, "counterexample");
      ASSERT_TRUE(counterexample);
      EXPECT_EQ(counterexample->kernel, row["failing_kernel"].get<std::string>());
      EXPECT_NE(row["failing_kernel"], row["fixed_kernel"]);
    }
  }
  for (const auto& [part, rows] : RowsOf(out, "rl")) {
    for (const Json& row : rows) {
      if (row["about"]["outcome"] == "accepted")
        EXPECT_EQ(row["reward"], 1.0);
      else
        EXPECT_LT(row["reward"], 1.0);
    }
  }
}

TEST(Export, IsAFunctionOfTheCorpusAndKeepsThePartsApart) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  const Path one = folder.path() / "one";
  const Path two = folder.path() / "two/";
  ASSERT_TRUE(Export(corpus, {}, one));
  ASSERT_TRUE(Export(corpus, {}, two));
  ASSERT_EQ(FilesBelow(one), FilesBelow(two));
  for (const std::string& file : FilesBelow(one))
    EXPECT_EQ(Slurp(one / file), Slurp(two / file)) << file;
  std::map<std::string, std::set<std::string>> ops;
  for (const Format& format : AllFormats()) {
    for (const auto& [part, rows] : RowsOf(one, std::string(format.name))) {
      for (const Json& row : rows) ops[part].insert(row["about"]["op"].get<std::string>());
    }
  }
  for (const std::string& op : ops["train"]) {
    EXPECT_FALSE(ops["test"].contains(op)) << op;
    EXPECT_FALSE(ops["validation"].contains(op)) << op;
  }
  const std::string card = Slurp(one / "README.md");
  EXPECT_TRUE(card.starts_with("---\n"));
  EXPECT_THAT(card, HasSubstr("- config_name: sft\n  data_files:\n"));
  EXPECT_THAT(card, HasSubstr("license: \"cc-by-4.0\""));
}

TEST(Export, CompressedFilesHoldTheSame) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite", 100);
  const Path plain = folder.path() / "plain";
  const Path packed = folder.path() / "packed";
  ASSERT_TRUE(Export(corpus, {}, plain));
  ASSERT_TRUE(Export(corpus, {.kind = FileKind::kJsonlZst}, packed));
  EXPECT_EQ(*Unpack(Slurp(packed / "rl/train.jsonl.zst")), Slurp(plain / "rl/train.jsonl"));
  EXPECT_EQ(*CounterexamplesOf(plain), *CounterexamplesOf(packed));
  EXPECT_GT(CounterexamplesOf(plain)->size(), 10u);
  // What was changed afterwards is no export.
  ASSERT_TRUE(WriteFileAtomically(plain / "rl/train.jsonl", "{}\n"));
  EXPECT_FALSE(CounterexamplesOf(plain));
}

TEST(Export, ReplacesOnlyExportsAndLeavesNothingBehindWhenItFails) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite", 60);
  const Path out = folder.path() / "out";
  ASSERT_TRUE(Export(corpus, {}, out));
  EXPECT_FALSE(Export(corpus, {}, out));
  EXPECT_TRUE(Export(corpus, {.formats = {"sft"}, .replace = true}, out));
  EXPECT_FALSE(std::filesystem::exists(out / "rl"));
  const Path home = folder.path() / "home";
  ASSERT_TRUE(MakeFolders(home / "precious"));
  EXPECT_FALSE(Export(corpus, {.replace = true}, home));
  EXPECT_TRUE(std::filesystem::exists(home / "precious"));
  const auto failed = Export(corpus,
                             {.kind = FileKind::kParquet,
                              .to_parquet = [](const Path&) -> Status {
                                return Fail(ErrorKind::kEnvironment, "no pyarrow");
                              }},
                             folder.path() / "parquet");
  EXPECT_FALSE(failed);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "parquet"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "parquet.part"));
  EXPECT_FALSE(Export(corpus, {.formats = {"stf"}}, folder.path() / "x"));
}

TEST(Export, ASplitThatLeaksIsRefused) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  ASSERT_TRUE(corpus.db().Run("UPDATE split_part SET part = 'train' WHERE part = 'withheld'"));
  EXPECT_FALSE(Export(corpus, {}, folder.path() / "out"));
}

TEST(Answer, IsReadBackWhateverItHolds) {
  const std::string kernel = "// ```\n/* ````cuda */ extern \"C\" __global__ void k() {}\n";
  const auto candidate = runs::ExtractCandidate({.text = AnswerOf(kernel, "{\"a\": 1}", "cuda")});
  ASSERT_TRUE(candidate) << candidate.error().message;
  EXPECT_EQ(candidate->kernel, kernel);
  EXPECT_EQ(candidate->launch, "{\"a\": 1}\n");
}

// With the trainers' own libraries, where they are installed.
int Python(const std::string& arguments, const std::string& output = "/dev/null") {
  const int status = std::system(("python3 " + arguments + " >" + output + " 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Export, DatasetsLoadsEveryConfiguration) {
  if (Python("-c 'import datasets'") != 0) GTEST_SKIP() << "python3 has no datasets";
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  for (const auto kind : {FileKind::kJsonl, FileKind::kJsonlZst, FileKind::kParquet}) {
    // What datasets reads zstd with is no part of it.
    if (kind == FileKind::kJsonlZst && Python("-c 'import zstandard'") != 0) continue;
    const Path out = folder.path() / ("out" + std::to_string(static_cast<int>(kind)));
    const auto to_parquet = [](const Path& place) -> Status {
      if (Python(ASSAY_SOURCE_DIR "/scripts/jsonl_to_parquet.py " + place.string()) == 0) return {};
      return Fail(ErrorKind::kEnvironment, "pyarrow");
    };
    const auto report = Export(corpus, {.kind = kind, .to_parquet = to_parquet}, out);
    ASSERT_TRUE(report) << ToString(report.error());
    const Path script = folder.path() / "load.py";
    std::string text = "import datasets, json\n";
    for (const auto& [format, parts] : report->rows) {
      text += "d = datasets.load_dataset('" + out.string() + "', '" + format + "', cache_dir='" +
              (folder.path() / "cache").string() + "')\n";
      for (const auto& [part, rows] : parts)
        text += "assert d['" + part + "'].num_rows == " + std::to_string(rows) + "\n";
    }
    ASSERT_TRUE(WriteFileAtomically(script, text));
    const Path output = folder.path() / "load.txt";
    EXPECT_EQ(Python(script.string(), output.string()), 0) << text << *ReadFile(output);
  }
}

TEST(Export, TrlKnowsTheFormats) {
  if (Python("-c 'import trl'") != 0) GTEST_SKIP() << "python3 has no trl";
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  const Path out = folder.path() / "out";
  ASSERT_TRUE(Export(corpus, {}, out));
  const Path script = folder.path() / "check.py";
  ASSERT_TRUE(WriteFileAtomically(
      script,
      "import json, trl\n"
      "for f in ('sft', 'preference', 'rl'):\n"
      "  for line in open('" +
          out.string() +
          "/' + f + '/train.jsonl'):\n"
          "    row = json.loads(line); row.pop('about'); row.pop('completion', None)\n"
          "    assert trl.is_conversational(row), f\n"));
  EXPECT_EQ(Python(script.string()), 0);
}

}  // namespace
}  // namespace assay::dataset

// What the corpus costs: ingest, stats, split and export of synthetic attempts, as one JSON document.
//
//   corpus_bench [ATTEMPTS]        default 10000
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "dataset/export.h"
#include "dataset/split.h"
#include "dataset/stats.h"
#include "dataset/testing/synthetic.h"
#include "runs/testing/fakes.h"

namespace assay::dataset {
namespace {

template <class Work>
double Seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int Main(std::size_t attempts) {
  testing::TemporaryFolder folder;
  const Path file = folder.path() / "corpus.sqlite";
  const auto runs = testing::SyntheticRuns(1, attempts);
  auto corpus = Corpus::Open(file, Database::Access::kWrite);
  ASSAY_CHECK(corpus.has_value());
  Added added;
  Json report;
  report["attempts"] = attempts;
  report["ingest_seconds"] = Seconds([&] {
    for (const RunRecord& run : runs) {
      const auto each = corpus->Ingest(run);
      ASSAY_CHECK(each.has_value(), each ? "" : ToString(each.error()));
      added += *each;
    }
  });
  report["runs"] = added.runs;
  report["ingested"] = added.attempts;
  report["duplicates"] = added.duplicates;
  report["again_seconds"] = Seconds([&] {
    for (const RunRecord& run : runs) ASSAY_CHECK(corpus->Ingest(run).has_value());
  });
  report["stats_seconds"] = Seconds([&] { StatsOf(*corpus->Attempts(), *corpus->Findings()); });
  report["split_seconds"] = Seconds([&] { ASSAY_CHECK(MakeSplit(*corpus, {}).has_value()); });
  report["check_split_seconds"] =
      Seconds([&] { ASSAY_CHECK(CheckSplit(*corpus, "default").has_value()); });
  report["export_seconds"] =
      Seconds([&] { ASSAY_CHECK(Export(*corpus, {}, folder.path() / "out").has_value()); });
  report["check_seconds"] = Seconds([&] { ASSAY_CHECK(corpus->Check().has_value()); });
  ASSAY_CHECK(corpus->db().Script("PRAGMA wal_checkpoint(TRUNCATE)").has_value());
  report["corpus_bytes"] = std::filesystem::file_size(file);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  report["peak_mib"] = usage.ru_maxrss / 1024;
  std::cout << PrettyJson(report);
  return 0;
}

}  // namespace
}  // namespace assay::dataset

int main(int argc, char** argv) {
  return assay::dataset::Main(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10000);
}

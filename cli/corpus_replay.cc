#include "cli/corpus_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rng.h"
#include "cli/instance.h"
#include "cli/workbench.h"
#include "dataset/export.h"
#include "runs/extract.h"

namespace assay::cli {
namespace {

using dataset::Corpus;

struct Request {
  std::string corpus = "corpus.sqlite";
  std::string exported;
  std::uint64_t sample = 0;
  std::uint64_t seed = 1;
  WorkbenchOptions tools;
};

/// What became of one failure.
enum class Fate : std::uint8_t { kSame, kOther, kPasses, kOpChanged, kUnknown };
constexpr std::array<std::string_view, 5> kFates = {"same", "other_finding", "passes", "op_changed",
                                                    "unknown"};

struct Replayed {
  std::string digest;
  Fate fate{};
  std::string note;
};

Result<std::vector<std::string>> Digests(Corpus& corpus, const Request& request) {
  std::vector<std::string> digests;
  if (!request.exported.empty()) {
    ASSAY_TRY(digests, dataset::CounterexamplesOf(request.exported));
  } else {
    ASSAY_TRY_VOID(corpus.db().Each("SELECT digest FROM counterexample ORDER BY digest", {},
                                    [&](const dataset::Row& row) -> Status {
                                      digests.push_back(row.Text(0));
                                      return {};
                                    }));
  }
  if (request.sample == 0 || request.sample >= digests.size()) return digests;
  std::ranges::sort(digests, {},
                    [&](const std::string& digest) { return DeriveSeed(request.seed, digest); });
  digests.resize(request.sample);
  return digests;
}

Replayed Compare(const std::string& digest, const verdict::Counterexample& recorded,
                 const std::vector<Finding>& findings) {
  if (findings.empty()) return {digest, Fate::kPasses, "the case passes now"};
  const bool same =
      recorded.findings.empty() || SameDefect(recorded.findings.front(), findings.front());
  return {digest, same ? Fate::kSame : Fate::kOther, same ? "" : findings.front().message};
}

// A reply without a candidate has no kernel to run: it is read again.
Result<Replayed> ReplayReply(Corpus& corpus, const std::string& digest,
                             const verdict::Counterexample& recorded) {
  ASSAY_TRY(const auto reply,
            corpus.db().Text("SELECT a.reply FROM attempt a JOIN finding f ON f.attempt = a.id "
                             "WHERE f.counterexample = ?",
                             {digest}));
  ASSAY_TRY(const std::string text, corpus.Text(reply.value_or("")));
  const auto candidate = runs::ExtractCandidate({.text = text});
  return Compare(digest, recorded,
                 candidate ? std::vector<Finding>() : std::vector<Finding>{candidate.error()});
}

Result<Replayed> ReplayOne(Corpus& corpus, const std::string& digest, Workbench& bench) {
  ASSAY_TRY(const std::string text, corpus.Text(digest));
  ASSAY_TRY(const Json document, ParseJson(text, "counterexample " + digest));
  ASSAY_TRY(const verdict::Counterexample recorded,
            verdict::CounterexampleFromJson(document, "counterexample " + digest));
  if (recorded.kernel.empty()) return ReplayReply(corpus, digest, recorded);
  // A corpus may come from anywhere: ops are looked up by name, never by path.
  if (recorded.op.find('/') != std::string::npos)
    return Replayed{digest, Fate::kUnknown, "the op is no name"};
  InstanceOptions options{.op = recorded.op, .dtypes = {}};
  for (const auto& [variable, dtype] : recorded.binding)
    options.dtypes.push_back(variable + "=" + dtype);
  const Result<ops::Instance> instance = MakeInstance(options, recorded.arch);
  if (!instance) return Replayed{digest, Fate::kUnknown, ToString(instance.error())};
  if (instance->op.digest != recorded.op_digest)
    return Replayed{digest, Fate::kOpChanged, recorded.op};
  gates::Gatekeeper gatekeeper(bench.MakeTools(), {});
  const auto replayed = gatekeeper.Replay(*instance, recorded);
  if (!replayed) return Replayed{digest, Fate::kUnknown, ToString(replayed.error())};
  return Compare(digest, recorded, replayed->findings);
}

Result<int> Replay(const Request& request, bool json) {
  ASSAY_TRY(Corpus corpus, Corpus::Open(request.corpus, dataset::Database::Access::kRead));
  ASSAY_TRY(const std::vector<std::string> digests, Digests(corpus, request));
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  std::map<Fate, std::uint64_t> counts;
  Json failures = Json::array();
  for (const std::string& digest : digests) {
    ASSAY_TRY(const Replayed replayed, ReplayOne(corpus, digest, *bench));
    ++counts[replayed.fate];
    if (replayed.fate == Fate::kSame) continue;
    const std::string_view fate = kFates[static_cast<std::size_t>(replayed.fate)];
    Say(fmt::format("{}: {}: {}", digest.substr(0, 12), fate, replayed.note));
    failures.push_back({{"counterexample", digest}, {"fate", fate}, {"note", replayed.note}});
  }
  Say(
      fmt::format("{} failures replayed: {} fail again with the same finding, {} with another, {} "
                  "pass now; {} ops have changed since, {} could not be run",
                  digests.size(), counts[Fate::kSame], counts[Fate::kOther], counts[Fate::kPasses],
                  counts[Fate::kOpChanged], counts[Fate::kUnknown]));
  if (json) {
    Json totals = Json::object();
    for (std::size_t i = 0; i < kFates.size(); ++i)
      totals[std::string(kFates[i])] = counts[static_cast<Fate>(i)];
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.corpus.replayed/1"},
                              {"replayed", digests.size()},
                              {"fates", std::move(totals)},
                              {"not_the_same", std::move(failures)}}));
  }
  if (counts[Fate::kOther] + counts[Fate::kPasses] > 0) return kExitRefuted;
  return counts[Fate::kOpChanged] + counts[Fate::kUnknown] > 0 ? kExitInconclusive : kExitDone;
}

}  // namespace

void AddCorpusReplay(CLI::App& corpus, Session& session) {
  CLI::App* command =
      corpus.add_subcommand("replay", "Run failures again: do they fail with the same finding?");
  auto request = std::make_shared<Request>();
  command->add_option("export", request->exported,
                      "An export of the corpus: the failures that its rows name. Default: all.");
  command->add_option("--corpus", request->corpus, "The database.");
  command->add_option("--sample", request->sample, "Of that many, chosen by the seed (0: all).")
      ->check(WholeNumber());
  command->add_option("--seed", request->seed, "Of the sample.")->check(WholeNumber());
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Example:\n  assay corpus replay out/ --sample 50\n"
      "Exit codes: 0 all fail again with the same finding, 1 some do not, 2 some could not be "
      "run.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Replay(*request, session.json); };
  });
}

}  // namespace assay::cli

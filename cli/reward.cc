// assay reward: candidates in, rewards out, one JSON line each.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/instance.h"
#include "cli/workbench.h"
#include "rewards/rewarder.h"

namespace assay::cli {
namespace {

struct Request {
  std::string input = "-";
  std::string out;
  std::string cache;
  std::string effort = "standard";
  std::uint64_t seed = 1;
  WorkbenchOptions tools;
};

// What an earlier process wrote: keys by line. A torn last line goes.
Result<std::vector<std::string>> EarlierKeys(const Path& out) {
  std::vector<std::string> keys;
  std::error_code error;
  if (!std::filesystem::exists(out, error)) return keys;
  ASSAY_TRY(const std::string text, ReadFile(out, 64ull << 30));
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  for (const std::string_view line : SplitLines(std::string_view(text).substr(0, whole))) {
    const std::string place = out.string() + ":" + std::to_string(keys.size() + 1);
    ASSAY_TRY(const Json json, ParseJson(line, place));
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
    ASSAY_TRY(std::string key, reader.Required<std::string>("key"));
    keys.push_back(std::move(key));
  }
  std::filesystem::resize_file(out, whole, error);
  if (error) return Fail(ErrorKind::kEnvironment, "cannot cut off a torn line", out.string());
  return keys;
}

struct Totals {
  std::uint64_t lines = 0;
  std::uint64_t invalid = 0;
  std::uint64_t undecided = 0;
  std::uint64_t resumed = 0;
};

Status WriteLine(int fd, const std::string& text, const std::string& place) {
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return Fail(ErrorKind::kEnvironment, "cannot write a reward", place,
                  "check free space, and that the reader still reads");
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<Totals> RewardAll(std::istream& input, const Request& request, rewards::Rewarder& rewarder) {
  Totals totals;
  std::vector<std::string> earlier;
  UniqueFd file;
  int fd = STDOUT_FILENO;
  if (!request.out.empty()) {
    ASSAY_TRY(earlier, EarlierKeys(request.out));
    file = UniqueFd(::open(request.out.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file) {
      return Fail(ErrorKind::kEnvironment, "cannot be opened for appending", request.out,
                  "check that its folder is there and writable");
    }
    fd = file.get();
  }
  std::string line;
  while (std::getline(input, line)) {
    const std::uint64_t index = totals.lines++;
    if (index < earlier.size()) {
      if (rewarder.KeyOfLine(line) != earlier[index]) {
        return Fail(
            ErrorKind::kUsage,
            fmt::format("line {} is not what the rewards written there were for", index + 1),
            request.out, "name another file with --out, or remove this one");
      }
      ++totals.resumed;
      continue;
    }
    ASSAY_TRY(const rewards::RewardLine reward, rewarder.Reward(line, index));
    totals.invalid += reward.outcome == "invalid" ? 1u : 0u;
    totals.undecided += reward.outcome != "invalid" && !reward.score.conclusive ? 1u : 0u;
    ASSAY_TRY_VOID(WriteLine(fd, CompactJson(rewards::ToJson(reward)) + "\n",
                             request.out.empty() ? "standard output" : request.out));
  }
  return totals;
}

Result<int> Reward(const Request& request) {
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  ASSAY_TRY_VOID(bench->CheckTarget(request.tools.arch));
  runs::JudgeFacts facts{.engine = request.tools.Engine(),
                         .effort = request.effort,
                         .seed = request.seed,
                         .unsafe_no_jail = request.tools.unsafe_no_jail};
  ASSAY_TRY(facts.versions, bench->JudgeVersions());
  const auto judge = [&](const ops::Instance& instance, const verdict::Candidate& candidate,
                         std::uint64_t holdout_seed) {
    std::uint64_t drawn = 0;
    gates::Gatekeeper gatekeeper(
        bench->MakeTools(),
        {.effort = ParseEffort(request.effort),
         .seed = request.seed,
         .holdout_seed = [&drawn, holdout_seed] { return holdout_seed + drawn++; },
         .unsafe_no_jail = request.tools.unsafe_no_jail,
         .regressions = {}});
    return gatekeeper.Judge(instance, candidate).verdict;
  };
  rewards::Rewarder rewarder(
      judge, [](const std::string& op) { return ops::Library::Default().Find(op); }, facts,
      request.tools.arch, request.cache);
  std::ifstream file;
  if (request.input != "-") {
    file.open(request.input);
    if (!file) {
      return Fail(ErrorKind::kUsage, "cannot be read", request.input,
                  "name a file of candidates, one JSON line each, or - for stdin");
    }
  }
  ASSAY_TRY(const Totals totals,
            RewardAll(request.input == "-" ? std::cin : file, request, rewarder));
  Say(
      fmt::format("{} candidates: {} judged, {} known by their key, {} written earlier; {} "
                  "inconclusive, {} invalid lines",
                  totals.lines, rewarder.judged(), rewarder.known(), totals.resumed,
                  totals.undecided, totals.invalid));
  if (totals.invalid > 0) return kExitEnvironment;
  return totals.undecided > 0 ? kExitInconclusive : kExitDone;
}

}  // namespace

void AddReward(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("reward", "Judge candidates for a trainer: JSON lines in, rewards out.");
  auto request = std::make_shared<Request>();
  command->add_option("candidates", request->input,
                      "File of candidates, one JSON line each (docs/corpus.md); -: stdin.");
  command->add_option("--out", request->out,
                      "File for the rewards; one that is there is continued. Default: stdout.");
  command->add_option("--cache", request->cache,
                      "Folder of judgements by key: what is there is not judged again.");
  AddEffortOption(*command, request->effort);
  command->add_option("--seed", request->seed, "Of the cases, holdout ones too.")
      ->check(WholeNumber());
  AddWorkbenchOptions(*command, request->tools);
  command->footer(
      "Example:\n"
      "  echo '{\"op\": \"rms_norm\", \"binding\": {\"T\": \"f16\"}, \"reply\": \"...\"}' | assay "
      "reward --cache judgements/\n"
      "Each line gets one, in order, as soon as it is judged. Rewards go to stdout or --out, words "
      "to "
      "stderr.\n"
      "Exit codes: 0 all judged, 2 some inconclusive, 3 some lines are invalid, or bad input.");
  command->callback([&session, request] { session.run = [request] { return Reward(*request); }; });
}

}  // namespace assay::cli

// assay runs: the runs of a folder listed, shown, compared, cleaned away; a store rid of what nobody
// needs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>

#include "base/text.h"
#include "cli/command.h"
#include "report/run_text.h"
#include "report/words.h"
#include "runs/inventory.h"
#include "runs/store.h"

namespace assay::cli {
namespace {

constexpr const char* kDefaultFolder = "runs";

// Text that is the answer, not a remark: stdout.
void Print(std::string_view text) {
  const std::string printable = Printable(text);
  std::fwrite(printable.data(), 1, printable.size(), stdout);
}

Json EntryAsJson(const runs::RunEntry& run) {
  return {{"run", run.folder.string()},  {"instance", run.instance}, {"model", run.model},
          {"state", run.state},          {"began", run.began},       {"attempts", run.attempts},
          {"judged", run.judged},        {"vetted", run.vetted},     {"bytes", run.bytes},
          {"unreadable", run.unreadable}};
}

Result<int> List(const std::string& folder, bool json) {
  ASSAY_TRY(const std::vector<runs::RunEntry> all, runs::ListRuns(folder));
  if (json) {
    Json rows = Json::array();
    for (const runs::RunEntry& run : all) rows.push_back(EntryAsJson(run));
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.runs/1"}, {"runs", std::move(rows)}}));
    return kExitDone;
  }
  if (all.empty()) Say("there are no runs below " + folder);
  std::uintmax_t bytes = 0;
  for (const runs::RunEntry& run : all) {
    bytes += run.bytes;
    Print(fmt::format("{:<12} {:>3} attempts  {:>9}  {}  {}  {}{}\n", run.state, run.attempts,
                      report::Bytes(run.bytes), report::Moment(run.began), run.folder.string(),
                      run.unreadable.empty() ? Head(run.instance + " by " + run.model, 120)
                                             : Head(run.unreadable, 160),
                      run.vetted ? "  [vetted]" : ""));
  }
  if (!all.empty())
    Say(fmt::format("{}, {}", report::Plural(all.size(), "run"), report::Bytes(bytes)));
  return kExitDone;
}

Result<int> Show(const std::string& folder, bool json) {
  ASSAY_TRY(const report::RunView run, report::ReadRunView(folder, {}));
  if (json) {
    ASSAY_TRY_VOID(PrintJson(report::RunAsJson(run)));
  } else {
    Print(report::RunAsText(run));
  }
  return kExitDone;
}

// What is compared: a run (its attempt that counts), or RUN/attempts/N.
struct Side {
  report::RunView run;
  std::size_t attempt = 0;
};

Result<Side> ReadSide(const std::string& text) {
  Path path = Path(text).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  int number = 0;
  if (path.parent_path().filename() == "attempts") {
    const std::string name = path.filename().string();
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number < 1)
      return Fail(ErrorKind::kUsage, "names no attempt", text, "RUN/attempts/3, for instance");
    path = path.parent_path().parent_path();
  }
  Side side;
  ASSAY_TRY(side.run, report::ReadRunView(path, {}));
  if (number == 0) {
    if (!side.run.result)
      return Fail(ErrorKind::kUsage, "nothing of this run has been judged yet", text,
                  "name an attempt: RUN/attempts/1");
    side.attempt = *side.run.result;
    return side;
  }
  if (static_cast<std::size_t>(number) > side.run.attempts.size()) {
    return Fail(ErrorKind::kUsage,
                fmt::format("the run has {}", report::Plural(side.run.attempts.size(), "attempt")),
                text);
  }
  side.attempt = static_cast<std::size_t>(number) - 1;
  return side;
}

Result<int> Compare(const std::string& before_name, const std::string& after_name, bool json) {
  ASSAY_TRY(const Side before, ReadSide(before_name));
  ASSAY_TRY(const Side after, ReadSide(after_name));
  const report::Compared compared{
      .before = {before_name, &before.run, &before.run.attempts[before.attempt]},
      .after = {after_name, &after.run, &after.run.attempts[after.attempt]}};
  if (json) {
    ASSAY_TRY_VOID(PrintJson(report::ComparisonAsJson(compared)));
  } else {
    Print(report::ComparisonAsText(compared));
  }
  return kExitDone;
}

struct CleanRequest {
  std::string folder = kDefaultFolder;
  std::string older_than, keep_bytes;
  bool yes = false;
};

// "30d", "12h": a whole number and a unit of `units`.
struct Unit {
  std::string_view suffix;
  std::uint64_t factor;
};
Result<std::uint64_t> Quantity(const std::string& text, std::span<const Unit> units,
                               const char* option, const char* example) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const std::string_view suffix(end, last);
  const auto unit = std::ranges::find(units, suffix, &Unit::suffix);
  // What does not fit is refused: a limit that wrapped round would remove what it should keep.
  if (error != std::errc() || unit == units.end() || value > (UINT64_MAX >> 1) / unit->factor)
    return Fail(ErrorKind::kUsage, fmt::format("'{}' is not understood", Head(text, 60)), option,
                example);
  return value * unit->factor;
}

constexpr Unit kAges[] = {{"d", 86400}, {"h", 3600}, {"w", 7 * 86400}};
constexpr Unit kSizes[] = {{"", 1}, {"K", 1u << 10}, {"M", 1u << 20}, {"G", 1u << 30}};
// More than there has been time: nothing is that old.
constexpr std::uint64_t kMostSeconds = 8'000'000'000;

Result<int> Clean(const CleanRequest& request, bool json) {
  runs::CleaningPolicy policy;
  if (!request.older_than.empty()) {
    ASSAY_TRY(const std::uint64_t seconds,
              Quantity(request.older_than, kAges, "--older-than", "30d, 12h or 6w"));
    policy.older_than = std::chrono::seconds(std::min(seconds, kMostSeconds));
  }
  if (!request.keep_bytes.empty()) {
    ASSAY_TRY(policy.keep_bytes, Quantity(request.keep_bytes, kSizes, "--keep-bytes",
                                          "500M, 10G or a number of bytes"));
  }
  if (!policy.older_than && !policy.keep_bytes) {
    return Fail(ErrorKind::kUsage, "nothing says which runs are to go", "assay runs clean",
                "give --older-than 30d, --keep-bytes 10G, or both");
  }
  ASSAY_TRY(std::vector<runs::RunEntry> all, runs::ListRuns(request.folder));
  const std::vector<runs::CleaningStep> steps =
      runs::PlanCleaning(std::move(all), policy, std::filesystem::file_time_type::clock::now());
  Json rows = Json::array();
  std::uintmax_t removed = 0, kept = 0;
  std::uint64_t count = 0;
  bool failed = false;
  for (const runs::CleaningStep& step : steps) {
    bool gone = step.remove;
    std::string why = step.why;
    if (step.remove && request.yes) {
      if (const Status status = runs::RemoveRun(step.run.folder); !status) {
        gone = false;
        failed = true;
        why = status.error().message;
        Say("error: " + ToString(status.error()));
      }
    }
    (gone ? removed : kept) += step.run.bytes;
    count += gone;
    rows.push_back({{"run", step.run.folder.string()},
                    {"bytes", step.run.bytes},
                    {"removed", gone && request.yes},
                    {"would_go", step.remove},
                    {"why", why}});
    if (!json) {
      Print(fmt::format("{:<8} {:>9}  {}  {}\n",
                        gone ? (request.yes ? "removed" : "to go") : "kept",
                        report::Bytes(step.run.bytes), step.run.folder.string(), Head(why, 160)));
    }
  }
  if (json) {
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.runs_clean/1"},
                              {"dry_run", !request.yes},
                              {"removed_bytes", request.yes ? removed : 0},
                              {"kept_bytes", request.yes ? kept : kept + removed},
                              {"runs", std::move(rows)}}));
  }
  Say(request.yes
          ? fmt::format("{} removed, {}; {} kept", report::Plural(count, "run"),
                        report::Bytes(removed), report::Bytes(kept))
          : fmt::format("{} would go, {}; {} would stay. Nothing was removed: give --yes",
                        report::Plural(count, "run"), report::Bytes(removed), report::Bytes(kept)));
  return failed ? kExitInconclusive : kExitDone;
}

struct CollectRequest {
  std::string store = "store";
  std::string grace = "1d";
  bool yes = false;
};

Result<int> Collect(const CollectRequest& request, bool json) {
  ASSAY_TRY(const std::uint64_t seconds,
            Quantity(request.grace, kAges, "--grace", "1d, 12h or 6w"));
  std::error_code error;
  if (!std::filesystem::is_directory(request.store, error)) {
    return Fail(ErrorKind::kUsage, "there is no store here", request.store,
                "name the folder that assay batch was given as --store");
  }
  using Collection = runs::Store::Collection;
  ASSAY_TRY(const runs::Store::Collected collected,
            runs::Store(request.store)
                .Collect(std::filesystem::file_time_type::clock::now(),
                         std::chrono::seconds(std::min(seconds, kMostSeconds)),
                         request.yes ? Collection::kRemove : Collection::kCountOnly));
  if (json) {
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.runs_collect/1"},
                              {"dry_run", !request.yes},
                              {"artefacts", collected.removed},
                              {"bytes", collected.bytes},
                              {"kept", collected.kept}}));
  }
  Say(fmt::format("{} {}, {}; {} kept{}", report::Plural(collected.removed, "artefact"),
                  request.yes ? "removed" : "would go", report::Bytes(collected.bytes),
                  collected.kept, request.yes ? "" : ". Nothing was removed: give --yes"));
  return kExitDone;
}

void AddJson(CLI::App& command, Session& session) {
  command.add_flag("--json", session.json, "Print one JSON document on stdout.");
}

void AddList(CLI::App& runs, Session& session) {
  CLI::App* command = runs.add_subcommand("list", "The runs below a folder.");
  auto folder = std::make_shared<std::string>(kDefaultFolder);
  command->add_option("folder", *folder, "Folder of runs, or a run's.");
  AddJson(*command, session);
  command->footer("Example:\n  assay runs list");
  command->callback([&session, folder] {
    session.run = [&session, folder] { return List(*folder, session.json); };
  });
}

void AddShow(CLI::App& runs, Session& session) {
  CLI::App* command = runs.add_subcommand("show", "A run's attempts, and the verdict that counts.");
  auto folder = std::make_shared<std::string>();
  command->add_option("run", *folder, "Folder of a run.")->required();
  AddJson(*command, session);
  command->footer(
      "Example:\n  assay runs show runs/ID        (assay report runs/ID makes a page of it)");
  command->callback([&session, folder] {
    session.run = [&session, folder] { return Show(*folder, session.json); };
  });
}

void AddCompare(CLI::App& runs, Session& session) {
  CLI::App* command =
      runs.add_subcommand("compare", "Two runs or attempts: outcomes, findings, kernels.");
  auto names = std::make_shared<std::pair<std::string, std::string>>();
  command->add_option("before", names->first, "A run, or one attempt of it: RUN/attempts/N.")
      ->required();
  command->add_option("after", names->second, "The other one.")->required();
  AddJson(*command, session);
  command->footer(
      "Of a run, the attempt that counts: the accepted one, or the last judged.\n"
      "Examples:\n"
      "  assay runs compare runs/ID/attempts/1 runs/ID/attempts/2\n"
      "  assay runs compare runs/A runs/B");
  command->callback([&session, names] {
    session.run = [&session, names] { return Compare(names->first, names->second, session.json); };
  });
}

void AddClean(CLI::App& runs, Session& session) {
  CLI::App* command =
      runs.add_subcommand("clean", "Remove runs by age or size; says what would go.");
  auto request = std::make_shared<CleanRequest>();
  command->add_option("folder", request->folder, "Folder of runs.");
  command->add_option("--older-than", request->older_than,
                      "Runs without an event for so long go: 30d, 12h, 6w.");
  command->add_option("--keep-bytes", request->keep_bytes,
                      "The oldest go until no more than this is left: 500M, 10G.");
  command->add_flag("--yes", request->yes, "Remove them. Without it nothing is touched.");
  AddJson(*command, session);
  command->footer(
      "Kept in any case: runs with a vetted kernel, runs that a process works on, runs that cannot "
      "be read.\n"
      "Example:\n  assay runs clean --older-than 30d --yes\n"
      "Exit codes: 0 done, 2 some run could not be removed, 3 bad input.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Clean(*request, session.json); };
  });
}

void AddCollect(CLI::App& runs, Session& session) {
  CLI::App* command = runs.add_subcommand(
      "collect", "Remove artefacts of a store that no vetted kernel needs; says what would go.");
  auto request = std::make_shared<CollectRequest>();
  command->add_option("store", request->store, "The store (assay batch --store).");
  command
      ->add_option("--grace", request->grace,
                   "What was put within so long stays: somebody may be about to need it.")
      ->capture_default_str();
  command->add_flag("--yes", request->yes, "Remove them. Without it nothing is touched.");
  AddJson(*command, session);
  command->footer(
      "Vetted kernels and their records always stay; left behind are files of writers that were "
      "killed, and of kernels that newer ones replaced.\n"
      "Example:\n  assay runs collect store --yes\n"
      "Exit codes: 0 done, 3 bad input, or a reference that cannot be read.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Collect(*request, session.json); };
  });
}

}  // namespace

void AddRuns(CLI::App& app, Session& session) {
  CLI::App* runs = app.add_subcommand("runs", "List, show, compare and clean away runs.");
  runs->require_subcommand(1);
  AddList(*runs, session);
  AddShow(*runs, session);
  AddCompare(*runs, session);
  AddClean(*runs, session);
  AddCollect(*runs, session);
}

}  // namespace assay::cli

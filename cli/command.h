// The command line: one file a subcommand, each adding itself to the parser.
//
// A subcommand declares its options in AddX and stores what to do in `Session::run`; main runs it and turns errors into messages and
// exit codes. Exit codes: 0 accepted or done, 1 refuted, 2 inconclusive, 3 usage or environment, 4 internal error.
// With --json exactly one JSON document goes to stdout; text for people goes to stderr always.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace assay::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitRefuted = 1;
inline constexpr int kExitInconclusive = 2;
inline constexpr int kExitEnvironment = 3;
inline constexpr int kExitInternal = 4;

/// What one invocation of the program shares with its subcommand.
struct Session {
  bool json = false;
  std::function<Result<int>()> run;  ///< Set by the chosen subcommand; returns the exit code.
};

/// The exit code of an error that ended a command.
int ExitCode(const Error& error);

/// `text` without what steers a terminal: kernels and servers write parts of what people read.
std::string Printable(std::string_view text);
/// Text for people: stderr, one line or more, a newline is added; only what is Printable.
void Say(std::string_view text);
/// The one JSON document of an invocation: stdout. Fails where it cannot be written, but not where
/// the reader has gone (`| head -1`).
Status PrintJson(const Json& document);
/// An error as {"error": {...}}.
Json ErrorJson(const Error& error);

/// Checks for options: CLI11's own let "-1" pass as a huge count, and "nan" as any number.
CLI::Validator WholeNumber();
CLI::Validator NumberFrom(double low, double high);

void AddGenerate(CLI::App& app, Session& session);
void AddBatch(CLI::App& app, Session& session);
void AddCheck(CLI::App& app, Session& session);
void AddCost(CLI::App& app, Session& session);
void AddBench(CLI::App& app, Session& session);
void AddReplay(CLI::App& app, Session& session);
void AddSanitize(CLI::App& app, Session& session);
void AddCorpus(CLI::App& app, Session& session);
void AddReward(CLI::App& app, Session& session);
void AddReport(CLI::App& app, Session& session);
void AddVerify(CLI::App& app, Session& session);
void AddMcp(CLI::App& app, Session& session);
void AddServe(CLI::App& app, Session& session);
void AddRuns(CLI::App& app, Session& session);
void AddOps(CLI::App& app, Session& session);
void AddImport(CLI::App& app, Session& session);
void AddDoctor(CLI::App& app, Session& session);

}  // namespace assay::cli

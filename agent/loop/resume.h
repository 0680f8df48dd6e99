// Continuing a run: what its folder may say, and what only the command line may.
//
// A run folder is a stranger's word: it may have been sent by somebody, and edited. What it says
// about the run itself (strategy, prompts, replies, verdicts) is taken. What would reach outside of
// it must be said again by whoever resumes, or is refused with the reason: the program that an exec/
// model runs and the variables it gets, the model that gets a key and is paid, the server, the key
// file, the price table, an op that is not the library's, and a judge without a jail. Files of a
// vetted kernel are compared with the digests that the record holds.
//
//   RequestOfRun("runs/x", library, {.model = "openai/gpt-5"});
#pragma once

#include <string>
#include <vector>

#include "agent/loop/generate.h"
#include "runs/folder.h"

namespace assay::loop {

/// What the command line says again. Empty: nothing.
struct Repeated {
  std::string op;  ///< As `assay generate` takes it: a name or a folder.
  std::string model;
  std::string base_url;
  Path key_file;
  std::vector<std::string> exec_variables;
  Path prices;
  bool unsafe_no_jail = false;
};

/// The request of an earlier run. The way to the server may be given anew, the rest may only be
/// repeated as it was; attempts, budget and time-outs are the caller's to change.
Result<GenerateRequest> RequestOfRun(const Path& folder, const ops::Library& library,
                                     const Repeated& repeated);

/// The command that continues the run of `request` in `folder`, with all that it must repeat.
std::string ResumeCommand(const GenerateRequest& request, const Path& folder);

/// Whether the vetted kernel of a run that is taken up is the one that was judged: its files have
/// the digests of its certificate, that has the digest of the record, and kernel and op are the
/// run's. Ends an emission that a crash interrupted.
Status CheckVetted(const runs::RunFolder& run, const ops::Instance& instance);

}  // namespace assay::loop

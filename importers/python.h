// The Python that imports: which one it is, what it needs of the file system, and how it runs a problem.
//
// A problem file is hostile: it runs in the jail, with no network, no other file than itself and Python's
// own, and limits of memory and time. The user's Python is asked once, outside of the jail, where its
// folders are; that runs nothing of the problem, nor of the current folder (-I).
//
// What comes back is one JSON document of bounded size, in a memory file that the process was given.
// Thread-safe: functions without state.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "sandbox/policy.h"

namespace assay::importers {

struct Python {
  Path program;               ///< As it is to be started: a venv's own link.
  std::vector<Path> folders;  ///< Absolute, existing: its prefix, library and packages.
  std::string version;
  bool has_torch = false;
};

/// The Python of `--python`, else $ASSAY_PYTHON, else .deps/torch near the program (which
/// scripts/fetch_torch.sh makes), else python3 in $PATH; with `environment` as getenv. Fails where there is
/// none, or none with torch, and says how to get it.
Result<Python> FindPython(const std::string& explicit_program,
                          const std::function<std::string(const char*)>& environment);

/// What `program` says of itself; an error where it does not answer. Runs nothing but Python.
Result<Python> DescribePython(const Path& program);

/// Where the package assay_import is: beside the program or in one of the folders above it.
Result<Path> PackageFolder();

/// What a problem may do. `problem` is the file or folder that it needs.
sandbox::Policy ImportPolicy(const Python& python, const Path& package, const Path& problem);

struct RunOptions {
  bool unsafe_no_jail = false;
  std::chrono::seconds time{300};
  Path package;  ///< The folder that holds assay_import; empty: PackageFolder().
};

/// Runs the package in the jail with `request` and returns its answer. `data` is what the request's
/// "check" refers to, if any. kLimit where time or memory ran out; kMalformedInput where the problem ended
/// the process.
Result<Json> RunInJail(const Python& python, const Path& problem, Json request,
                       std::span<const std::byte> data, const RunOptions& options);

}  // namespace assay::importers

// A PyTorch function becomes an op folder: what `assay import` does, without its options.
//
//   ASSAY_TRY(const Python python, FindPython("", getenv));
//   ASSAY_TRY(const Imported imported, Import({.kind = "torch", .source = "f.py", .function = "f"}, python, {}));
//   ASSAY_TRY(const ops::OpSpec op, WriteOp(imported, "ops/f"));
//
// The package assay_import (importers/assay_import) does the work in the jail; here its answer is taken as
// data: names of files from a fixed list, sizes bounded, and the folder is an op only once LoadOp has read
// it. Functions without state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "importers/python.h"
#include "ops/op.h"

namespace assay::importers {

struct Problem {
  std::string kind;          ///< "torch", "kernelbench", "sol-execbench", "flashinfer-trace".
  Path source;               ///< A file, or the folder of a definition.
  std::string function;      ///< kind "torch".
  std::string name;          ///< Of the op; empty: as the problem calls it.
  bool strict = false;       ///< 16-bit boundaries are prescribed roundings.
  bool specialised = false;  ///< Extents stay what they are in the example.
  bool value_only = false;   ///< The function itself is the reference (python_truth.h).
};

/// "FILE:FUNCTION" of kind "torch", a path otherwise.
Result<Problem> ParseProblem(const std::string& kind, const std::string& source);

struct Imported {
  std::string name;                          ///< An identifier.
  std::map<std::string, std::string> files;  ///< By name, each one of the known ones.
  std::vector<std::string> inferred;         ///< For review, one line each.
};

/// What the package was asked for a problem.
Json RequestFor(const Problem& problem);
/// Reads the package's answer. A refusal is an error (kUnsupported) that names the operator, its line and
/// what to do.
Result<Imported> ReadAnswer(const Json& answer, const Problem& problem);
Result<Imported> Import(const Problem& problem, const Python& python, const RunOptions& options);

/// Writes the files into `folder`, which must not hold another op, and loads the op.
Result<ops::OpSpec> WriteOp(const Imported& imported, const Path& folder);

}  // namespace assay::importers

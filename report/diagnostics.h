// Findings as diagnostics of the files that somebody edits: one line an editor jumps to, or one
// result of a SARIF log that a code host shows beside the line.
//
//   kernels/softmax/kernel.cu:14:3: error: two threads write partial[0] without an order between
//       them; no barrier between line 14 and line 18 [data_race]
//   kernels/softmax/kernel.cu:18:9: note: read by thread (1,0,0) of block (0,0,0)
//
// A finding knows the lines of "kernel.cu"; the caller knows where that lies. What has no line (a
// wrong value whose origin nobody knows) is about the first line of the file: hosts and editors show
// nothing that has no place.
//
// Pure functions of their arguments. SARIF is version 2.1.0 (OASIS, errata 01); the part of its
// schema that is used here stands in report/schemas/sarif.schema.json, and tests hold logs to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "validator/findings/finding.h"
#include "validator/verdict/verdict.h"

namespace assay::report {

/// Paths as they are to be shown: relative to where the reader stands.
struct Files {
  std::string kernel;
  std::string launch;
};

struct Diagnostic {
  struct Place {
    std::string file;
    std::uint32_t line = 1;
    std::uint32_t column = 0;  ///< 0: not known.
    std::string excerpt;
  };
  struct Note {
    Place place;
    std::string text;
  };
  FindingKind kind{};
  Place place;
  std::string message;      ///< One line.
  std::string gate;         ///< Empty: of no gate.
  std::string case_;        ///< "rows=3 cols=5"; empty: none.
  std::vector<Note> notes;  ///< The other sides.
};

Diagnostic DiagnosticOf(const Finding& finding, const Files& files);
/// Of all counterexamples, each defect once.
std::vector<Diagnostic> DiagnosticsOf(const verdict::Verdict& verdict, const Files& files);

/// GCC's form, which editors read; a line each, and one for each note.
std::string CompilerText(const std::vector<Diagnostic>& diagnostics);

/// How the run that the log tells of has ended.
struct Ending {
  bool conclusive = true;  ///< False: no results do not mean that nothing is wrong.
  std::string reason;
};
Json SarifLog(const std::string& version, const std::vector<Diagnostic>& diagnostics,
              const Ending& ending);

/// `file` as a reference to it (RFC 3986): relative where it is, file:// where it is absolute.
std::string UriOf(const std::string& file);

}  // namespace assay::report

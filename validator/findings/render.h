// Findings as a good compiler would print them: what, where in the source with a caret, which
// threads, the memory, the other side.
//
//   kernel.cu:14:3: error: data_race: two threads write partial[0] without an order between them
//     14 |   partial[0] = sum;
//        |   ^ write by thread (0,0,0) of block (0,0,0); 32 threads
//   ...
//
// Pure functions of their arguments; no colour codes, so that files and terminals get the same
// text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "validator/findings/finding.h"

namespace assay {

/// The candidate's source files by the names that SourceSite::file uses.
class SourceText {
 public:
  SourceText() = default;
  /// `file` is compared by its last path component: line information may carry any directory.
  void Add(std::string_view file, std::string_view text);
  /// The text of a 1-based line without its newline, or empty.
  std::string_view Line(std::string_view file, std::uint32_t line) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> lines_;
};

/// Fills SourceSite::excerpt of every access and origin whose line is known.
void FillExcerpts(std::vector<Finding>& findings, const SourceText& source);

/// Several lines, ending in a newline.
std::string RenderText(const Finding& finding, const SourceText& source);

/// What tells something to whoever repairs the kernel: the worst element, and numbers beyond their limit. The JSON form holds all.
bool WorthTelling(const Finding& finding, const Statistic& statistic);
/// "worst_row_relative_error = 0.04 (limit 0.001): row 3"; without a limit where there is none.
std::string Describe(const Statistic& statistic);
/// "expected 3, got 2.5, allowance 0.001": nothing is said of an allowance that is no number.
std::string DescribeValues(const ElementPlace& element);
/// "line 7, called at line 30"; empty without line information.
std::string DescribeLine(const SourceSite& site);

/// "line 24: `atomicAdd(&out[i], v);`: 97 % of the error".
std::string Describe(const ErrorShare& share);
/// What is known of where the error entered, a sentence each: the conclusion, then the lines that
/// matter most. Empty when nothing is.
std::vector<std::string> DescribeOrigins(const Finding& finding);

/// "buffer[index]", or the address when it is nobody's.
std::string Describe(const MemoryPlace& memory);
/// "thread (1,0,0) of block (2,0,0)".
std::string Describe(const ThreadId& thread);

}  // namespace assay

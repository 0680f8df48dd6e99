// From a model's reply to a candidate: exactly one CUDA block and one JSON plan, or a
// MalformedReply finding that says what was there.
//
// Blocks are Markdown fences (CommonMark 0.31, section 4.5: backticks or tildes, closed by a fence
// at least as long). A block is known by its info string (cuda, cu, cpp, c++, c; json), by a file
// name in the info string or on the line above (kernel.cu, launch.json), or, untagged, by its text.
// Where several blocks could be the kernel, one named kernel.cu wins, then the only one that has a
// __global__ function; otherwise the reply is ambiguous, and guessing is not done. Linear in the
// reply; never fails on hostile bytes.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"
#include "runs/conversation.h"
#include "validator/findings/finding.h"
#include "validator/verdict/candidate.h"
#include "validator/verdict/verdict.h"

namespace assay::runs {

struct CodeBlock {
  std::string language;  ///< First word of the info string, lower case.
  std::string name;      ///< "kernel.cu" or "launch.json" where named so.
  std::string text;
  std::size_t line = 0;  ///< Of the opening fence in the reply, from 1.
  bool closed = true;
};

/// All outermost fenced blocks, in order.
std::vector<CodeBlock> FindCodeBlocks(std::string_view reply);

/// The candidate, or what is wrong with the reply.
std::expected<verdict::Candidate, Finding> ExtractCandidate(const ModelReply& reply);

/// The verdict on a reply that holds no candidate: refuted by the format gate.
verdict::Verdict FormatVerdict(const ops::Instance& instance, const std::string& engine,
                               const Finding& finding);

}  // namespace assay::runs

#include "runs/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace assay::runs {
namespace {

constexpr std::size_t kMaxBlockBytes = 1u << 20;
constexpr std::size_t kMaxBlocks = 1000;

struct Fence {
  char mark = '`';
  std::size_t length = 0;
  std::size_t indent = 0;
  std::string_view info;
};

// An opening or closing fence, or length 0.
Fence ReadFence(std::string_view line) {
  Fence fence;
  while (fence.indent < line.size() && line[fence.indent] == ' ') ++fence.indent;
  // Fences inside list items stand further in; models write them so.
  if (fence.indent > 12) return {};
  const std::string_view rest = line.substr(fence.indent);
  if (rest.empty() || (rest[0] != '`' && rest[0] != '~')) return {};
  fence.mark = rest[0];
  std::size_t length = 0;
  while (length < rest.size() && rest[length] == fence.mark) ++length;
  if (length < 3) return {};
  fence.info = Strip(rest.substr(length));
  if (fence.mark == '`' && fence.info.find('`') != std::string_view::npos) return {};
  fence.length = length;
  return fence;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

std::string NameIn(std::string_view text) {
  for (const char* const name : {"kernel.cu", "launch.json"}) {
    if (text.find(name) != std::string_view::npos) return name;
  }
  return {};
}

std::string_view Unindent(std::string_view line, std::size_t indent) {
  std::size_t spaces = 0;
  while (spaces < indent && spaces < line.size() && line[spaces] == ' ') ++spaces;
  return line.substr(spaces);
}

enum class Part : std::uint8_t { kNone, kKernel, kPlan };

Part PartOf(const CodeBlock& block) {
  constexpr std::array<std::string_view, 6> kCuda = {"cu", "cuh", "cpp", "c++", "cxx", "c"};
  if (block.name == "kernel.cu") return Part::kKernel;
  if (block.name == "launch.json") return Part::kPlan;
  // "cuda-c++", "json5" and the like are what they begin with.
  if (block.language.starts_with("cuda") ||
      std::ranges::find(kCuda, block.language) != kCuda.end()) {
    return Part::kKernel;
  }
  if (block.language.starts_with("json")) return Part::kPlan;
  if (!block.language.empty()) return Part::kNone;
  if (block.text.find("__global__") != std::string::npos) return Part::kKernel;
  if (Strip(block.text).starts_with('{')) return Part::kPlan;
  return Part::kNone;
}

// The block of a part: the only one, or the only one that is named or marked as the thing itself.
const CodeBlock* Choose(const std::vector<const CodeBlock*>& blocks, std::string_view name,
                        std::string_view mark) {
  if (blocks.size() == 1) return blocks.front();
  const CodeBlock* chosen = nullptr;
  const auto only = [&](auto&& fits) {
    if (std::ranges::count_if(blocks, fits) != 1) return false;
    chosen = *std::ranges::find_if(blocks, fits);
    return true;
  };
  if (only([&](const CodeBlock* block) { return block->name == name; })) return chosen;
  if (std::ranges::any_of(blocks, [&](const CodeBlock* block) { return block->name == name; }))
    return nullptr;
  if (only([&](const CodeBlock* block) { return block->text.find(mark) != std::string::npos; }))
    return chosen;
  return nullptr;
}

Finding Malformed(std::string message, std::string missing) {
  Finding finding;
  finding.kind = FindingKind::kMalformedReply;
  finding.message = std::move(message);
  finding.missing = std::move(missing);
  return finding;
}

std::string Listed(const std::vector<const CodeBlock*>& blocks) {
  std::string lines;
  for (const CodeBlock* const block : blocks) {
    if (lines.size() > 60) return lines + ", ...";
    lines += (lines.empty() ? "" : ", ") + std::to_string(block->line);
  }
  return (blocks.size() == 1 ? "line " : "lines ") + lines;
}

std::string WhatWasFound(const std::vector<CodeBlock>& blocks, std::string_view text) {
  if (Strip(text).empty()) return "the reply is empty";
  if (blocks.empty()) return "the reply holds no code block";
  std::string languages;
  for (const CodeBlock& block : blocks) {
    if (block.language.empty() || languages.size() > 60) continue;
    languages += (languages.empty() ? "" : ", ") + block.language;
  }
  return fmt::format("the reply holds {} code block{}{}", blocks.size(),
                     blocks.size() == 1 ? "" : "s",
                     languages.empty() ? "" : " (" + languages + ")");
}

// No kernel at all. Where the limit of tokens is to blame, that is said first.
Finding NoKernel(const std::vector<CodeBlock>& blocks, std::string_view text,
                 const ModelReply& reply) {
  Finding finding =
      Malformed(WhatWasFound(blocks, text) + (blocks.empty() ? "" : ", none of them CUDA"),
                "one ```cuda block with the whole of kernel.cu");
  if (reply.stop != StopReason::kLength) return finding;
  finding.message += reply.reasoning.empty()
                         ? ": it was cut at the token limit"
                         : ": it was cut at the token limit, while the model was still reasoning";
  finding.cause = "the token limit (--max-output-tokens) ends replies before the code: be brief";
  return finding;
}

// Some models wrap their whole reply into one block of Markdown.
std::vector<CodeBlock> Unwrapped(std::vector<CodeBlock> blocks) {
  constexpr std::array<std::string_view, 4> kProse = {"", "markdown", "md", "text"};
  if (blocks.size() != 1 || !blocks.front().closed ||
      std::ranges::find(kProse, blocks.front().language) == kProse.end()) {
    return blocks;
  }
  std::vector<CodeBlock> inner = FindCodeBlocks(blocks.front().text);
  if (inner.size() < 2) return blocks;
  for (CodeBlock& block : inner) block.line += blocks.front().line;
  return inner;
}

}  // namespace

std::vector<CodeBlock> FindCodeBlocks(std::string_view reply) {
  std::vector<CodeBlock> blocks;
  Fence open;
  std::string_view above;
  std::size_t number = 0;
  for (std::string_view line : SplitLines(reply)) {
    ++number;
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // a byte order mark
    const Fence fence = ReadFence(line);
    if (open.length > 0) {
      if (fence.length >= open.length && fence.mark == open.mark && fence.info.empty()) {
        blocks.back().closed = true;
        open = {};
        above = {};
      } else if (blocks.back().text.size() <= kMaxBlockBytes) {
        blocks.back().text += Unindent(line, open.indent);
        blocks.back().text += '\n';
      }
      continue;
    }
    if (fence.length > 0 && blocks.size() < kMaxBlocks) {
      open = fence;
      std::string name = NameIn(fence.info);
      if (name.empty()) name = NameIn(above.substr(0, 200));
      const std::size_t word = std::min(fence.info.find_first_of(" \t{,:"), std::size_t{40});
      blocks.push_back({.language = Lower(fence.info.substr(0, word)),
                        .name = std::move(name),
                        .text = {},
                        .line = number,
                        .closed = false});
    } else if (!Strip(line).empty()) {
      above = line;
    }
  }
  return blocks;
}

std::expected<verdict::Candidate, Finding> ExtractCandidate(const ModelReply& reply) {
  if (reply.stop == StopReason::kRefusal) {
    return std::unexpected(
        Malformed("the model declined to answer: " + Head(Strip(reply.text), 200),
                  "one ```cuda block and one ```json block"));
  }
  const std::string text = UnixNewlines(ValidUtf8(reply.text));
  std::vector<CodeBlock> blocks = Unwrapped(FindCodeBlocks(text));
  // A stray fence at the very end opens nothing.
  if (!blocks.empty() && !blocks.back().closed && Strip(blocks.back().text).empty())
    blocks.pop_back();
  if (!blocks.empty() && !blocks.back().closed) {
    const bool cut = reply.stop == StopReason::kLength;
    return std::unexpected(Malformed(
        fmt::format("the code block that begins in line {} of the reply never ends{}",
                    blocks.back().line, cut ? ": the reply was cut at the token limit" : ""),
        cut ? "a shorter reply: the two code blocks and little else" : "the closing ``` fence"));
  }
  std::vector<const CodeBlock*> kernels, plans;
  for (const CodeBlock& block : blocks) {
    if (PartOf(block) == Part::kKernel) kernels.push_back(&block);
    if (PartOf(block) == Part::kPlan) plans.push_back(&block);
  }
  if (kernels.empty()) return std::unexpected(NoKernel(blocks, text, reply));
  if (plans.empty()) {
    return std::unexpected(Malformed(fmt::format("{}: CUDA in {}, but no launch plan",
                                                 WhatWasFound(blocks, text), Listed(kernels)),
                                     "one ```json block with the whole of launch.json"));
  }
  const CodeBlock* const kernel = Choose(kernels, "kernel.cu", "__global__");
  if (kernel == nullptr) {
    return std::unexpected(Malformed(
        fmt::format("{} CUDA blocks could be the kernel ({})", kernels.size(), Listed(kernels)),
        "exactly one ```cuda block, or one that is named kernel.cu on the line above it"));
  }
  const CodeBlock* const plan = Choose(plans, "launch.json", "assay.launch/");
  if (plan == nullptr) {
    return std::unexpected(Malformed(
        fmt::format("{} JSON blocks could be the launch plan ({})", plans.size(), Listed(plans)),
        "exactly one ```json block, or one that is named launch.json on the line above it"));
  }
  if (Strip(kernel->text).starts_with('{') && plan->text.find("__global__") != std::string::npos) {
    return std::unexpected(Malformed(
        fmt::format("the blocks are swapped: the launch plan stands in line {}, where the kernel "
                    "should be, and the kernel in line {}",
                    kernel->line, plan->line),
        "kernel.cu in the ```cuda block, launch.json in the ```json block"));
  }
  for (const CodeBlock* const block : {kernel, plan}) {
    if (block->text.size() > kMaxBlockBytes) {
      return std::unexpected(
          Malformed(fmt::format("the block in line {} is longer than 1 MiB", block->line),
                    "a kernel and a plan of sensible size"));
    }
    if (block->text.find('\0') != std::string::npos) {
      return std::unexpected(Malformed(
          fmt::format("the block in line {} holds a NUL byte", block->line), "plain text"));
    }
    if (Strip(block->text).empty()) {
      return std::unexpected(Malformed(fmt::format("the block in line {} is empty", block->line),
                                       "the whole file, not a placeholder"));
    }
  }
  return verdict::Candidate{kernel->text, plan->text};
}

verdict::Verdict FormatVerdict(const ops::Instance& instance, const std::string& engine,
                               const Finding& finding) {
  verdict::GateResult gate;
  gate.gate = "format";
  gate.status = verdict::GateStatus::kRefuted;
  gate.counterexamples = {verdict::MakeCounterexample(instance, {}, engine, gate.gate, {finding})};
  verdict::Verdict verdict;
  verdict.outcome = verdict::Outcome::kRefuted;
  verdict.reason = finding.message;
  verdict.instance = instance.Id();
  verdict.engine = engine;
  verdict.gates = {std::move(gate)};
  return verdict;
}

}  // namespace assay::runs

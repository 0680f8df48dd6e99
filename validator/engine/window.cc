#include "validator/engine/window.h"

#include <algorithm>
#include <set>
#include <string>

namespace assay::engine {
namespace {

std::uint64_t Blocks(const Launch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

/// The braces of the kernel's body, or nothing.
std::string_view BodyOf(std::string_view ptx, std::string_view entry) {
  for (std::size_t at = ptx.find(entry); at != std::string_view::npos;
       at = ptx.find(entry, at + 1)) {
    const std::size_t line = ptx.rfind('\n', at) + 1;  // npos + 1 is 0
    if (ptx.substr(line, at - line).find(".entry") == std::string_view::npos) continue;
    const std::size_t end = at + entry.size();
    if (end < ptx.size() && ptx[end] != '(' && ptx[end] != ' ' && ptx[end] != '\n') continue;
    const std::size_t open = ptx.find('{', at);
    if (open == std::string_view::npos) return {};
    int depth = 0;
    for (std::size_t i = open; i < ptx.size(); ++i) {
      depth += ptx[i] == '{' ? 1 : ptx[i] == '}' ? -1 : 0;
      if (depth == 0) return ptx.substr(open, i + 1 - open);
    }
    return {};
  }
  return {};
}

/// Does an instruction that starts with `mnemonic` occur?
bool Uses(std::string_view text, std::string_view mnemonic) {
  for (std::size_t at = text.find(mnemonic); at != std::string_view::npos;
       at = text.find(mnemonic, at + 1)) {
    if (at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t' || text[at - 1] == '\n') {
      const std::string_view rest = text.substr(at + mnemonic.size(), 24);
      if (!rest.starts_with("shared")) return true;
    }
  }
  return false;
}

}  // namespace

bool BlocksCommunicate(std::string_view ptx, std::string_view entry) {
  std::string_view body = BodyOf(ptx, entry);
  if (body.empty()) return true;
  if (Uses(body, "call")) body = ptx;
  constexpr std::string_view kSigns[] = {
      "atom.",       "red.",      "ld.volatile.",     "ld.acquire.",
      "ld.relaxed.", "multimem.", "barrier.cluster.", "fence.",
      "membar."};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return Uses(body, sign); });
}

bool MayCut(const Execution& execution, std::size_t number) {
  const Launch& launch = execution.launches[number];
  const std::uint64_t cluster =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  if (launch.cooperative || cluster > 1 || BlocksCommunicate(execution.ptx, launch.entry))
    return false;
  std::set<std::uint32_t> touched;
  for (const Argument& argument : launch.args) {
    if (argument.kind == Argument::Kind::kBuffer &&
        execution.buffers[argument.buffer].role != BufferRole::kInput)
      touched.insert(argument.buffer);
  }
  for (std::size_t later = number + 1; later < execution.launches.size(); ++later) {
    for (const Argument& argument : execution.launches[later].args) {
      if (argument.kind == Argument::Kind::kBuffer && touched.contains(argument.buffer))
        return false;
    }
  }
  return true;
}

bool CutToEnds(Execution& execution) {
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    if (Blocks(execution.launches[i]) > kWholeGrid && !MayCut(execution, i)) return false;
  }
  for (Launch& launch : execution.launches) {
    if (const std::uint64_t blocks = Blocks(launch); blocks > kWholeGrid)
      launch.only = {{0, 1}, {blocks - 2, 2}};
  }
  return true;
}

}  // namespace assay::engine

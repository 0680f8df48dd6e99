#include "validator/findings/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

std::string_view BaseName(std::string_view file) {
  const auto slash = file.find_last_of('/');
  return slash == std::string_view::npos ? file : file.substr(slash + 1);
}

std::string Place(const SourceSite& site) {
  if (site.line == 0)
    return site.ptx_line == 0 ? "kernel" : fmt::format("kernel.ptx:{}", site.ptx_line);
  if (site.column == 0) return fmt::format("{}:{}", site.file, site.line);
  return fmt::format("{}:{}:{}", site.file, site.line, site.column);
}

/// The excerpt with the caret under the column, or under the first character that is not a blank.
std::string Excerpt(const SourceSite& site, std::string_view line, const std::string& note) {
  std::string text;
  const std::string number = site.line == 0 ? "ptx" : std::to_string(site.line);
  if (line.empty() && !site.instruction.empty()) line = site.instruction;
  if (line.empty()) return fmt::format("  {}\n", note);
  std::size_t caret = line.find_first_not_of(" \t");
  if (caret == std::string_view::npos) caret = 0;
  if (site.column > 1 && site.column <= line.size()) caret = site.column - 1;
  // Tabs are kept in the caret's line, so that it stands under its column whatever their width.
  std::string indent;
  for (std::size_t i = 0; i < caret; ++i) indent += line[i] == '\t' ? '\t' : ' ';
  text += fmt::format("{:>6} | {}\n", number, line);
  text += fmt::format("{:>6} | {}^ {}\n", "", indent, note);
  return text;
}

std::string NoteOf(const Access& access) {
  std::string note = access.what.empty() ? "here" : access.what;
  if (access.threads > 0) note += " by " + Describe(access.thread);
  if (access.threads > 1) note += fmt::format(" ({} threads)", access.threads);
  if (!access.value.empty()) note += fmt::format(", value {}", access.value);
  return note;
}

}  // namespace

bool WorthTelling(const Finding& finding, const Statistic& statistic) {
  // The words of `missing` follow from it.
  if (statistic.name == kRaceReach) return statistic.value > 0;
  const std::string_view family = FamilyOf(finding.kind);
  if (family != "precision" && family != "numeric") return true;
  // A comparison leaves a dozen numbers behind.
  if (statistic.limit > 0 && !(std::fabs(statistic.value) <= statistic.limit)) return true;
  return &statistic == &finding.statistics.front() && statistic.value != 0;
}

std::string Describe(const Statistic& statistic) {
  std::string text = statistic.name == kRaceReach
                         ? statistic.name
                         : fmt::format("{} = {:.6g}", statistic.name, statistic.value);
  if (statistic.limit != 0) text += fmt::format(" (limit {:.6g})", statistic.limit);
  return statistic.note.empty() ? text : text + ": " + statistic.note;
}

std::string DescribeValues(const ElementPlace& element) {
  std::string text = fmt::format("expected {:.9g}, got {:.9g}", element.expected, element.got);
  if (std::isfinite(element.allowance) && std::isfinite(element.got) &&
      std::isfinite(element.expected))
    text += fmt::format(", allowance {:.3g}", element.allowance);
  return text;
}

std::string DescribeLine(const SourceSite& site) {
  if (site.line == 0) return {};
  std::string text = fmt::format("line {}", site.line);
  for (const std::uint32_t line : site.called_at) text += fmt::format(", called at line {}", line);
  return text;
}

void SourceText::Add(std::string_view file, std::string_view text) {
  std::vector<std::string> lines;
  while (true) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  lines_[std::string(BaseName(file))] = std::move(lines);
}

std::string_view SourceText::Line(std::string_view file, std::uint32_t line) const {
  const auto found = lines_.find(BaseName(file));
  if (found == lines_.end() || line == 0 || line > found->second.size()) return {};
  return found->second[line - 1];
}

void FillExcerpts(std::vector<Finding>& findings, const SourceText& source) {
  for (Finding& finding : findings) {
    for (Access& access : finding.accesses) {
      const std::string_view line = source.Line(access.site.file, access.site.line);
      if (!line.empty()) access.site.excerpt = line;
    }
    for (ErrorShare& share : finding.origins) {
      const std::string_view line = source.Line(share.site.file, share.site.line);
      if (!line.empty()) share.site.excerpt = line;
    }
  }
}

std::string Describe(const ErrorShare& share) {
  const SourceSite& site = share.site;
  const double percent = 100 * share.share;
  const std::string part =
      percent >= 1 ? fmt::format("{:.0f} %", percent) : fmt::format("{:.1g} %", percent);
  if (site.line == 0 && site.ptx_line == 0)
    return fmt::format("other lines: {} of the error", part);
  std::string_view code = site.line != 0 ? site.excerpt : site.instruction;
  if (const auto comment = code.find("//"); comment != std::string_view::npos)
    code = code.substr(0, comment);
  const auto first = code.find_first_not_of(" \t");
  code = first == std::string_view::npos ? std::string_view() : code.substr(first);
  code = code.substr(0, code.find_last_not_of(" \t\r") + 1);
  constexpr std::size_t kLongest = 120;
  const bool cut = code.size() > kLongest;
  return fmt::format(
      "{}{}: {} of the error",
      site.line != 0 ? DescribeLine(site) : fmt::format("PTX line {}", site.ptx_line),
      code.empty() ? std::string()
                   : fmt::format(": `{}{}`", code.substr(0, kLongest), cut ? "..." : ""),
      part);
}

std::vector<std::string> DescribeOrigins(const Finding& finding) {
  constexpr std::size_t kMost = 3;
  constexpr double kWorthALine = 0.02;
  std::vector<std::string> lines;
  if (!finding.origin.empty()) lines.push_back(finding.origin);
  for (std::size_t i = 0; i < std::min(kMost, finding.origins.size()); ++i) {
    if (i > 0 && finding.origins[i].share < kWorthALine) break;
    lines.push_back(Describe(finding.origins[i]));
  }
  return lines;
}

std::string Describe(const MemoryPlace& memory) {
  if (memory.buffer.empty())
    return fmt::format("address {:#x} ({} memory)", memory.address, memory.space);
  return fmt::format("{}[{}]", memory.buffer, memory.index);
}

std::string Describe(const ThreadId& id) {
  return fmt::format("thread ({},{},{}) of block ({},{},{})", id.thread[0], id.thread[1],
                     id.thread[2], id.block[0], id.block[1], id.block[2]);
}

std::string RenderText(const Finding& finding, const SourceText& source) {
  std::string text;
  const std::string place =
      finding.accesses.empty() ? std::string() : Place(finding.accesses.front().site) + ": ";
  text += fmt::format("{}error: {}: {}\n", place, Name(finding.kind), finding.message);
  for (std::size_t i = 0; i < finding.accesses.size(); ++i) {
    const Access& access = finding.accesses[i];
    if (i > 0) text += fmt::format("  {}: the other side:\n", Place(access.site));
    std::string_view line = source.Line(access.site.file, access.site.line);
    if (line.empty()) line = access.site.excerpt;
    text += Excerpt(access.site, line, NoteOf(access));
    for (const std::uint32_t caller : access.site.called_at) {
      const std::string_view call = source.Line(access.site.file, caller);
      text += fmt::format("  called at {}:{}\n", access.site.file, caller);
      if (!call.empty()) text += fmt::format("{:>6} | {}\n", caller, call);
    }
    if (!access.site.instruction.empty() && !line.empty()) {
      text += fmt::format("  instruction: {} (PTX line {})\n", access.site.instruction,
                          access.site.ptx_line);
    }
  }
  if (finding.memory) {
    const MemoryPlace& memory = *finding.memory;
    text += fmt::format("  memory: {}, {} bytes at {:#x}, {} memory", Describe(memory),
                        memory.bytes, memory.address, memory.space);
    if (!memory.buffer.empty())
      text += fmt::format("; {} has {} elements", memory.buffer, memory.elements);
    text += "\n";
  }
  if (finding.element) {
    const ElementPlace& element = *finding.element;
    text += fmt::format("  element: {}[{}]: {}\n", element.output, fmt::join(element.index, ", "),
                        DescribeValues(element));
  }
  for (const Statistic& statistic : finding.statistics) {
    if (WorthTelling(finding, statistic)) text += "  " + Describe(statistic) + "\n";
  }
  if (!finding.missing.empty()) text += fmt::format("  missing: {}\n", finding.missing);
  if (!finding.cause.empty()) text += fmt::format("  likely cause: {}\n", finding.cause);
  for (const std::string& line : DescribeOrigins(finding))
    text += fmt::format("  origin: {}\n", line);
  return text;
}

}  // namespace assay

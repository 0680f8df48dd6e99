#include "workers/compile_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace assay::workers {
namespace {

constexpr std::size_t kMaxMessageBytes = 1000;
constexpr std::size_t kMaxContextLines = 6;
constexpr std::string_view kWithheld = "(text of a file outside of the toolkit is withheld)";

/// NVRTC's words for a severity, longest first where one is the end of another.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSeverities{{
    {"catastrophic error", "error"},
    {"internal error", "error"},
    {"error", "error"},
    {"warning", "warning"},
    {"remark", "remark"},
    {"note", "note"},
}};

std::string Capped(std::string_view text) {
  if (text.size() <= kMaxMessageBytes) return std::string(text);
  return std::string(text.substr(0, kMaxMessageBytes)) + " ...";
}

bool Skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void SkipSpaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

std::optional<std::uint64_t> Number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// "SEVERITY [#CODE]: MESSAGE"
bool ReadSeverity(std::string_view text, Diagnostic& diagnostic) {
  for (const auto& [word, severity] : kSeverities) {
    std::string_view rest = text;
    if (!Skip(rest, word)) continue;
    SkipSpaces(rest);
    if (Skip(rest, "#")) {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      diagnostic.code = rest.substr(0, colon);
      rest.remove_prefix(colon);
    }
    if (!Skip(rest, ":")) continue;
    SkipSpaces(rest);
    diagnostic.severity = severity;
    diagnostic.message = Capped(rest);
    return true;
  }
  return false;
}

/// "FILE(LINE): SEVERITY..." as the front end writes it.
std::optional<Diagnostic> ReadFrontEnd(std::string_view line) {
  // A file's name may hold parentheses; the first "(digits): severity" counts.
  for (std::size_t open = line.find('('); open != std::string_view::npos;
       open = line.find('(', open + 1)) {
    std::string_view rest = line.substr(open + 1);
    const auto number = Number(rest);
    if (!number || !Skip(rest, "): ")) continue;
    Diagnostic diagnostic;
    diagnostic.file = Capped(line.substr(0, open));
    diagnostic.line = static_cast<std::uint32_t>(std::min<std::uint64_t>(*number, UINT32_MAX));
    if (open > 0 && ReadSeverity(rest, diagnostic)) return diagnostic;
  }
  return std::nullopt;
}

/// "ptxas application ptx input, line 23; error   : ...", "ptxas fatal   : ...", "nvrtc: error:
/// ..."
std::optional<Diagnostic> ReadTool(std::string_view line) {
  Diagnostic diagnostic;
  if (Skip(line, "nvrtc: ")) {
    if (ReadSeverity(line, diagnostic)) return diagnostic;
    return std::nullopt;
  }
  if (!Skip(line, "ptxas ")) return std::nullopt;
  diagnostic.file = "ptx";
  if (const std::size_t at = line.find(", line "); at < line.find(';')) {
    std::string_view number = line.substr(at + 7);
    if (const auto value = Number(number)) diagnostic.line = static_cast<std::uint32_t>(*value);
    line.remove_prefix(std::min(line.find(';') + 1, line.size()));
    SkipSpaces(line);
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view word = line.substr(0, colon);
  word = word.substr(0, word.find_last_not_of(' ') + 1);
  if (word == "fatal" || word == "error") diagnostic.severity = "error";
  if (word == "warning") diagnostic.severity = "warning";
  if (diagnostic.severity.empty()) return std::nullopt;
  line.remove_prefix(colon + 1);
  SkipSpaces(line);
  diagnostic.message = Capped(line);
  return diagnostic;
}

/// Collects ptxas's report lines into functions, keeping the worst of several reports about one.
class PtxasReader {
 public:
  /// True if `line` belongs to ptxas's report.
  bool Take(std::string_view line, std::map<std::string, PtxasReport>& functions) {
    if (!line.starts_with("ptxas ")) return false;
    if (const auto name = Quoted(line, "Compiling entry function '")) {
      entry_ = *name;
      current_ = *name;
      functions[*name].entry = true;
    } else if (const std::size_t at = line.find("Function properties for "); at != line.npos) {
      current_ = line.substr(at + 24);
      functions[current_];
    } else if (line.find("bytes spill stores") != line.npos && !current_.empty()) {
      // The line's own words come before the first number.
      line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
      Items(line, functions[current_]);
    } else if (const std::size_t used = line.find("Used "); used != line.npos && !entry_.empty()) {
      Items(line.substr(used + 5), functions[entry_]);
    } else {
      return line.starts_with("ptxas info") || line.starts_with("ptxas  ");
    }
    return true;
  }

 private:
  static std::optional<std::string> Quoted(std::string_view line, std::string_view prefix) {
    const std::size_t at = line.find(prefix);
    if (at == line.npos) return std::nullopt;
    line.remove_prefix(at + prefix.size());
    return std::string(line.substr(0, line.find('\'')));
  }

  /// "28 registers, used 1 barriers, 1024 bytes smem": numbers and what they count.
  static void Items(std::string_view items, PtxasReport& report) {
    static constexpr std::array<std::pair<std::string_view, std::uint64_t PtxasReport::*>, 9>
        kItems{{
            {"bytes stack frame", &PtxasReport::stack_bytes},
            {"bytes spill stores", &PtxasReport::spill_store_bytes},
            {"bytes spill loads", &PtxasReport::spill_load_bytes},
            {"bytes cumulative stack size", &PtxasReport::stack_bytes},
            {"registers", &PtxasReport::registers},
            {"barriers", &PtxasReport::barriers},
            {"bytes smem", &PtxasReport::shared_bytes},
            {"bytes lmem", &PtxasReport::local_bytes},
            {"bytes cmem", &PtxasReport::constant_bytes},
        }};
    std::uint64_t constants = 0;  // Several banks: they add up.
    while (!items.empty()) {
      const std::size_t comma = std::min(items.find(','), items.size());
      std::string_view item = items.substr(0, comma);
      items.remove_prefix(std::min(comma + 1, items.size()));
      SkipSpaces(item);
      Skip(item, "used ");
      const auto value = Number(item);
      if (!value) continue;
      SkipSpaces(item);
      for (const auto& [what, member] : kItems) {
        if (!item.starts_with(what)) continue;
        const bool constant = member == &PtxasReport::constant_bytes;
        if (constant) constants += *value;
        report.*member = std::max(report.*member, constant ? constants : *value);
      }
    }
  }

  std::string entry_;
  std::string current_;
};

class LogReader {
 public:
  explicit LogReader(const std::function<bool(std::string_view)>& is_ours) : is_ours_(is_ours) {}

  void Line(std::string_view line) {
    if (auto diagnostic = ReadFrontEnd(line)) return Begin(*std::move(diagnostic), line);
    if (auto diagnostic = ReadTool(line)) return Begin(*std::move(diagnostic), line);
    if (ptxas_.Take(line, log_.functions)) {
      open_ = false;
      return Print(line);
    }
    if (line.starts_with("Remark: The warnings can be suppressed")) return;
    if (line.empty()) open_ = withheld_ = false;  // An empty line ends a diagnostic.
    if (withheld_) return;
    if (open_) Continue(line);
    Print(line);
  }

  CompileLog Finish() && { return std::move(log_); }

 private:
  void Begin(Diagnostic diagnostic, std::string_view line) {
    withheld_ = !diagnostic.file.empty() && diagnostic.file != "ptx" && !is_ours_(diagnostic.file);
    if (withheld_) {
      const std::size_t message = line.find(": ", diagnostic.file.size());
      Print(std::string(line.substr(0, message)) + ": " + std::string(kWithheld));
      diagnostic.message = kWithheld;
    } else {
      Print(line);
    }
    open_ = log_.diagnostics.size() < kMaxDiagnostics;
    caret_seen_ = false;
    context_lines_ = 0;
    if (open_) {
      log_.diagnostics.push_back(std::move(diagnostic));
    } else {
      ++log_.dropped;
    }
  }

  /// Excerpt, caret and context of the diagnostic that was begun last; their common indentation is
  /// two spaces.
  void Continue(std::string_view line) {
    Diagnostic& diagnostic = log_.diagnostics.back();
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos) return;
    if (!line.starts_with("  ")) {
      // The message itself went on: a line break in a string of the source.
      if (diagnostic.message.size() < kMaxMessageBytes) diagnostic.message += "\n" + Capped(line);
    } else if (line.substr(first) == "^" && !caret_seen_) {
      caret_seen_ = true;
      diagnostic.column = static_cast<std::uint32_t>(first - 2 + 1);
    } else if (!caret_seen_ && diagnostic.excerpt.empty()) {
      diagnostic.excerpt = Capped(line.substr(2));
    } else if (context_lines_ < kMaxContextLines) {
      ++context_lines_;
      if (!diagnostic.context.empty()) diagnostic.context += '\n';
      diagnostic.context += Capped(line.substr(first));
    }
  }

  void Print(std::string_view line) {
    if (log_.text.size() + line.size() + 1 > kMaxLogBytes) {
      log_.truncated = true;
      return;
    }
    log_.text += line;
    log_.text += '\n';
  }

  const std::function<bool(std::string_view)>& is_ours_;
  CompileLog log_;
  PtxasReader ptxas_;
  bool open_ = false;  ///< Lines that follow belong to the last diagnostic.
  bool withheld_ = false;
  bool caret_seen_ = false;
  std::size_t context_lines_ = 0;
};

}  // namespace

CompileLog ReadCompileLog(std::string_view log,
                          const std::function<bool(std::string_view)>& is_ours) {
  LogReader reader(is_ours);
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    reader.Line(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return std::move(reader).Finish();
}

}  // namespace assay::workers

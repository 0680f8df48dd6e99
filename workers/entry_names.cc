#include "workers/entry_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "validator/ptx/parser.h"

namespace assay::workers {
namespace {

/// The entry that a diagnostic of NVRTC's file of names is about.
std::string_view EntryOf(const Diagnostic& diagnostic) {
  constexpr std::string_view kPragma = "#pragma nv_mangled_name ";
  std::string_view entry = diagnostic.excerpt;
  if (entry.starts_with(kPragma)) entry.remove_prefix(kPragma.size());
  return entry;
}

}  // namespace

void NameEntries(std::vector<Diagnostic>& diagnostics) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file != kNameMap) continue;
    diagnostic.message = fmt::format("entry '{}': {}", EntryOf(diagnostic), diagnostic.message);
    diagnostic.file.clear();
    diagnostic.line = diagnostic.column = 0;
    diagnostic.excerpt.clear();
  }
}

std::vector<std::string> LostNames(const CompileLog& log, const std::vector<std::string>& names) {
  std::vector<std::string> lost;
  for (const std::string& name : names) {
    const bool plain = name.find_first_of(":<(& ") == std::string::npos;
    const bool blamed = std::ranges::any_of(log.diagnostics, [&](const Diagnostic& diagnostic) {
      return diagnostic.file == kNameMap && EntryOf(diagnostic) == name;
    });
    if (plain && blamed) lost.push_back(name);
  }
  return lost;
}

bool IsEntryOf(const std::string& ptx, const std::string& name) {
  const Result<ptx::Module> module =
      ptx::Parse(std::string_view(ptx).substr(0, ptx.find('\0')), "ptx");
  const ptx::Function* function = module ? module->FindFunction(name) : nullptr;
  return function != nullptr && function->is_entry;
}

}  // namespace assay::workers

#include "validator/ptx/isa_coverage.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <vector>

namespace assay::ptx {
namespace {

constexpr std::array<std::string_view, 16> kFamilies = {
    "arithmetic", "integer",        "move",
    "compare",    "floating point", "conversion",
    "memory",     "atomics",        "asynchronous copies",
    "warp",       "barriers",       "fences",
    "mbarrier",   "matrices",       "control",
    "unsupported"};
static_assert(kFamilies.size() == static_cast<std::size_t>(Family::kUnsupported) + 1);

/// `|` would end a cell.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

struct ClassRow {
  std::string_view name, alternatives;
};
constexpr ClassRow kClasses[] = {
#define CLASS(name, alternatives) {#name, alternatives},
#include "validator/ptx/isa_classes.def"
#undef CLASS
};

std::vector<const Form*> FormsOfFamily(Family family) {
  std::vector<const Form*> forms;
  for (const Form& form : Forms().subspan(1)) {
    if (FamilyOf(form.opcode) == family) forms.push_back(&form);
  }
  return forms;
}

void AppendFamily(std::string& text, Family family,
                  const std::function<Taken(const Form&)>& executes) {
  const std::vector<const Form*> forms = FormsOfFamily(family);
  if (forms.empty()) return;
  const auto to = std::back_inserter(text);
  std::size_t running = 0;
  std::string rows;
  for (const Form* const form : forms) {
    fmt::format_to(std::back_inserter(rows), "| `{}` | {} | {}.{} | {} |", Escaped(Text(*form)),
                   form->section, form->ptx_version / 10, form->ptx_version % 10,
                   form->sm <= 70 ? "any" : ArchitectureText(form->sm));
    if (executes) {
      const Taken result = executes(*form);
      running += result.taken == result.tried ? 1 : 0;
      rows += result.taken == result.tried ? std::string(" yes |")
              : result.taken == 0
                  ? std::string(" no |")
                  : fmt::format(" {} of {} spellings |", result.taken, result.tried);
    }
    rows += '\n';
  }
  fmt::format_to(to, "\n## {} ({} forms", Name(family), forms.size());
  if (executes) fmt::format_to(to, ", {} executed", running);
  text += ")\n\n";
  text += executes ? "| form | section | PTX | needs | executes |\n|---|---|---|---|---|\n"
                   : "| form | section | PTX | needs |\n|---|---|---|---|\n";
  text += rows;
}

}  // namespace

std::string_view Name(Family family) { return kFamilies[static_cast<std::size_t>(family)]; }

std::string CoverageDocument(const std::function<Taken(const Form&)>& executes) {
  std::string text = fmt::format(
      "# PTX coverage\n\n"
      "Generated from the ISA table (validator/ptx/isa.def), which holds {} forms. A form is what "
      "the parser and the verifier take; "
      "an instruction outside of the table is refused by name and line, and what depends on it is "
      "inconclusive.{}\n\n"
      "`{{.x}}` may be missing, `.a|b` is a choice, `<name>` one of the classes at the end. "
      "Sections are those of the PTX ISA "
      "manual 9.0. Version and architecture are those of the plainest variant of the form.\n",
      Forms().size() - 1,
      executes ? " Whether the emulator executes a form is found by loading a module with each of "
                 "its spellings: every alternative of every slot, every optional part both ways; "
                 "one that it does not execute is refused at load, by name and line."
               : "");
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    AppendFamily(text, static_cast<Family>(i), executes);
  }
  text += "\n## Classes\n\n| name | one of |\n|---|---|\n";
  for (const ClassRow& row : kClasses) {
    fmt::format_to(std::back_inserter(text), "| `<{}>` | `{}` |\n", row.name,
                   Escaped(row.alternatives));
  }
  return text;
}

}  // namespace assay::ptx

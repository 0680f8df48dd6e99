#include "report/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/digest.h"
#include "base/text.h"
#include "validator/findings/render.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostMessage = 1000;

std::string NameOf(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// Where a site is for a reader. PTX that somebody wrote has its own lines; of a header that was
// inlined, the line of the kernel that called it.
Diagnostic::Place PlaceOf(const SourceSite& site, const std::string& file) {
  Diagnostic::Place place{.file = file, .excerpt = std::string(Strip(site.excerpt))};
  if (file.ends_with(".ptx")) {
    place.line = std::max(site.ptx_line, 1u);
  } else if (site.line > 0 && NameOf(site.file) == NameOf(file)) {
    place.line = site.line;
    place.column = site.column;
  } else if (!site.called_at.empty()) {
    place.line = std::max(site.called_at.back(), 1u);
  }
  return place;
}

bool HasLine(const SourceSite& site) { return site.line > 0 || site.ptx_line > 0; }

// The line that a finding without accesses is about: where most of its error entered.
const SourceSite* OriginOf(const Finding& finding) {
  for (const ErrorShare& share : finding.origins) {
    if (HasLine(share.site)) return &share.site;
  }
  return nullptr;
}

bool IsAboutThePlan(FindingKind kind) { return kind == FindingKind::kMalformedPlan; }

const char* LevelOf(FindingKind kind) {
  return kind == FindingKind::kCompileWarning ? "warning" : "error";
}

Json PhysicalLocation(const Diagnostic::Place& place) {
  Json region = {{"startLine", place.line}};
  if (place.column > 0) region["startColumn"] = place.column;
  if (!place.excerpt.empty()) region["snippet"] = {{"text", place.excerpt}};
  return {{"artifactLocation", {{"uri", UriOf(place.file)}}}, {"region", std::move(region)}};
}

std::string LineText(const Diagnostic::Place& place, const char* level, const std::string& text) {
  const std::string column = place.column > 0 ? fmt::format(":{}", place.column) : "";
  return fmt::format("{}:{}{}: {}: {}", place.file, place.line, column, level, text);
}

}  // namespace

Diagnostic DiagnosticOf(const Finding& finding, const Files& files) {
  Diagnostic diagnostic{.kind = finding.kind};
  const std::string& file = IsAboutThePlan(finding.kind) ? files.launch : files.kernel;
  diagnostic.place.file = file;
  std::string message = finding.message;
  for (const std::string& more : {finding.missing, finding.cause, finding.origin}) {
    if (!more.empty()) message += "; " + more;
  }
  diagnostic.message = OneLine(ValidUtf8(message), kMostMessage);
  if (finding.accesses.empty()) {
    if (const SourceSite* const origin = OriginOf(finding))
      diagnostic.place = PlaceOf(*origin, file);
    return diagnostic;
  }
  diagnostic.place = PlaceOf(finding.accesses.front().site, file);
  for (std::size_t i = 0; i < finding.accesses.size(); ++i) {
    const Access& access = finding.accesses[i];
    if (access.threads == 0) continue;  // the compiler's words stand in the message
    diagnostic.notes.push_back(
        {PlaceOf(access.site, file),
         OneLine(ValidUtf8(fmt::format(
                     "{} by {}{}", access.what, Describe(access.thread),
                     access.threads > 1 ? fmt::format(" and {} more", access.threads - 1) : "")),
                 kMostMessage)});
  }
  return diagnostic;
}

std::vector<Diagnostic> DiagnosticsOf(const verdict::Verdict& verdict, const Files& files) {
  std::vector<Diagnostic> diagnostics;
  std::vector<const Finding*> told;
  for (const verdict::Counterexample* const counterexample : verdict.Counterexamples()) {
    for (const Finding& finding : counterexample->findings) {
      const bool known =
          std::ranges::any_of(told, [&](const Finding* one) { return SameDefect(*one, finding); });
      if (known) continue;
      told.push_back(&finding);
      diagnostics.push_back(DiagnosticOf(finding, files));
      diagnostics.back().gate = counterexample->gate;
      diagnostics.back().case_ = OneLine(ValidUtf8(counterexample->description), kMostMessage);
    }
  }
  return diagnostics;
}

std::string CompilerText(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    const std::string shown =
        diagnostic.case_.empty() ? "" : fmt::format(" (case {})", diagnostic.case_);
    text += LineText(diagnostic.place, LevelOf(diagnostic.kind),
                     fmt::format("{}{} [{}]\n", diagnostic.message, shown, Name(diagnostic.kind)));
    for (const Diagnostic::Note& note : diagnostic.notes)
      text += LineText(note.place, "note", note.text + "\n");
  }
  return text;
}

std::string UriOf(const std::string& file) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/+@,=";
  std::string uri = file.starts_with('/') ? "file://" : "";
  for (const char c : file) {
    if (kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return uri;
}

Json SarifLog(const std::string& version, const std::vector<Diagnostic>& diagnostics,
              const Ending& ending) {
  Json rules = Json::array();
  std::map<FindingKind, std::size_t> rule_of;
  Json results = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    const auto [rule, fresh] = rule_of.emplace(diagnostic.kind, rules.size());
    const std::string kind(Name(diagnostic.kind));
    if (fresh) {
      rules.push_back(
          {{"id", kind},
           {"shortDescription", {{"text", MeaningOf(diagnostic.kind)}}},
           {"defaultConfiguration", {{"level", LevelOf(diagnostic.kind)}}},
           {"properties", {{"tags", Json::array({"cuda", FamilyOf(diagnostic.kind)})}}}});
    }
    // The same defect on a later day: lines move, what stands on them less so.
    const std::string fingerprint =
        kind + "\n" + diagnostic.place.file + "\n" +
        (diagnostic.place.excerpt.empty() ? std::to_string(diagnostic.place.line)
                                          : diagnostic.place.excerpt);
    Json result = {
        {"ruleId", kind},
        {"ruleIndex", rule->second},
        {"level", LevelOf(diagnostic.kind)},
        {"message", {{"text", diagnostic.message}}},
        {"locations", Json::array({{{"physicalLocation", PhysicalLocation(diagnostic.place)}}})},
        {"partialFingerprints", {{"assayDefect/v1", Sha256Hex(fingerprint).substr(0, 32)}}}};
    Json related = Json::array();
    for (const Diagnostic::Note& note : diagnostic.notes) {
      related.push_back({{"id", related.size()},
                         {"message", {{"text", note.text}}},
                         {"physicalLocation", PhysicalLocation(note.place)}});
    }
    if (!related.empty()) result["relatedLocations"] = std::move(related);
    Json properties = Json::object();
    if (!diagnostic.gate.empty()) properties["gate"] = diagnostic.gate;
    if (!diagnostic.case_.empty()) properties["case"] = diagnostic.case_;
    if (!properties.empty()) result["properties"] = std::move(properties);
    results.push_back(std::move(result));
  }
  Json invocation = {{"executionSuccessful", ending.conclusive}};
  if (!ending.conclusive) {
    invocation["toolExecutionNotifications"] =
        Json::array({{{"level", "error"},
                      {"message", {{"text", OneLine(ValidUtf8(ending.reason), kMostMessage)}}}}});
  }
  return {
      {"$schema",
       "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
       "sarif-schema-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       Json::array(
           {{{"tool",
              {{"driver", {{"name", "assay"}, {"version", version}, {"rules", std::move(rules)}}}}},
             {"invocations", Json::array({std::move(invocation)})},
             {"results", std::move(results)}}})}};
}

}  // namespace assay::report

#include "dataset/card.h"

#include <fmt/format.h>

#include "dataset/formats.h"

namespace assay::dataset {
namespace {

// A YAML string that nothing in it can end.
std::string Quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', true, Json::error_handler_t::replace);
}

// The front matter knows one licence: what every attempt has, or "other".
std::string LicenceOf(const std::map<std::string, std::uint64_t>& licences) {
  if (licences.size() != 1) return licences.empty() ? "unknown" : "other";
  std::string licence = licences.begin()->first;
  for (char& c : licence) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return licence;
}

std::string Counts(const char* title, const std::map<std::string, std::uint64_t>& counts) {
  std::string text = fmt::format("\n| {} | attempts |\n|---|---|\n", title);
  for (const auto& [name, count] : counts) {
    std::string cell;
    for (const char c : name) cell += c == '|' || c == '\n' || c == '<' ? ' ' : c;
    text += fmt::format("| {} | {} |\n", cell, count);
  }
  return text;
}

}  // namespace

std::string_view ExtensionOf(FileKind kind) {
  switch (kind) {
    case FileKind::kJsonl:
      return "jsonl";
    case FileKind::kJsonlZst:
      return "jsonl.zst";
    case FileKind::kParquet:
      return "parquet";
  }
  return "jsonl";
}

std::string CardOf(const CardFacts& facts) {
  std::string card = "---\n";
  card += fmt::format("pretty_name: {}\n", Quoted(facts.options.name));
  card += fmt::format("license: {}\n", Quoted(LicenceOf(facts.licences)));
  card += "language:\n- en\ntags:\n- code\n- cuda\n- assay\nconfigs:\n";
  for (const auto& [format, parts] : facts.report.rows) {
    if (parts.empty()) continue;
    card += fmt::format("- config_name: {}\n  data_files:\n", format);
    for (const auto& [part, rows] : parts) {
      card += fmt::format("  - split: {0}\n    path: {1}/{0}.{2}\n", part, format,
                          ExtensionOf(facts.options.kind));
    }
  }
  card += "---\n\n# " + facts.options.name + "\n\n";
  card +=
      "CUDA kernels written by language models, each judged by Assay: compiled in a jail, run on a "
      "sanitizing PTX\nemulator, compared with an FP64 reference under a derived error bound. "
      "Every "
      "refuted kernel has a counterexample that\nreplays bit for bit (`assay corpus replay`, "
      "`assay "
      "replay FILE`). Kernels are what models wrote: read them as data, run\nthem in a "
      "sandbox.\n\n";
  card += "| configuration | rows hold | rows by split |\n|---|---|---|\n";
  for (const Format& format : AllFormats()) {
    const auto rows = facts.report.rows.find(std::string(format.name));
    if (rows == facts.report.rows.end()) continue;
    std::string counts;
    for (const auto& [part, count] : rows->second)
      counts += fmt::format("{}{}: {}", counts.empty() ? "" : ", ", part, count);
    card += fmt::format("| {} | {} | {} |\n", format.name, format.what,
                        counts.empty() ? "none" : counts);
  }
  card += fmt::format(
      "\n## Splits\n\nWhole families of ops belong to one split, so that an op that is evaluated, "
      "and "
      "its sisters, are never in training.\nKernels of one split that are near-duplicates of "
      "another "
      "split's (the same text but for names and layout, the same\ncontrol flow, or four fifths of "
      "their text in common) are left out: {} rows. Recipe:\n\n    {}\n",
      facts.report.left_out, CompactJson(facts.recipe));
  card += "\n## Sources\n" + Counts("licence", facts.licences) + Counts("model", facts.models) +
          Counts("op", facts.ops);
  card +=
      "\nColumn `about` of each row names op, binding, target, model, run, attempt, verdict, the "
      "judge's versions, the licence and\nthe digest of the counterexample. `assay reward` judges "
      "new "
      "candidates as the column `environment` of `rl` says.\n";
  return card;
}

}  // namespace assay::dataset

#include "importers/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>

#include "ops/names.h"

namespace assay::importers {
namespace {

constexpr std::array<std::string_view, 10> kFiles = {
    "op.json",         "reference.cu", "reference.py",   "reference.json",  "import.json",
    "workloads.jsonl", "generator.cu", "generator.json", "naive/kernel.cu", "naive/launch.json"};
constexpr std::size_t kLargestFile = 4u << 20;
constexpr std::size_t kMostNotes = 200;

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), "what the import answered");
}

/// One line of printable text: it comes from the jail.
std::string Line(std::string text) {
  for (char& c : text) {
    if (c < 32 || c > 126) c = '?';
  }
  if (text.size() > 400) text.resize(400);
  return text;
}

Error Refusal(const Json& refused, const Problem& problem) {
  const auto text = [&](const char* key) {
    return refused.is_object() && refused.contains(key) && refused[key].is_string()
               ? Line(refused[key].get<std::string>())
               : std::string();
  };
  std::string place = problem.source.string();
  if (refused.is_object() && refused.contains("line") && refused["line"].is_number_integer()) {
    if (const auto line = refused["line"].get<std::int64_t>(); line > 0)
      place += fmt::format(":{}", line);
  }
  std::string message = "cannot be imported: " + text("what");
  if (const std::string source = text("source"); !source.empty())
    message += fmt::format(" (in: {})", source);
  return {ErrorKind::kUnsupported, std::move(message), std::move(place), text("cure")};
}

}  // namespace

Result<Problem> ParseProblem(const std::string& kind, const std::string& source) {
  Problem problem;
  problem.kind = kind;
  std::string file = source;
  if (kind == "torch") {
    const std::size_t colon = source.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == source.size()) {
      return Fail(ErrorKind::kUsage, fmt::format("'{}' names no function", source), "assay import",
                  "write FILE:FUNCTION, for example model.py:attention");
    }
    problem.function = source.substr(colon + 1);
    if (!ops::IsIdentifier(problem.function)) {
      return Fail(ErrorKind::kUsage, fmt::format("'{}' is no name", problem.function),
                  "assay import", "write FILE:FUNCTION, for example model.py:attention");
    }
    file = source.substr(0, colon);
  }
  std::error_code error;
  problem.source = std::filesystem::absolute(file, error);
  if (error || !std::filesystem::exists(problem.source, error)) {
    return Fail(ErrorKind::kUsage, "there is no such file", file, "check the path");
  }
  const bool folder = std::filesystem::is_directory(problem.source, error);
  if (folder && (kind == "torch" || kind == "kernelbench")) {
    return Fail(ErrorKind::kUsage, "is a folder", file, "name the Python file");
  }
  if (!folder && (kind == "sol-execbench" || kind == "flashinfer-trace")) {
    // A definition's workloads lie beside it.
    problem.source = problem.source.parent_path();
  }
  if (kind == "kernelbench") {
    std::string stem = problem.source.stem().string();
    const std::size_t letter = stem.find_first_not_of("0123456789_");
    if (letter != std::string::npos) stem = stem.substr(letter);
    for (char& c : stem) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    if (ops::IsIdentifier(stem)) problem.name = stem;
  }
  return problem;
}

Json RequestFor(const Problem& problem) {
  return {{"kind", problem.kind},
          {"function", problem.function},
          {"name", problem.name},
          {"strict", problem.strict},
          {"specialised", problem.specialised},
          {"value_only", problem.value_only}};
}

Result<Imported> ReadAnswer(const Json& answer, const Problem& problem) {
  if (!answer.is_object()) return Bad("is no object");
  if (answer.contains("refused")) return std::unexpected(Refusal(answer["refused"], problem));
  if (!answer.contains("files") || !answer["files"].is_object()) return Bad("has no files");
  Imported imported;
  for (const auto& [name, content] : answer["files"].items()) {
    if (std::ranges::find(kFiles, name) == kFiles.end()) {
      return Bad(fmt::format("has a file '{}', which no op has", Line(name)));
    }
    if (!content.is_string()) return Bad("a file is no text");
    imported.files[name] = content.get<std::string>();
    if (imported.files[name].size() > kLargestFile) return Bad(name + " is too large");
  }
  const char* const reference = problem.value_only ? "reference.py" : "reference.cu";
  for (const char* needed : {"op.json", reference, "reference.json", "import.json"}) {
    if (!imported.files.contains(needed)) return Bad(fmt::format("has no {}", needed));
  }
  ASSAY_TRY(const Json op, ParseJson(imported.files["op.json"], "op.json"));
  if (!op.is_object() || !op.contains("name") || !op["name"].is_string() ||
      !ops::IsIdentifier(op["name"].get<std::string>())) {
    return Bad("names no op");
  }
  imported.name = op["name"].get<std::string>();
  ASSAY_TRY(const Json provenance, ParseJson(imported.files["import.json"], "import.json"));
  if (provenance.is_object() && provenance.contains("inferred") &&
      provenance["inferred"].is_array()) {
    for (const Json& note : provenance["inferred"]) {
      if (note.is_string() && imported.inferred.size() < kMostNotes)
        imported.inferred.push_back(Line(note.get<std::string>()));
    }
  }
  return imported;
}

Result<Imported> Import(const Problem& problem, const Python& python, const RunOptions& options) {
  ASSAY_TRY(const Json answer, RunInJail(python, problem.source, RequestFor(problem), {}, options));
  return ReadAnswer(answer, problem);
}

Result<ops::OpSpec> WriteOp(const Imported& imported, const Path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / "op.json", error) &&
      !std::filesystem::exists(folder / "import.json", error)) {
    return Fail(ErrorKind::kUsage, "holds an op that was not imported", folder.string(),
                "choose another folder with --out");
  }
  ASSAY_TRY_VOID(MakeFolders(folder / "naive"));
  // What an earlier import left and this one does not have.
  for (const std::string_view name : kFiles) {
    if (!imported.files.contains(std::string(name))) std::filesystem::remove(folder / name, error);
  }
  for (const auto& [name, content] : imported.files) {
    ASSAY_TRY_VOID(WriteFileAtomically(folder / name, content));
  }
  return ops::LoadOp(folder);
}

}  // namespace assay::importers

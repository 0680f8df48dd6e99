// Prompts are files: templates with {{variables}}, checked strictly, named by the hash of all of
// them.
//
// A template's variables and the given ones must agree both ways: a name that nobody gives and a
// value that nobody uses are errors that name template and line. What is put in is never looked at
// again: a {{name}} inside a value stays text.
//
//   ASSAY_TRY(PromptLibrary prompts, PromptLibrary::Load(folder));
//   ASSAY_TRY(std::string text, prompts.Render("repair/race.md", {{"finding", ...}, {"source",
//   ...}}));
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::prompts {

using Variables = std::map<std::string, std::string, std::less<>>;

/// Fills `text`; `name` is for messages.
Result<std::string> RenderTemplate(std::string_view text, const std::string& name,
                                   const Variables& variables);

class PromptLibrary {
 public:
  /// Reads every .md file below `folder`.
  static Result<PromptLibrary> Load(const Path& folder);
  /// Of the running program (base/environment.h).
  static Path DefaultFolder();

  /// `name` is the path below the folder, e.g. "repair/race.md".
  Result<std::string> Render(std::string_view name, const Variables& variables) const;
  bool Has(std::string_view name) const { return templates_.contains(name); }
  std::vector<std::string> Names() const;
  /// SHA-256 over names and texts of all templates.
  const std::string& digest() const { return digest_; }
  const Path& folder() const { return folder_; }

 private:
  Path folder_;
  std::map<std::string, std::string, std::less<>> templates_;
  std::string digest_;
};

}  // namespace assay::prompts

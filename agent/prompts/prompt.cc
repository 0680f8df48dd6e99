#include "agent/prompts/prompt.h"

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/environment.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::prompts {
namespace {

constexpr std::uintmax_t kMaxTemplateBytes = 256 * 1024;

bool IsName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string PlaceOf(const std::string& name, std::string_view text, std::size_t at) {
  return name + ":" +
         std::to_string(
             1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace

Result<std::string> RenderTemplate(std::string_view text, const std::string& name,
                                   const Variables& variables) {
  std::string result;
  std::set<std::string, std::less<>> used;
  std::vector<std::string> known;
  for (const auto& [key, value] : variables) known.push_back(key);
  std::size_t at = 0;
  while (true) {
    const std::size_t open = text.find("{{", at);
    result += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find("}}", open);
    const std::string_view variable = close == std::string_view::npos
                                          ? std::string_view()
                                          : Strip(text.substr(open + 2, close - open - 2));
    if (!IsName(variable)) {
      return Fail(ErrorKind::kMalformedInput, "'{{' does not begin a variable",
                  PlaceOf(name, text, open),
                  "write {{name}} with lower-case letters, digits and underscores");
    }
    const auto found = variables.find(variable);
    if (found == variables.end()) {
      const std::string nearest = Nearest(variable, known);
      return Fail(ErrorKind::kMalformedInput, "unknown variable '" + std::string(variable) + "'",
                  PlaceOf(name, text, open),
                  nearest.empty() ? "docs/prompts.md lists what each template is given"
                                  : "did you mean '" + nearest + "'?");
    }
    result += found->second;
    used.insert(found->first);
    at = close + 2;
  }
  for (const auto& [key, value] : variables) {
    if (used.contains(key)) continue;
    return Fail(ErrorKind::kMalformedInput, "the template does not use the variable '" + key + "'",
                name + ":1", "put {{" + key + "}} where the model should read it");
  }
  return result;
}

Result<PromptLibrary> PromptLibrary::Load(const Path& folder) {
  PromptLibrary library;
  library.folder_ = folder;
  std::error_code error;
  std::filesystem::recursive_directory_iterator files(folder, error);
  if (error) {
    return Fail(ErrorKind::kEnvironment, "the prompts cannot be read: " + error.message(),
                folder.string(),
                "set ASSAY_PROMPTS to the folder that holds system.md and task.md");
  }
  for (; files != std::filesystem::recursive_directory_iterator(); files.increment(error)) {
    if (error) return Fail(ErrorKind::kEnvironment, error.message(), folder.string());
    if (!files->is_regular_file(error) || files->path().extension() != ".md") continue;
    ASSAY_TRY(std::string text, ReadFile(files->path(), kMaxTemplateBytes));
    library.templates_[files->path().lexically_relative(folder).generic_string()] =
        UnixNewlines(ValidUtf8(text));
  }
  std::string all;
  for (const auto& [name, text] : library.templates_) {
    all += name + " " + std::to_string(text.size()) + "\n" + text;
  }
  library.digest_ = Sha256Hex(all);
  return library;
}

Path PromptLibrary::DefaultFolder() { return OwnEnvironment().prompts; }

Result<std::string> PromptLibrary::Render(std::string_view name, const Variables& variables) const {
  const auto found = templates_.find(name);
  if (found == templates_.end()) {
    return Fail(ErrorKind::kEnvironment, "the template '" + std::string(name) + "' is missing",
                folder_.string(),
                "restore it from the sources, or write it; docs/prompts.md lists what it is given");
  }
  return RenderTemplate(found->second, found->first, variables);
}

std::vector<std::string> PromptLibrary::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : templates_) names.push_back(name);
  return names;
}

}  // namespace assay::prompts

// Keys: where they come from, and that they go nowhere but into the one request header.
//
// A Secret cannot be printed, compared or serialised; its text is reached through Reveal(), which
// only HTTP header code calls. A Redactor knows a run's secrets and blanks them in whatever came
// from outside (a server may echo a key in an error page or in a reply), before it can reach a
// file, a message or a prompt.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::models {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  bool empty() const { return text_.empty(); }
  /// For request headers alone.
  const std::string& Reveal() const { return text_; }

 private:
  std::string text_;
};

class Redactor {
 public:
  /// Secrets of fewer than 6 bytes are not blanked: they would occur by chance.
  void Add(const Secret& secret);
  /// Blanks whole secrets: for what must otherwise stay as it is (a reply). `cut`: the text ends
  /// where somebody cut it, so the beginning of a secret at its end is blanked as well.
  std::string Redact(std::string_view text, bool cut = false) const;
  /// At most `max_bytes` of `text`, for messages. Blanks first and cuts then; blanks pieces of
  /// secrets too, because whoever sent the text may have cut it before us.
  std::string Quote(std::string_view text, std::size_t max_bytes) const;
  /// Blanks secrets and pieces of them.
  Error Redact(Error error) const;

 private:
  std::string RedactPieces(std::string_view text) const;

  std::vector<std::string> secrets_;
};

/// Reads a variable of the environment.
using VariableReader = std::function<std::optional<std::string>(const std::string&)>;

/// A key from `file` if given, else from the first variable that is set and not empty; an empty
/// Secret where there is none. White space around it is dropped; a key with a line break or a
/// control character inside is refused (it would split a header).
Result<Secret> FindKey(const Path& file, const std::vector<std::string>& variables,
                       const VariableReader& read);

/// `url` without user, password, query and fragment: what messages and records may show.
std::string PublicUrl(std::string_view url);

}  // namespace assay::models

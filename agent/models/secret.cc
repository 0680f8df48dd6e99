#include "agent/models/secret.h"

#include <algorithm>

#include "base/text.h"

namespace assay::models {
namespace {

constexpr std::size_t kShortestRedacted = 6;
// A piece of this length is no word of a message any more, unless the secret is made of words;
// secrets shorter than two pieces are blanked as a whole only.
constexpr std::size_t kShortestPiece = 8;
constexpr std::string_view kBlank = "[key]";
constexpr std::uintmax_t kMaxKeyFileBytes = 16 * 1024;

Result<Secret> Checked(std::string_view text, std::string place) {
  const std::string_view key = Strip(text);
  for (const char c : key) {
    if (static_cast<unsigned char>(c) < 0x21 || static_cast<unsigned char>(c) > 0x7e) {
      return Fail(ErrorKind::kUsage, "the key holds a space, a line break or a control character",
                  std::move(place), "the key must stand there alone, on one line");
    }
  }
  return Secret(std::string(key));
}

// Length of the longest run of `secret` that `text` begins with.
std::size_t PieceAt(std::string_view text, std::string_view secret) {
  std::size_t longest = 0;
  for (std::size_t from = 0; from + longest < secret.size(); ++from) {
    const std::string_view rest = secret.substr(from);
    std::size_t length = 0;
    while (length < rest.size() && length < text.size() && rest[length] == text[length]) ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

}  // namespace

void Redactor::Add(const Secret& secret) {
  if (secret.Reveal().size() >= kShortestRedacted) secrets_.push_back(secret.Reveal());
  // Longest first, so that a secret that contains another leaves no rest.
  std::ranges::sort(secrets_, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
}

std::string Redactor::Redact(std::string_view text, bool cut) const {
  std::string result(text);
  for (const std::string& secret : secrets_) {
    for (std::size_t at = result.find(secret); at != std::string::npos;
         at = result.find(secret, at)) {
      result.replace(at, secret.size(), kBlank);
      at += kBlank.size();
    }
  }
  if (!cut) return result;
  std::size_t begun = 0;
  for (const std::string& secret : secrets_) {
    for (std::size_t length = kShortestRedacted; length < secret.size(); ++length) {
      if (result.ends_with(std::string_view(secret).substr(0, length)))
        begun = std::max(begun, length);
    }
  }
  if (begun > 0) result.replace(result.size() - begun, begun, kBlank);
  return result;
}

std::string Redactor::RedactPieces(std::string_view text) const {
  const std::string whole = Redact(text);
  std::string result;
  for (std::size_t at = 0; at < whole.size();) {
    std::size_t piece = 0;
    for (const std::string& secret : secrets_) {
      if (secret.size() >= 2 * kShortestPiece)
        piece = std::max(piece, PieceAt(std::string_view(whole).substr(at), secret));
    }
    if (piece >= kShortestPiece) {
      result += kBlank;
      at += piece;
    } else {
      result += whole[at++];
    }
  }
  return result;
}

std::string Redactor::Quote(std::string_view text, std::size_t max_bytes) const {
  return Head(RedactPieces(text), max_bytes);
}

Error Redactor::Redact(Error error) const {
  return {error.kind, RedactPieces(error.message), RedactPieces(error.place),
          RedactPieces(error.cure)};
}

Result<Secret> FindKey(const Path& file, const std::vector<std::string>& variables,
                       const VariableReader& read) {
  if (!file.empty()) {
    ASSAY_TRY(const std::string text, ReadFile(file, kMaxKeyFileBytes));
    ASSAY_TRY(Secret secret, Checked(text, file.string()));
    if (secret.empty()) {
      return Fail(ErrorKind::kUsage, "the key file is empty", file.string(), "put the key into it");
    }
    return secret;
  }
  for (const std::string& name : variables) {
    const std::optional<std::string> text = read(name);
    if (text && !Strip(*text).empty()) return Checked(*text, "$" + name);
  }
  return Secret();
}

std::string PublicUrl(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = url.find("://");
  const std::size_t authority = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t path = std::min(url.find('/', authority), url.size());
  const std::size_t at = url.substr(0, path).rfind('@');
  if (at == std::string_view::npos || at < authority) return std::string(url);
  return std::string(url.substr(0, authority)) + std::string(url.substr(at + 1));
}

}  // namespace assay::models

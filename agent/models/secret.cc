#include "agent/models/secret.h"

#include <algorithm>

#include "base/text.h"

namespace assay::models {
namespace {

constexpr std::size_t kShortestRedacted = 6;
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

}  // namespace

void Redactor::Add(const Secret& secret) {
  if (secret.Reveal().size() >= kShortestRedacted) secrets_.push_back(secret.Reveal());
  // Longest first, so that a secret that contains another leaves no rest.
  std::ranges::sort(secrets_, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
}

std::string Redactor::Redact(std::string_view text) const {
  std::string result(text);
  for (const std::string& secret : secrets_) {
    for (std::size_t at = result.find(secret); at != std::string::npos;
         at = result.find(secret, at)) {
      result.replace(at, secret.size(), "[key]");
      at += 5;
    }
  }
  return result;
}

Error Redactor::Redact(Error error) const {
  return {error.kind, Redact(error.message), Redact(error.place), Redact(error.cure)};
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

#include "serve/tokens.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <set>

#include "base/digest.h"
#include "base/text.h"

namespace assay::serve {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kMostClient = 64;

bool IsClientName(std::string_view name) {
  return !name.empty() && name.size() <= kMostClient &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
             std::string_view::npos;
}

std::unexpected<Error> Bad(const Path& file, std::size_t line, std::string what) {
  return Fail(ErrorKind::kUsage, std::move(what), file.string() + ":" + std::to_string(line),
              "a line is CLIENT TOKEN; openssl rand -hex 24 makes a token");
}

}  // namespace

Result<Tokens> Tokens::Load(const Path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return Fail(ErrorKind::kUsage, "others than its owner can read or write the tokens",
                file.string(), "chmod 600 " + file.string() + ", and make new ones");
  }
  ASSAY_TRY(const std::string text, ReadFile(file, 1u << 20));
  Tokens tokens;
  std::set<std::string> digests;
  std::size_t number = 0;
  for (const std::string_view raw : SplitLines(text)) {
    ++number;
    const std::string_view line = Strip(raw);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t blank = line.find_first_of(" \t");
    const std::string client(line.substr(0, blank));
    const std::string_view token =
        blank == std::string_view::npos ? std::string_view() : Strip(line.substr(blank));
    if (!IsClientName(client)) return Bad(file, number, "this is no name of a client");
    if (token.size() < kShortest || token.find_first_of(" \t") != std::string_view::npos)
      return Bad(file, number, "the token is no word of at least 16 characters");
    const std::string digest = Sha256Hex(token);
    if (!digests.insert(digest).second) return Bad(file, number, "two clients have one token");
    if (!tokens.clients_.emplace(client, digest).second)
      return Bad(file, number, "the client is named twice");
  }
  if (tokens.clients_.empty()) return Bad(file, 1, "no client is named");
  return tokens;
}

Result<Tokens> Tokens::LoadOrMake(const Path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    std::array<unsigned char, 24> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      return Fail(ErrorKind::kEnvironment, "the system gives no random bytes", file.string());
    std::string text = "local ";
    for (const unsigned byte : bytes) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    text += '\n';
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      if (fd) ::unlink(file.c_str());  // a part of a token would be taken for one at the next start
      return Fail(ErrorKind::kEnvironment, "cannot write a token", file.string(),
                  "check that the folder is writable");
    }
  }
  return Load(file);
}

std::optional<std::string> Tokens::ClientOf(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return std::nullopt;
  const std::string digest = Sha256Hex(Strip(authorization.substr(kScheme.size())));
  std::optional<std::string> client;
  for (const auto& [name, known] : clients_) {
    // All are looked at: how long it takes says nothing.
    if (CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0) client = name;
  }
  return client;
}

}  // namespace assay::serve

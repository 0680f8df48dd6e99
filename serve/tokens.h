// Who may use the service: a bearer token for each client, from a file that only its owner can read.
//
//   # client  token
//   ann       1f9c...        at least 16 characters
//
// Tokens are kept as digests and compared in constant time; no message holds one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace assay::serve {

class Tokens {
 public:
  static Result<Tokens> Load(const Path& file);
  /// FILE with a fresh token for the client "local", made where there is none, and read.
  static Result<Tokens> LoadOrMake(const Path& file);

  /// The client of "Bearer TOKEN"; nothing where there is none.
  std::optional<std::string> ClientOf(std::string_view authorization) const;
  std::size_t size() const { return clients_.size(); }

 private:
  std::map<std::string, std::string> clients_;  ///< Client -> SHA-256 of the token.
};

}  // namespace assay::serve

#include "base/digest.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace assay {

std::string Sha256Hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  ASSAY_CHECK(ok == 1 && size == 32);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  text.reserve(64);
  for (unsigned int i = 0; i < size; ++i) {
    text += kHex[digest[i] >> 4];
    text += kHex[digest[i] & 15];
  }
  return text;
}

std::string Sha256Hex(std::string_view text) {
  return Sha256Hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace assay

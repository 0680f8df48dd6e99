#include "runs/testing/keys.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>

namespace assay::testing {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void WriteKeys(const Path& folder, const std::string& name) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), &EVP_PKEY_free);
  const auto write = [&](const Path& file, bool secret) {
    const std::unique_ptr<std::FILE, Close> out(std::fopen(file.c_str(), "w"));
    ASSAY_CHECK(out != nullptr, file.string());
    const int written =
        secret ? PEM_write_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr)
               : PEM_write_PUBKEY(out.get(), key.get());
    ASSAY_CHECK(written == 1 && ::chmod(file.c_str(), secret ? 0600 : 0644) == 0, file.string());
  };
  write(folder / (name + ".pem"), true);
  write(folder / (name + ".pub.pem"), false);
}

}  // namespace assay::testing

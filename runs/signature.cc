#include "runs/signature.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"

namespace assay::runs {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSignatureBytes = 64;
constexpr std::uintmax_t kMaxKeyFile = 16 * 1024;
constexpr std::string_view kIdPrefix = "ed25519:";
constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";
constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;
using Bio = std::unique_ptr<BIO, FreeBio>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

/// A key's text, gone from memory with the object.
struct KeyText {
  std::string text;
  KeyText() = default;
  KeyText(KeyText&& other) noexcept : text(std::move(other.text)) {}
  ~KeyText() { OPENSSL_cleanse(text.data(), text.size()); }
};

// OpenSSL would ask the terminal for the password of an encrypted key.
int NoPassword(char*, int, int, void*) { return -1; }

std::unexpected<Error> NoKey(const Path& file, std::string what, std::string cure) {
  return Fail(ErrorKind::kUsage, std::move(what), file.string(), std::move(cure));
}

// One descriptor for what is looked at and what is read: a name may be given to another file between.
Result<KeyText> ReadSecret(const Path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd) {
    return NoKey(file, "the key cannot be opened",
                 "name a file (no link) that holds an Ed25519 private key");
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > off_t{kMaxKeyFile})
    return NoKey(file, "this is no key file", "name a PEM file with an Ed25519 private key");
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return NoKey(file, "the key belongs to another user",
                 "sign with a key of your own: openssl genpkey -algorithm ed25519");
  }
  if ((info.st_mode & 077) != 0) {
    return NoKey(file, "others than its owner can read or write the key",
                 "chmod 600 " + file.string() + "; if they may have read it, make a new one");
  }
  KeyText key;
  key.text.resize(static_cast<std::size_t>(info.st_size));
  std::size_t filled = 0;
  while (filled < key.text.size()) {
    const ssize_t got = ::read(fd.get(), key.text.data() + filled, key.text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return key;
}

std::string RawPublic(const EVP_PKEY* key) {
  std::string bytes(kKeyBytes, '\0');
  std::size_t size = bytes.size();
  ASSAY_CHECK(EVP_PKEY_get_raw_public_key(key, Bytes(bytes), &size) == 1 && size == kKeyBytes);
  return bytes;
}

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string Base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(Bytes(text), Bytes(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// Nothing where `text` is not what Base64 makes of something: OpenSSL forgives more than that.
std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > (64u << 20)) return std::nullopt;
  std::string bytes(text.size() / 4 * 3 + 1, '\0');
  const int size = EVP_DecodeBlock(Bytes(bytes), Bytes(text), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<std::size_t>(size) - std::min(padding, static_cast<std::size_t>(size)));
  if (Base64(bytes) != text) return std::nullopt;
  return bytes;
}

// What is signed (DSSE v1, "PAE"): lengths keep type and body apart.
std::string PreAuthentication(std::string_view type, std::string_view body) {
  return "DSSEv1 " + std::to_string(type.size()) + " " + std::string(type) + " " +
         std::to_string(body.size()) + " " + std::string(body);
}

std::unexpected<Error> NotAsWritten(const std::string& file, std::string what) {
  return Fail(ErrorKind::kMalformedInput, std::move(what), file,
              "take the folder from where it was made");
}

}  // namespace

std::string SealedText(Json certificate) {
  certificate.erase("digest");
  std::string digest = Sha256Hex(CompactJson(certificate));
  certificate["digest"] = std::move(digest);
  return PrettyJson(certificate);
}

Result<Json> OpenSealed(std::string_view text, const std::string& file) {
  ASSAY_TRY(Json certificate, ParseJson(text, file));
  if (!certificate.is_object() || !certificate.contains("digest")) {
    return Fail(ErrorKind::kMalformedInput, "the certificate has no digest of its own", file,
                "it was cut, or is of a version before there was one: vet the kernel again");
  }
  if (SealedText(certificate) != text)
    return NotAsWritten(file, "the certificate is not as it was written");
  return certificate;
}

PublicKey::PublicKey(std::string bytes)
    : bytes_(std::move(bytes)), id_(std::string(kIdPrefix) + Hex(bytes_)) {}

Result<PublicKey> PublicKey::Load(const Path& file) {
  ASSAY_TRY(const std::string text, ReadFile(file, kMaxKeyFile));
  if (text.find("PRIVATE KEY") != std::string::npos) {
    return NoKey(file, "this is a private key, which verifying does not need",
                 "openssl pkey -in " + file.string() + " -pubout, and name what it writes");
  }
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Key key(PEM_read_bio_PUBKEY(bio.get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr || EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519) {
    return NoKey(file, "this is no Ed25519 public key in PEM",
                 "the signer makes one: openssl pkey -in key.pem -pubout");
  }
  return PublicKey(RawPublic(key.get()));
}

Result<PublicKey> PublicKey::FromId(std::string_view id, const std::string& place) {
  std::string bytes;
  const std::string_view digits =
      id.starts_with(kIdPrefix) ? id.substr(kIdPrefix.size()) : std::string_view();
  const auto value = [](char digit) {
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
  };
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = value(digits[i]);
    const int low = value(digits[i + 1]);
    if (high < 0 || low < 0) break;
    bytes += static_cast<char>(16 * high + low);
  }
  if (digits.size() != 2 * kKeyBytes || bytes.size() != kKeyBytes)
    return NotAsWritten(place, "names no Ed25519 key");
  return PublicKey(std::move(bytes));
}

bool PublicKey::Signed(std::string_view message, std::string_view signature) const {
  const Key key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(bytes_), bytes_.size()));
  const Context context(EVP_MD_CTX_new());
  return key != nullptr && context != nullptr && signature.size() == kSignatureBytes &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message),
                          message.size()) == 1;
}

struct SigningKey::Impl {
  Key key;
};

Result<SigningKey> SigningKey::Load(const Path& file) {
  ASSAY_TRY(const KeyText secret, ReadSecret(file));
  const Bio bio(BIO_new_mem_buf(secret.text.data(), static_cast<int>(secret.text.size())));
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr || EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519) {
    return NoKey(file, "this is no Ed25519 private key in PEM without a password",
                 "openssl genpkey -algorithm ed25519 -out key.pem && chmod 600 key.pem");
  }
  return SigningKey(std::make_shared<const Impl>(std::move(key)));
}

PublicKey SigningKey::Public() const { return PublicKey(RawPublic(impl_->key.get())); }

std::string SigningKey::Sign(std::string_view message) const {
  const Context context(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  std::size_t size = signature.size();
  ASSAY_CHECK(context != nullptr &&
              EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, impl_->key.get()) == 1);
  ASSAY_CHECK(
      EVP_DigestSign(context.get(), Bytes(signature), &size, Bytes(message), message.size()) == 1 &&
      size == kSignatureBytes);
  return signature;
}

Json StatementOf(const std::map<std::string, std::string>& files, const Json& certificate) {
  Json subject = Json::array();
  for (const auto& [name, digest] : files)
    subject.push_back({{"name", name}, {"digest", {{"sha256", digest}}}});
  return {{"_type", kStatementType},
          {"subject", std::move(subject)},
          {"predicateType", kPredicateType},
          {"predicate", certificate}};
}

std::string SignStatement(const Json& statement, const SigningKey& key) {
  const std::string body = CompactJson(statement);
  const std::string signature = key.Sign(PreAuthentication(kPayloadType, body));
  return PrettyJson(
      {{"payloadType", kPayloadType},
       {"payload", Base64(body)},
       {"signatures", Json::array({{{"keyid", key.Public().id()}, {"sig", Base64(signature)}}})}});
}

Result<SignedStatement> OpenEnvelope(std::string_view text, const std::string& file) {
  ASSAY_TRY(const Json envelope, ParseJson(text, file));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(envelope, file));
  ASSAY_TRY(const std::string type, reader.Required<std::string>("payloadType"));
  ASSAY_TRY(const std::string payload, reader.Required<std::string>("payload"));
  ASSAY_TRY(const Json signatures, reader.Required<Json>("signatures"));
  ASSAY_TRY_VOID(reader.Finish());
  if (type != kPayloadType) return NotAsWritten(file, "the envelope holds no in-toto statement");
  if (!signatures.is_array() || signatures.size() != 1)
    return NotAsWritten(file, "the envelope has not one signature");
  ASSAY_TRY(ObjectReader one, ObjectReader::Of(signatures[0], file + ": /signatures/0"));
  ASSAY_TRY(const std::string id, one.Required<std::string>("keyid"));
  ASSAY_TRY(const std::string sig, one.Required<std::string>("sig"));
  ASSAY_TRY_VOID(one.Finish());
  ASSAY_TRY(PublicKey key, PublicKey::FromId(id, file));
  const std::optional<std::string> body = FromBase64(payload);
  const std::optional<std::string> signature = FromBase64(sig);
  if (!body || !signature || PrettyJson(envelope) != text)
    return NotAsWritten(file, "the envelope is not as it was written");
  if (!key.Signed(PreAuthentication(type, *body), *signature))
    return NotAsWritten(file, "the signature is not one of this statement by the key it names");
  ASSAY_TRY(Json statement, ParseJson(*body, file + ": /payload"));
  return SignedStatement{std::move(statement), std::move(key)};
}

}  // namespace assay::runs

// What vouches for a vetted folder (runs/emit.h): the digest that a certificate carries of itself,
// and, where a key was given, an Ed25519 signature over all of the folder.
//
// The digest finds harm, not malice: whoever changes a certificate can seal it again. A signature
// finds both. It stands beside the certificate in certificate.dsse.json: a DSSE envelope (v1,
// secure-systems-lab/dsse) whose payload is an in-toto statement (v1): subject, every file of the
// folder by its SHA-256; predicate, the certificate. Its keyid is the public key itself, so that
// anybody can tell which key signed; whose key that is only the key's owner can say.
//
// Keys are PEM files as OpenSSL writes them:
//   openssl genpkey -algorithm ed25519 -out key.pem && chmod 600 key.pem
//   openssl pkey -in key.pem -pubout -out key.pub.pem
//
//   ASSAY_TRY(const SigningKey key, SigningKey::Load("key.pem"));
//   const std::string envelope = SignStatement(StatementOf(files, certificate), key);
//   ASSAY_TRY(const SignedStatement opened, OpenEnvelope(envelope, "certificate.dsse.json"));
//
// A SigningKey cannot be printed or serialised; no message holds a byte of it. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace assay::runs {

inline constexpr const char* kCertificateFile = "certificate.json";
inline constexpr const char* kEnvelopeFile = "certificate.dsse.json";
inline constexpr std::string_view kPredicateType = "urn:assay:certificate:1";

/// The text of a certificate with its own digest as its last member, `digest`: SHA-256 over the
/// certificate without it, on one line.
std::string SealedText(Json certificate);
/// Reads such a text. Fails where one byte is not as SealedText wrote it.
Result<Json> OpenSealed(std::string_view text, const std::string& file);

class PublicKey {
 public:
  /// A PEM file with an Ed25519 public key.
  static Result<PublicKey> Load(const Path& file);
  /// "ed25519:" and 64 hexadecimal digits: what `id` gives.
  static Result<PublicKey> FromId(std::string_view id, const std::string& place);

  const std::string& id() const { return id_; }
  bool Signed(std::string_view message, std::string_view signature) const;

 private:
  friend class SigningKey;
  explicit PublicKey(std::string bytes);
  std::string bytes_;  ///< 32 of them.
  std::string id_;
};

class SigningKey {
 public:
  /// A PEM file with an Ed25519 private key, not encrypted, that only its owner can read.
  static Result<SigningKey> Load(const Path& file);

  PublicKey Public() const;
  std::string Sign(std::string_view message) const;

 private:
  struct Impl;  // OpenSSL's key, which wipes itself
  explicit SigningKey(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// An in-toto statement: file name -> SHA-256, and the certificate as predicate.
Json StatementOf(const std::map<std::string, std::string>& files, const Json& certificate);

/// The envelope's text.
std::string SignStatement(const Json& statement, const SigningKey& key);

struct SignedStatement {
  Json statement;
  PublicKey key;  ///< That the signature was made with: whose it is, is another question.
};
/// Reads an envelope and holds its signature to the key that it names. Fails where one byte is not
/// as SignStatement wrote it.
Result<SignedStatement> OpenEnvelope(std::string_view text, const std::string& file);

}  // namespace assay::runs

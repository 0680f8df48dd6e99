// What went wrong with a request or with the machine, as a value. What is wrong with a kernel is a Finding (judge.h).
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace assay::api {

enum class ErrorKind : std::uint8_t {
  kUsage,           ///< The request is wrong.
  kEnvironment,     ///< The machine lacks something: a tool, a permission, a file.
  kMalformedInput,  ///< A file or a reply does not have the form it must have.
  kUnsupported,     ///< Well formed, but outside of what Assay covers.
  kNetwork,         ///< A server could not be reached or broke its protocol.
  kLimit,           ///< A limit of time, steps, memory or money was reached.
  kInternal,        ///< A bug of Assay, or a worker that died.
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;  ///< One sentence, no final full stop.
  std::string place;    ///< "op.json: /inputs/x/dtype"; may be empty.
  std::string cure;     ///< What to do about it; may be empty.
};

/// "PLACE: MESSAGE\n  fix: CURE", leaving out what is empty.
std::string ToString(const Error& error);

template <class T>
using Result = std::expected<T, Error>;

}  // namespace assay::api

// Errors of the environment and of malformed input, as values.
//
// Assay keeps three channels apart:
//   Result<T>  the environment or an input is at fault: a file is missing, a plan is malformed. Carries the place and a cure.
//   Finding    a kernel is at fault (validator/findings/finding.h).
//   ASSAY_CHECK  Assay itself is at fault. Always on, prints and aborts; in a worker that ends the worker alone.
//
// Example:
//   Result<OpSpec> LoadOp(const Path& folder) {
//     ASSAY_TRY(const std::string text, ReadFile(folder / "op.json"));
//     ...
//     return Fail(ErrorKind::kMalformedInput, "unknown key 'dtyps'", "op.json: /dtyps", "did you mean 'dtypes'?");
//   }
#pragma once

#include <expected>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

enum class ErrorKind {
  kUsage,           ///< The command line or a request is wrong.
  kEnvironment,     ///< The machine lacks something: a tool, a permission, a file.
  kMalformedInput,  ///< A file or a reply does not have the form it must have.
  kUnsupported,     ///< Well formed, but outside of what Assay covers. Never means "accepted".
  kNetwork,         ///< A server could not be reached or broke its protocol.
  kLimit,           ///< A time, step, memory or money limit was reached.
  kInternal,        ///< A bug of ours, or a worker that died.
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;  ///< What is wrong, one sentence, no final full stop.
  std::string place;    ///< Where: "op.json: /inputs/x/dtype", "kernel.cu:14". May be empty.
  std::string cure;     ///< What to do about it. May be empty.

  bool operator==(const Error&) const = default;
};

/// "PLACE: MESSAGE\n  fix: CURE", leaving out what is empty.
std::string ToString(const Error& error);

/// The word used in JSON for an error kind, e.g. "malformed_input".
std::string_view Name(ErrorKind kind);

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> Fail(ErrorKind kind, std::string message, std::string place = {},
                                   std::string cure = {}) {
  return std::unexpected(Error{kind, std::move(message), std::move(place), std::move(cure)});
}

/// Puts `place` before the place that `error` already names.
Error WithPlace(Error error, std::string_view place);

[[noreturn]] void CheckFailed(const char* condition, std::string_view message,
                              std::source_location where = std::source_location::current());

}  // namespace assay

/// An invariant of ours. On in every build.
#define ASSAY_CHECK(condition, ...)                                               \
  do {                                                                            \
    if (!(condition)) ::assay::CheckFailed(#condition, std::string{__VA_ARGS__}); \
  } while (false)

#define ASSAY_CONCAT_INNER(a, b) a##b
#define ASSAY_CONCAT(a, b) ASSAY_CONCAT_INNER(a, b)

/// ASSAY_TRY(auto x, Expression()): binds the value, or returns the error to the caller.
#define ASSAY_TRY(declaration, ...) \
  ASSAY_TRY_INNER(ASSAY_CONCAT(assay_try_, __LINE__), declaration, __VA_ARGS__)
#define ASSAY_TRY_INNER(temporary, declaration, ...)                    \
  auto temporary = __VA_ARGS__;                                         \
  if (!temporary) return std::unexpected(std::move(temporary).error()); \
  declaration = *std::move(temporary)

/// ASSAY_TRY_VOID(Expression()): returns the error of a Status to the caller.
#define ASSAY_TRY_VOID(...)                                    \
  do {                                                         \
    if (auto assay_status = __VA_ARGS__; !assay_status)        \
      return std::unexpected(std::move(assay_status).error()); \
  } while (false)

#include "cli/surroundings.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/heap.h"
#include "base/limits.h"
#include "cli/command.h"

namespace assay::cli {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

constexpr std::uint64_t kStackWanted = 8 * kMiB;
constexpr std::uint64_t kFilesWanted = 4096;

/// The least that is needed, in units of the shell's option.
struct NeedRow {
  int resource;
  std::uint64_t least;
};
constexpr NeedRow kStackNeed = {RLIMIT_STACK, 1024};
constexpr NeedRow kNeeds[] = {
    {RLIMIT_NOFILE, 64},        // a worker takes four, a case one for each tensor
    {RLIMIT_AS, 4 * kMiB},      // 4 GiB, in KiB: tensors, and the emulator's memory
    {RLIMIT_FSIZE, 64 * kKiB},  // 64 MiB, in KiB: tensors are files in memory
};

/// Adds what is too low to the error; true if it is.
bool Lacks(const NeedRow& need, Error& error) {
  const LimitRow& row = LimitOf(need.resource);
  const auto limit = SoftLimit(row);
  if (!limit || *limit >= need.least) return false;
  const std::string option(row.option);
  error.message += (error.message.empty() ? "" : "; ") + DescribeLimit(row) + ", at least " +
                   std::to_string(need.least) + " is needed";
  error.cure += (error.cure.empty() ? "raise it: " : "; ") + option + " " +
                (row.advised == 0 ? std::string("unlimited") : std::to_string(row.advised));
  return true;
}

[[noreturn]] void OnTerminate() {
  // Nothing may throw from here; what does ends in std::abort.
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      const Error error = FromException(exception);
      Say("error: " + ToString(error));
      ::_exit(ExitCode(error));
    } catch (...) {
    }
  }
  Say("internal error: the program was ended by an exception without a name");
  ::_exit(kExitInternal);
}

}  // namespace

void PrepareProcess() {
  KeepFreedMemory();
  RaiseSoftLimit(RLIMIT_STACK, kStackWanted);
  RaiseSoftLimit(RLIMIT_NOFILE, kFilesWanted);
  // By default threads get the stack that the shell allowed the first one.
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) == 0) {
    if (::pthread_attr_setstacksize(&attributes, kStackWanted) == 0)
      ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
  std::set_terminate(&OnTerminate);
}

Status CheckStack() {
  Error error{ErrorKind::kEnvironment, "", "limits of this shell", ""};
  if (Lacks(kStackNeed, error)) return std::unexpected(std::move(error));
  return {};
}

Status CheckLimits() {
  Error error{ErrorKind::kEnvironment, "", "limits of this shell", ""};
  bool lacks = false;
  for (const NeedRow& need : kNeeds) lacks = Lacks(need, error) || lacks;
  if (lacks) return std::unexpected(std::move(error));
  return {};
}

Error FromException(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return {ErrorKind::kEnvironment, "memory is used up", "assay", CureOf(ENOMEM)};
  }
  const auto* const failed = dynamic_cast<const std::system_error*>(&exception);
  if (failed != nullptr && (failed->code().category() == std::system_category() ||
                            failed->code().category() == std::generic_category())) {
    const int code = failed->code().value();
    const std::string cure = CureOf(code);
    // A thread that could not be started says EAGAIN, and nothing else.
    if (code == EAGAIN) {
      return {ErrorKind::kEnvironment, "cannot start another thread: " + failed->code().message(),
              "assay",
              cure.empty() ? "end other programs, or give fewer workers with --jobs" : cure};
    }
    if (!cure.empty()) return {ErrorKind::kEnvironment, exception.what(), "assay", cure};
  }
  return {ErrorKind::kInternal, exception.what(), "assay",
          "please report it, with the command line"};
}

}  // namespace assay::cli

// The limits that a system call ran into, by name: what `errno` alone does not say.
//
//   if (fd < 0) return Fail(ErrorKind::kEnvironment, "cannot open: " + std::string(strerror(e)), path, CureOf(e, path));
//   // "at most 16 files may be open here (ulimit -n 16); raise it: ulimit -n 1024"
//
// Cost: a system call or two, after something has failed. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace assay {

/// One limit of setrlimit(2), as shells name it.
struct LimitRow {
  int resource;             ///< RLIMIT_NOFILE, ...
  std::string_view option;  ///< "ulimit -n"
  std::uint64_t unit;       ///< Bytes of one step of the option; 1 for counts.
  std::string_view what;    ///< "open files"
  std::uint64_t advised;    ///< In units.
};

/// The row of `resource`, which must be one of those in limits.cc.
const LimitRow& LimitOf(int resource);

/// The soft limit in units of its row; nothing where there is none.
std::optional<std::uint64_t> SoftLimit(const LimitRow& row);

/// "the number of open files is limited to 16 (ulimit -n 16)", or empty where it is not limited.
std::string DescribeLimit(const LimitRow& row);

/// What to do after a call failed with `error`: names the limit and its value, where one explains it, and the file system of
/// `path` where that is full, over quota or read-only. `otherwise` where no limit explains it.
std::string CureOf(int error, const Path& path = {}, std::string_view otherwise = {});

/// Raises a soft limit to `wanted` bytes or files, as far as the hard one lets it. Never lowers.
void RaiseSoftLimit(int resource, std::uint64_t wanted);

}  // namespace assay

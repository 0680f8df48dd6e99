#include "base/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace assay {
namespace {

constexpr std::array kRows{
    LimitRow{RLIMIT_NOFILE, "ulimit -n", 1, "number of open files", 1024},
    LimitRow{RLIMIT_NPROC, "ulimit -u", 1, "number of processes and threads of this user", 4096},
    LimitRow{RLIMIT_STACK, "ulimit -s", 1024, "stack in KiB", 8192},
    LimitRow{RLIMIT_AS, "ulimit -v", 1024, "address space in KiB", 0},
    LimitRow{RLIMIT_FSIZE, "ulimit -f", 1024, "size of a file in KiB", 0},
};

/// What a full or read-only file system is called, and what helps.
std::string AboutPlace(const Path& path, std::string_view what, std::string_view cure) {
  return (path.empty() ? std::string("the file system ")
                       : "the file system of " + path.string() + " ") +
         std::string(what) + "; " + std::string(cure);
}

std::string Raise(const LimitRow& row, std::string_view otherwise) {
  const std::string limit = DescribeLimit(row);
  if (limit.empty()) return std::string(otherwise);
  return limit + "; raise it: " + std::string(row.option) + " " +
         (row.advised == 0 ? std::string("unlimited") : std::to_string(row.advised));
}

}  // namespace

const LimitRow& LimitOf(int resource) {
  const auto row = std::ranges::find(kRows, resource, &LimitRow::resource);
  ASSAY_CHECK(row != kRows.end(), "a limit without a row");
  return *row;
}

std::optional<std::uint64_t> SoftLimit(const LimitRow& row) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(row.resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return limit.rlim_cur / row.unit;
}

std::string DescribeLimit(const LimitRow& row) {
  const std::optional<std::uint64_t> limit = SoftLimit(row);
  if (!limit) return {};
  const std::string value = std::to_string(*limit);
  return "the " + std::string(row.what) + " is limited to " + value + " (" +
         std::string(row.option) + " " + value + ")";
}

std::string CureOf(int error, const Path& path, std::string_view otherwise) {
  switch (error) {
    case EMFILE:
      return Raise(LimitOf(RLIMIT_NOFILE), otherwise);
    case ENFILE:
      return "the machine's table of open files is full (sysctl fs.file-max); end other programs";
    case EAGAIN:
      return Raise(LimitOf(RLIMIT_NPROC), otherwise);
    case ENOMEM:
      return Raise(
          LimitOf(RLIMIT_AS),
          "free memory: the machine, or the group that this program runs in, has none left");
    case EFBIG:
      return Raise(LimitOf(RLIMIT_FSIZE),
                   AboutPlace(path, "takes no file of this size", "use another folder"));
    case ENOSPC:
      return AboutPlace(path, "is full", "free space there, or use another folder");
    case EDQUOT:
      return AboutPlace(path, "has no more room for this user (quota)",
                        "free space there, or use another folder");
    case EROFS:
      return AboutPlace(path, "is read-only", "use another folder");
    case EACCES:
    case EPERM:
      if (!path.empty())
        return "this user may not do that there; check the permissions, or use another folder";
      return std::string(otherwise);
    default:
      return std::string(otherwise);
  }
}

void RaiseSoftLimit(int resource, std::uint64_t wanted) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted) return;
  const rlimit raised{std::min<rlim_t>(wanted, limit.rlim_max), limit.rlim_max};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &raised);
}

}  // namespace assay

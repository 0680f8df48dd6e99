#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "base/environment.h"
#include "base/file.h"
#include "base/json.h"
#include "ops/op.h"

namespace assay::ops {
namespace {

bool HoldsOp(const Path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / "op.json", ignored);
}

}  // namespace

Library Library::Default() { return Library(OwnEnvironment().ops); }

Result<OpSpec> Library::Find(std::string_view name_or_path) const {
  const Path path(name_or_path);
  if (path.filename() == "op.json" && HoldsOp(path.parent_path()))
    return LoadOp(path.parent_path());
  const bool looks_like_path = name_or_path.find('/') != std::string_view::npos;
  if (looks_like_path) {
    if (HoldsOp(path)) return LoadOp(path);
    return Fail(ErrorKind::kUsage, "there is no op.json in this folder", std::string(name_or_path),
                "give the folder of an op, or the name of one in the library");
  }
  for (const Path& root : roots_) {
    if (!name_or_path.empty() && name_or_path != "." && name_or_path != ".." &&
        HoldsOp(root / path)) {
      return LoadOp(root / path);
    }
  }
  if (HoldsOp(path)) return LoadOp(path);
  std::vector<std::string> names;
  for (const Entry& entry : List()) names.push_back(entry.name);
  const std::string nearest = Nearest(name_or_path, names);
  return Fail(
      ErrorKind::kUsage, fmt::format("there is no op '{}'", name_or_path), "ops",
      !nearest.empty() ? fmt::format("did you mean '{}'?", nearest)
      : names.empty()
          ? "no op library was found: set ASSAY_OPS to a folder of ops, or give an op's path"
          : fmt::format("ops are: {}", fmt::join(names, ", ")));
}

std::vector<Library::Entry> Library::List() const {
  std::vector<Entry> entries;
  for (const Path& root : roots_) {
    std::error_code error;
    for (const auto& item : std::filesystem::directory_iterator(root, error)) {
      if (!HoldsOp(item.path())) continue;
      Entry entry{item.path().filename().string(), item.path(), std::nullopt};
      // The first root that has a name wins, as in Find.
      if (std::ranges::find(entries, entry.name, &Entry::name) != entries.end()) continue;
      if (auto op = LoadOp(item.path()); !op) entry.error = std::move(op).error();
      entries.push_back(std::move(entry));
    }
  }
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

}  // namespace assay::ops

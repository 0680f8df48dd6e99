// A temporary op folder for tests.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include "base/file.h"

namespace assay::ops {

/// A launch plan that fits every op.
inline constexpr std::string_view kAnyPlan =
    R"({"schema": "assay.launch/1", "kernels": [{"entry": "k", "grid": [1], "block": [1], "args": []}]})";

class TestFolder {
 public:
  explicit TestFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("assay-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const Path& path() const { return path_; }
  void Write(const std::string& name, std::string_view text) const {
    ASSAY_CHECK(MakeFolders((path_ / name).parent_path()).has_value());
    ASSAY_CHECK(WriteFileAtomically(path_ / name, text).has_value());
  }

 private:
  Path path_;
};

}  // namespace assay::ops

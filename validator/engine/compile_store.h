// Compilations that outlive the process: replies of the compile worker for references, in files named
// by the digest of all that went into them.
//
// A judgement asks NVRTC for its op's reference before it can compare anything, and most of the time
// of refuting a wrong candidate goes there; the text is the same for every candidate of an op. What is
// found here is read as the worker's reply is, so that a file can say nothing that a worker could not.
//
// The key is the digest of the request and of what answers it: the worker's program and NVRTC's
// libraries, by place, size and time of change. A file begins with the digest of its rest; what does
// not agree with it is not there. Files are written beside their place and renamed: judges may share a
// folder, and one that is killed leaves nothing half done.
//
// A truth rests on what is found here. So the folder must be this user's, and nobody else may write
// in it: where that does not hold there is no store, and all is compiled as if it were empty. What
// cannot be read or written is compiled again, and is nobody's error. Candidates are never kept.
//
// Thread-safe. Cost: a read and a digest of some 100 KB. At most kMostFiles, the oldest go first.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"

namespace assay::engine {

/// Place, size and time of change of each: what stands for the content of programs and libraries.
/// Empty where one of them cannot be looked at.
std::string StampOf(std::span<const Path> files);

class CompileStore {
 public:
  static constexpr std::size_t kMostFiles = 512;

  struct Reply {
    Json header;
    std::string payload;
  };

  /// Makes `folder` when there is something to keep. `stamp` says what compiles (StampOf).
  CompileStore(Path folder, std::string stamp);

  std::optional<Reply> Find(std::string_view digest) const;
  void Keep(std::string_view digest, const Json& header, std::string_view payload) const;

 private:
  Path FileOf(std::string_view digest) const;
  bool IsOurs() const;
  void MakeRoom() const;

  Path folder_;
  std::string stamp_;
  mutable std::mutex mutex_;  ///< One writer of this process at a time.
};

}  // namespace assay::engine

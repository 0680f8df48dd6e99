// Waiting for somebody to save a file, and for Ctrl-C.
//
// One folder is watched (inotify), for files of certain names: an editor writes in place, or writes
// another file and renames it, and both are a save. Several events within a moment are one. What is
// saved while nobody waits is told at the next wait.
//
//   ASSAY_TRY(auto watch, FolderWatch::Make(folder, {"kernel.cu"}));
//   while (true) {
//     ...
//     ASSAY_TRY(const FolderWatch::Event event, watch.Wait());
//     if (event == FolderWatch::Event::kInterrupted) break;
//   }
//
// One at a time a process: Ctrl-C is the process's. The first is told by Wait (and by Interrupted);
// the second ends the program.
#pragma once

#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace assay::cli {

class FolderWatch {
 public:
  enum class Event : std::uint8_t { kSaved, kInterrupted };

  static Result<FolderWatch> Make(const Path& folder, std::set<std::string> names);
  /// Fails where the folder has gone.
  Result<Event> Wait();

 private:
  FolderWatch(Path folder, std::set<std::string> names, UniqueFd fd)
      : folder_(std::move(folder)), names_(std::move(names)), fd_(std::move(fd)) {}
  /// Reads what there is; true where a file of ours was saved.
  Result<bool> Drain();

  Path folder_;
  std::set<std::string> names_;
  UniqueFd fd_;
};

}  // namespace assay::cli

// A turn at a GPU that several processes of one user share: what is timed is timed alone.
//
//   const DeviceTurn turn(file, DeviceTurn::Use::kAlone);  // waits until nobody else has it
//
// A lock on a file of the user's cache folder, which goes with the process that holds it, however that ends. Advice among processes of
// Assay: whoever else uses the card is not kept out. Where the file cannot be made there are no turns, and all go at once.
//
// Cost: two system calls where nobody waits.
#pragma once

#include <filesystem>

#include "base/file.h"

namespace assay::engine {

class DeviceTurn {
 public:
  enum class Use {
    kAlone,
    kBesideOthers,  ///< Beside others of the kind, never beside kAlone; behind one who waits to be.
  };

  /// An empty path: no turn, at once.
  DeviceTurn(const std::filesystem::path& file, Use use);

  /// Someone else would wait now.
  bool held() const { return static_cast<bool>(file_); }

 private:
  UniqueFd file_;
};

}  // namespace assay::engine

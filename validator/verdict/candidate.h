// A candidate: what an untrusted author handed in. Bytes; nothing about them is known yet.
#pragma once

#include <string>

namespace assay::verdict {

struct Candidate {
  std::string kernel;  ///< kernel.cu
  std::string launch;  ///< launch.json
};

}  // namespace assay::verdict

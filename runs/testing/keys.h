// Ed25519 keys in files, for tests of what is signed.
#pragma once

#include <string>

#include "base/file.h"

namespace assay::testing {

/// Writes FOLDER/NAME.pem, which only its owner can read, and FOLDER/NAME.pub.pem.
void WriteKeys(const Path& folder, const std::string& name);

}  // namespace assay::testing

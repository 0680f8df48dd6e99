// The environment of the running program: its installation or its source tree, and what the user's variables say otherwise.
//
// For programs. Who embeds Assay says where things are by a value of his own (include/assay/environment.h).
#pragma once

#include "include/assay/environment.h"

namespace assay {

using api::Environment;

/// Looks from the program upwards: share/assay of an installation, or ops/ and prompts/ of a checkout it was built in. Then $ASSAY_OPS
/// (more folders of ops, separated by colons) and $ASSAY_PROMPTS. The cache is $ASSAY_CACHE (empty: none), $XDG_CACHE_HOME/assay or
/// ~/.cache/assay. Cost: a few look-ups of files.
Environment OwnEnvironment();

}  // namespace assay

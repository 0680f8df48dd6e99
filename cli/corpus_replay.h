// assay corpus replay: that every failure of a corpus, or of an export, still fails.
#pragma once

#include "cli/command.h"

namespace assay::cli {

void AddCorpusReplay(CLI::App& corpus, Session& session);

}  // namespace assay::cli

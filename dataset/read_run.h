// From what holds attempts to records: run folders, judgements that `assay reward` kept, folders of
// either (a batch, runs/), other corpora.
//
// Reading takes no lock: a run that goes on is read as far as it has come, and its later attempts are
// read the next time. Attempts without a verdict yet are left out.
#pragma once

#include <functional>
#include <vector>

#include "dataset/corpus.h"

namespace assay::dataset {

/// What is said about a source by who ingests it.
struct Origin {
  std::string licence = "unknown";  ///< SPDX expression.
  std::string provenance;           ///< Empty: the name of the folder.
};

/// A run's record. Its identity is a digest of its beginning and its first verdict, both of which
/// stand unchanged in every copy; it has none, and no attempts, before something was judged.
Result<RunRecord> ReadRun(const Path& folder, const Origin& origin);

/// A candidate that `assay reward` judged, as a run of one attempt (kind "rewards").
Result<RunRecord> ReadJudgement(const Path& file, const Origin& origin);

/// The run folders and the files of judgements at or below `path`, sorted. Links are not followed.
Result<std::vector<Path>> FindRuns(const Path& path);

/// What is ingested and what could not be read.
struct IngestReport {
  Added added;
  std::vector<Error> unreadable;  ///< Runs that were left out, and why.
};

/// Ingests whatever `source` is: a run folder, a judgement, a folder of such, or a corpus. A damaged run does not
/// keep the others out. `seen` is called after each run.
Result<IngestReport> IngestFrom(Corpus& corpus, const Path& source, const Origin& origin,
                                const std::function<void(const RunRecord&)>& seen = {});

}  // namespace assay::dataset

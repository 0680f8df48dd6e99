// The tables of a corpus (assay.corpus/1) and how a file of an earlier version becomes one of this.
//
//   op, instance        what was to be written
//   run, judge          where attempts come from, under which licence, and who judged
//   attempt             one reply and its verdict: source, launch, prompt, reply, cost, parent
//   source              one row a distinct kernel text: normalised digest, skeleton, sketch
//   finding             what was wrong, in the order of the verdict; digest of its smallest case
//   counterexample      what replays it
//   blob                texts by SHA-256, packed with zstd
//   split, split_part, split_op     which attempts belong to which part, and why
//
// Migration n brings a file from version n to n + 1, in one transaction with the number itself
// (PRAGMA user_version): a file has all of a migration or nothing of it. Those that are published are
// never changed; what comes next is appended.
#pragma once

#include <span>

#include "dataset/database.h"

namespace assay::dataset {

inline constexpr std::string_view kCorpusSchema = "assay.corpus/1";

std::span<const char* const> Migrations();

/// Opens a corpus. For writing: makes it where it is missing and brings it up to date. Refuses files
/// that are no corpus, or one of a later version; for reading also those of an earlier one.
Result<Database> OpenCorpusFile(const Path& file, Database::Access access);

}  // namespace assay::dataset

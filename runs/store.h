// The artefact store: kernels, PTX, verdicts and what else runs leave, by SHA-256 of their bytes, so
// that many runs, batches and machines keep one copy of each.
//
//   store/ab/cdef...             a blob: its name is its digest, its bytes never change
//   store/ab/cdef....KIND.json   a record: small, named by a key (runs/judgement.h, runs/instance_key.h)
//   store/refs/<digest>.json     what one run needs: its name and the digests of its blobs
//
// Several processes on several machines may write at once, on NFS too: a blob is written under a
// name of its own (O_EXCL), synced, and linked into place, so that a reader sees all of it or
// nothing; a record is renamed into place, the last writer's stays. Bytes that are read are held to
// their digest: a store may be shared with anybody, and may have come to harm.
//
// A blob that no file in refs/ names is garbage, but for a grace period: who puts one refers to it a
// moment later. Putting a blob that is there makes it young again. Records are never collected; one
// whose blobs have gone is worth as much as none.
//
//   const Store store("store");
//   ASSAY_TRY(const std::string digest, store.Put(ptx));
//   ASSAY_TRY_VOID(store.Refer("runs/x", {digest}));
//   ASSAY_TRY(const std::string same, store.Get(digest));
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::runs {

class Store {
 public:
  /// Nothing is made before something is put.
  explicit Store(Path root) : root_(std::move(root)) {}
  const Path& root() const { return root_; }

  /// Keeps `bytes` and returns their digest. Where they are kept already nothing is written.
  Result<std::string> Put(std::string_view bytes) const;
  /// Fails where there is no such blob, or where it is not what its name says.
  Result<std::string> Get(const std::string& digest) const;
  bool Has(const std::string& digest) const;

  /// `key` is 64 hexadecimal digits, `kind` a word: ab/cdef....KIND.json.
  Status PutRecord(const std::string& key, std::string_view kind, std::string_view text) const;
  /// Nothing where there is none, or where it cannot be read.
  std::optional<std::string> GetRecord(const std::string& key, std::string_view kind) const;
  /// Keys of all records of a kind, sorted.
  std::vector<std::string> Records(std::string_view kind) const;

  /// `run` needs these blobs, in place of those that it needed before.
  Status Refer(const std::string& run, const std::vector<std::string>& digests) const;
  /// `run` needs nothing any more.
  Status Release(const std::string& run) const;

  struct Collected {
    std::uint64_t removed = 0;
    std::uint64_t bytes = 0;  ///< Of those that were removed.
    std::uint64_t kept = 0;   ///< Blobs that are needed, or young.
  };
  enum class Collection : std::uint8_t { kRemove, kCountOnly };
  /// Removes the blobs that no run needs and nobody has put for `grace` before `now`, and what
  /// writers left behind that died; or only counts them. Fails, removing nothing, where a reference
  /// cannot be read.
  Result<Collected> Collect(std::filesystem::file_time_type now, std::chrono::seconds grace,
                            Collection how = Collection::kRemove) const;

  /// Where a blob lies; the store need not have it.
  Path FileOf(const std::string& digest) const;

 private:
  Path RecordFile(const std::string& key, std::string_view kind) const;

  Path root_;
};

/// 64 lower-case hexadecimal digits: what may name a file of a store.
bool IsDigest(std::string_view text);

}  // namespace assay::runs

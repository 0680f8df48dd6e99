// SQLite as values: statements with bound parameters, rows read by column, transactions that are
// whole or nothing. The only file of Assay that knows sqlite3.h is database.cc.
//
//   ASSAY_TRY(Database db, Database::Open("corpus.sqlite", Database::Access::kWrite));
//   ASSAY_TRY_VOID(db.Atomically([&]() -> Status {
//     return db.Run("INSERT INTO op(name, digest) VALUES (?, ?)", {name, digest});
//   }));
//   ASSAY_TRY_VOID(db.Each("SELECT name FROM op", {}, [&](const Row& row) -> Status {
//     names.push_back(row.Text(0));
//     return {};
//   }));
//
// Write-ahead log, synchronous=NORMAL: what a commit wrote survives the death of the process; after a
// power cut the file is whole, and the last commits may be missing. Foreign keys are on. Statements
// are prepared once. One thread at a time; several processes may share a file, a writer waits for
// another up to a minute. SQL is always a literal of ours: values go through parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::dataset {

/// Bytes that are no text.
struct Bytes {
  std::string data;
};

using Value = std::variant<std::monostate, std::int64_t, double, std::string, Bytes>;

/// A row while it stands; columns count from 0.
class Row {
 public:
  bool Null(int column) const;
  std::int64_t Int(int column) const;
  double Real(int column) const;
  /// Text or bytes.
  std::string Text(int column) const;

 private:
  friend class Database;
  explicit Row(void* statement) : statement_(statement) {}
  void* statement_;
};

class Database {
 public:
  enum class Access : std::uint8_t {
    kRead,   ///< The file must be there.
    kWrite,  ///< It is made where it is missing.
  };
  static Result<Database> Open(const Path& file, Access access);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  /// Runs one statement to its end.
  Status Run(std::string_view sql, const std::vector<Value>& values = {});
  /// Runs several statements without parameters, e.g. a migration.
  Status Script(const char* sql);
  /// Calls `row` for each row; its error ends the walk and is returned.
  Status Each(std::string_view sql, const std::vector<Value>& values,
              const std::function<Status(const Row&)>& row);
  /// First column of the first row; nothing where there is no row or it is null.
  Result<std::optional<std::int64_t>> Number(std::string_view sql,
                                             const std::vector<Value>& values = {});
  Result<std::optional<std::string>> Text(std::string_view sql,
                                          const std::vector<Value>& values = {});
  /// Id of the row that the last INSERT made.
  std::int64_t LastId() const;

  /// All that `work` writes is there afterwards, or, where it fails, nothing of it. Not nested.
  Status Atomically(const std::function<Status()>& work);

  const Path& file() const;

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::dataset

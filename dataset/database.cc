#include "dataset/database.h"

#include <sqlite3.h>

#include <map>

namespace assay::dataset {
namespace {

constexpr int kBusyMilliseconds = 60'000;

struct Finalise {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalise>;

struct Close {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};

sqlite3_stmt* Of(void* statement) { return static_cast<sqlite3_stmt*>(statement); }

}  // namespace

bool Row::Null(int column) const {
  return sqlite3_column_type(Of(statement_), column) == SQLITE_NULL;
}
std::int64_t Row::Int(int column) const { return sqlite3_column_int64(Of(statement_), column); }
double Row::Real(int column) const { return sqlite3_column_double(Of(statement_), column); }
std::string Row::Text(int column) const {
  const void* const bytes = sqlite3_column_blob(Of(statement_), column);
  const int size = sqlite3_column_bytes(Of(statement_), column);
  if (bytes == nullptr) return {};
  return std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

struct Database::Impl {
  Path file;
  std::unique_ptr<sqlite3, Close> connection;
  // Idle ones, by their text. One that runs is out of the map, so that a walk may start the same
  // statement again.
  std::multimap<std::string, Statement, std::less<>> idle;

  std::unexpected<Error> Failed(std::string_view what) const {
    const int code = sqlite3_errcode(connection.get());
    std::string cure;
    if (code == SQLITE_BUSY) cure = "another process writes to it; wait for it to end";
    if (code == SQLITE_FULL || code == SQLITE_IOERR) cure = "check free space and permissions";
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) cure = "name a corpus, or restore it";
    return Fail(code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? ErrorKind::kMalformedInput
                                                                : ErrorKind::kEnvironment,
                std::string(what) + ": " + sqlite3_errmsg(connection.get()), file.string(), cure);
  }

  Result<Statement> Take(std::string_view sql) {
    if (const auto found = idle.find(sql); found != idle.end()) {
      Statement statement = std::move(found->second);
      idle.erase(found);
      return statement;
    }
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v3(connection.get(), sql.data(), static_cast<int>(sql.size()),
                           SQLITE_PREPARE_PERSISTENT, &made, nullptr) != SQLITE_OK) {
      return Failed("cannot prepare a statement");
    }
    return Statement(made);
  }

  void Return(std::string_view sql, Statement statement) {
    sqlite3_reset(statement.get());
    sqlite3_clear_bindings(statement.get());
    idle.emplace(std::string(sql), std::move(statement));
  }

  // `value` outlives the step: nothing is copied.
  static int Bind(sqlite3_stmt* statement, int at, const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value))
      return sqlite3_bind_int64(statement, at, *number);
    if (const auto* real = std::get_if<double>(&value))
      return sqlite3_bind_double(statement, at, *real);
    if (const auto* text = std::get_if<std::string>(&value)) {
      return sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    }
    if (const auto* bytes = std::get_if<Bytes>(&value)) {
      return sqlite3_bind_blob64(statement, at, bytes->data.data(), bytes->data.size(),
                                 SQLITE_STATIC);
    }
    return sqlite3_bind_null(statement, at);
  }

  Status Walk(std::string_view sql, const std::vector<Value>& values,
              const std::function<Status(void*)>& row) {
    ASSAY_TRY(Statement statement, Take(sql));
    ASSAY_CHECK(sqlite3_bind_parameter_count(statement.get()) == static_cast<int>(values.size()),
                "parameters of a statement");
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (Bind(statement.get(), static_cast<int>(i) + 1, values[i]) != SQLITE_OK)
        return Failed("cannot bind a value");
    }
    Status status;
    int code = SQLITE_ROW;
    while (status && (code = sqlite3_step(statement.get())) == SQLITE_ROW) {
      status = row(statement.get());
    }
    if (status && code != SQLITE_DONE) status = Failed("cannot run a statement");
    Return(sql, std::move(statement));
    return status;
  }
};

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::Open(const Path& file, Access access) {
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  const int flags =
      access == Access::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  std::error_code error;
  if (access == Access::kRead && !std::filesystem::is_regular_file(file, error)) {
    return Fail(ErrorKind::kUsage, "there is no corpus", file.string(),
                "make it with assay corpus ingest RUN");
  }
  sqlite3* connection = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &connection, flags, nullptr);
  impl->connection.reset(connection);
  ASSAY_CHECK(connection != nullptr, "no memory for a connection");
  if (opened != SQLITE_OK) return impl->Failed("cannot open");
  sqlite3_extended_result_codes(connection, 0);
  sqlite3_busy_timeout(connection, kBusyMilliseconds);
  // What a hostile file could make SQLite do on its own is off.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  Database db(std::move(impl));
  ASSAY_TRY_VOID(db.Script("PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;"));
  if (access == Access::kWrite) {
    ASSAY_TRY_VOID(db.Script("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"));
  }
  return db;
}

Status Database::Run(std::string_view sql, const std::vector<Value>& values) {
  return impl_->Walk(sql, values, [](void*) -> Status { return {}; });
}

Status Database::Script(const char* sql) {
  if (sqlite3_exec(impl_->connection.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return impl_->Failed("cannot run a statement");
}

Status Database::Each(std::string_view sql, const std::vector<Value>& values,
                      const std::function<Status(const Row&)>& row) {
  return impl_->Walk(sql, values, [&row](void* statement) { return row(Row(statement)); });
}

Result<std::optional<std::int64_t>> Database::Number(std::string_view sql,
                                                     const std::vector<Value>& values) {
  std::optional<std::int64_t> number;
  bool first = true;
  ASSAY_TRY_VOID(Each(sql, values, [&](const Row& row) -> Status {
    if (first && !row.Null(0)) number = row.Int(0);
    first = false;
    return {};
  }));
  return number;
}

Result<std::optional<std::string>> Database::Text(std::string_view sql,
                                                  const std::vector<Value>& values) {
  std::optional<std::string> text;
  bool first = true;
  ASSAY_TRY_VOID(Each(sql, values, [&](const Row& row) -> Status {
    if (first && !row.Null(0)) text = row.Text(0);
    first = false;
    return {};
  }));
  return text;
}

std::int64_t Database::LastId() const { return sqlite3_last_insert_rowid(impl_->connection.get()); }

Status Database::Atomically(const std::function<Status()>& work) {
  // IMMEDIATE: a writer waits here, before it has read anything that another could change.
  ASSAY_TRY_VOID(Script("BEGIN IMMEDIATE"));
  Status status = work();
  if (status) status = Script("COMMIT");
  if (!status) sqlite3_exec(impl_->connection.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  return status;
}

const Path& Database::file() const { return impl_->file; }

}  // namespace assay::dataset

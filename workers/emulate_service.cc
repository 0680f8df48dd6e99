#include "workers/emulate_service.h"

#include <memory>
#include <utility>

#include "base/lru.h"
#include "validator/emu/count.h"
#include "validator/emu/emulator.h"
#include "workers/mapped_buffers.h"

namespace assay::workers {
namespace {

constexpr std::size_t kKeptPrograms = 8;

/// Decoded programs.
class ProgramCache {
 public:
  /// By the text itself where it came without a digest: to compare it with a few others takes a tenth of
  /// what computing one would.
  Result<std::shared_ptr<const emu::Program>> Get(const std::string& ptx,
                                                  const std::string& digest) {
    const std::string& key = digest.empty() ? ptx : digest;
    if (const auto* const known = kept_.Find(key)) return *known;
    ASSAY_TRY(std::shared_ptr<const emu::Program> program, emu::Program::Load(ptx));
    kept_.Keep(key, program);
    return program;
  }
  bool Has(const std::string& digest) { return kept_.Find(digest) != nullptr; }

 private:
  Lru<std::shared_ptr<const emu::Program>> kept_{kKeptPrograms};
};

Report Unsupported(const Error& error, std::size_t buffers) {
  Report report;
  report.stop = error.kind == ErrorKind::kLimit ? Stop::kResourceLimit : Stop::kUnsupported;
  report.reason = ToString(error);
  report.unwritten_bytes.assign(buffers, 0);
  report.first_unwritten.assign(buffers, -1);
  return report;
}

Result<sandbox::Answer> RunRequest(ProgramCache& programs, sandbox::Message request) {
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(request.header, "emulate request"));
  ASSAY_TRY(const std::string action, header.Required<std::string>("action"));
  const bool counts = action == "count";
  if (!counts && action != "run")
    return Fail(ErrorKind::kUsage, "unknown action '" + action + "'", header.PlaceOf("action"));
  CountOptions options;
  if (counts) {
    ASSAY_TRY(const Json asked, header.Required<Json>("options"));
    ASSAY_TRY(options, ReadJson<CountOptions>(asked, header.PlaceOf("options")));
  }
  ASSAY_TRY(const std::string digest, header.Optional<std::string>("program", ""));
  ASSAY_TRY(const Json document, header.Required<Json>("execution"));
  ASSAY_TRY_VOID(header.Finish());
  if (!digest.empty() && request.payload.empty() && !programs.Has(digest))
    return sandbox::Answer{.header = {{"unknown_program", true}}};
  ASSAY_TRY(const Execution execution, ExecutionFromJson(document));
  ASSAY_TRY(const MappedBuffers mapped, MapBuffers(execution, std::move(request.fds)));
  auto program = programs.Get(request.payload, digest);
  sandbox::Answer answer;
  if (!program) {
    answer.header["report"] = ToJson(Unsupported(program.error(), execution.buffers.size()));
  } else if (counts) {
    const emu::Counted counted = emu::Count(**program, execution, mapped.bytes, options);
    answer.header["report"] = ToJson(counted.report);
    answer.header["counts"] = WriteJson(counted.launches);
  } else {
    answer.header["report"] = ToJson(emu::Run(**program, execution, mapped.bytes));
  }
  return answer;
}

}  // namespace

Result<sandbox::Service> MakeEmulateService() {
  auto programs = std::make_shared<ProgramCache>();
  return [programs](sandbox::Message request) { return RunRequest(*programs, std::move(request)); };
}

}  // namespace assay::workers

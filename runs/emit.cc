#include "runs/emit.h"

#include "base/digest.h"

namespace assay::runs {
namespace {

Json ResourcesToJson(const std::map<std::string, engine::Resources>& resources) {
  Json json = Json::object();
  for (const auto& [entry, use] : resources) {
    json[entry] = {{"registers", use.registers},
                   {"static_shared_bytes", use.static_shared_bytes},
                   {"stack_bytes", use.stack_bytes},
                   {"spill_store_bytes", use.spill_store_bytes},
                   {"spill_load_bytes", use.spill_load_bytes}};
  }
  return json;
}

}  // namespace

Json CertificateOf(const gates::VettedKernel& kernel, const Provenance& provenance,
                   const std::string& time) {
  const ops::Instance& instance = kernel.instance();
  Json binding = Json::object();
  for (const auto& [variable, dtype] : instance.binding) binding[variable] = Name(dtype);
  // Gates as the verdict shows them: cases, seeds, statistics with their limits, seconds. Nothing
  // was refuted, so there are no counterexamples to carry.
  const Json verdict = verdict::ToJson(kernel.verdict());
  Json gates = Json::array();
  Json skipped = Json::array();
  for (const Json& gate : verdict.at("gates")) {
    Json shown = gate;
    shown.erase("counterexamples");
    if (gate.at("status") == verdict::Name(verdict::GateStatus::kSkipped)) {
      skipped.push_back({{"gate", gate.at("gate")}, {"reason", gate.at("reason")}});
    } else {
      gates.push_back(std::move(shown));
    }
  }
  return {{"schema", "assay.certificate/1"},
          {"instance", instance.Id()},
          {"op", {{"name", instance.op.name}, {"sha256", instance.op.digest}}},
          {"binding", std::move(binding)},
          {"arch", instance.arch},
          {"outcome", verdict::Name(kernel.verdict().outcome)},
          {"engine", kernel.verdict().engine},
          {"sha256",
           {{"kernel.cu", Sha256Hex(kernel.candidate().kernel)},
            {"launch.json", Sha256Hex(kernel.candidate().launch)},
            {"kernel.ptx", Sha256Hex(kernel.compiled().ptx)},
            {"kernel." + instance.arch + ".cubin", Sha256Hex(kernel.compiled().cubin)},
            {"prompts", provenance.prompts_digest}}},
          {"author", {{"model", provenance.author}, {"attempt", provenance.attempt}}},
          {"compiler", kernel.compiled().compiler},
          {"resources", ResourcesToJson(kernel.compiled().resources)},
          {"gates", std::move(gates)},
          {"skipped", std::move(skipped)},
          {"ledger", verdict.at("ledger")},
          {"versions", provenance.versions},
          {"time", time}};
}

Status Emit(const gates::VettedKernel& kernel, const Provenance& provenance, Clock& clock,
            const Path& folder) {
  std::error_code error;
  const Path fresh = folder.string() + ".new";
  const Path old = folder.string() + ".old";
  std::filesystem::remove_all(fresh, error);
  std::filesystem::remove_all(old, error);
  ASSAY_TRY_VOID(MakeFolders(fresh));
  ASSAY_TRY_VOID(WriteFileAtomically(fresh / "kernel.cu", kernel.candidate().kernel));
  ASSAY_TRY_VOID(WriteFileAtomically(fresh / "launch.json", kernel.candidate().launch));
  ASSAY_TRY_VOID(WriteFileAtomically(fresh / "kernel.ptx", kernel.compiled().ptx));
  ASSAY_TRY_VOID(WriteFileAtomically(fresh / ("kernel." + kernel.instance().arch + ".cubin"),
                                     kernel.compiled().cubin));
  ASSAY_TRY_VOID(
      WriteFileAtomically(fresh / "certificate.json",
                          PrettyJson(CertificateOf(kernel, provenance, clock.Timestamp()))));
  if (std::filesystem::exists(folder, error)) std::filesystem::rename(folder, old, error);
  std::filesystem::rename(fresh, folder, error);
  if (error) {
    return Fail(ErrorKind::kEnvironment,
                "cannot move the vetted kernel into place: " + error.message(), folder.string(),
                "check that the run's folder is writable; the run can be resumed");
  }
  std::filesystem::remove_all(old, error);
  return {};
}

}  // namespace assay::runs

#include "runs/emit.h"

#include "base/digest.h"
#include "loaders/loader.h"
#include "runs/verify.h"

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

// Name -> content of all files but the certificate. Loaders are left out of a kernel that is called in
// a way they do not know: it can be launched all the same.
std::map<std::string, std::string> ContentsOf(const gates::VettedKernel& kernel) {
  const ops::Instance& instance = kernel.instance();
  const std::string cubin = "kernel." + instance.arch + ".cubin";
  std::map<std::string, std::string> files = {{"kernel.cu", kernel.candidate().kernel},
                                              {"launch.json", kernel.candidate().launch},
                                              {"kernel.ptx", kernel.compiled().ptx},
                                              {cubin, kernel.compiled().cubin}};
  const Result<Json> launch = ParseJson(kernel.candidate().launch, "launch.json");
  if (!launch) return files;
  const Result<ops::LaunchPlan> plan = ops::ParseLaunchPlan(*launch, "launch.json", instance.op);
  if (!plan) return files;
  std::map<std::string, loaders::Reach> reach;
  for (const verdict::AxisReach& axis : kernel.verdict().ledger.axes())
    reach[axis.axis] = {.whole = axis.whole, .at_ends = axis.at_ends};
  Result<loaders::Loader> loader =
      loaders::MakeLoader({.instance = instance,
                           .plan = *plan,
                           .symbols = kernel.compiled().lowered,
                           .reach = std::move(reach),
                           .images = {{cubin, Sha256Hex(files.at(cubin))},
                                      {"kernel.ptx", Sha256Hex(files.at("kernel.ptx"))}}});
  if (!loader) return files;
  files["kernel.py"] = std::move(loader->python);
  files["kernel.hpp"] = std::move(loader->cpp);
  return files;
}

Path FreshOf(const Path& folder) { return folder.string() + ".new"; }

std::unexpected<Error> NotWhatWasJudged(const Path& file, const std::string& what) {
  return Fail(ErrorKind::kMalformedInput, what, file.string(),
              "restore the run's folder from a copy, or begin a new run");
}

Status Check(const Path& folder, const std::string& certificate) {
  const Path file = folder / kCertificateFile;
  ASSAY_TRY(const std::string text, ReadFile(file));
  if (!certificate.empty() && Sha256Hex(text) != certificate)
    return NotWhatWasJudged(file, "the certificate is not the one that the run recorded");
  ASSAY_TRY(const Json json, ParseJson(text, file.string()));
  return CheckFiles(folder, json);
}

// Over what was written, not over what was meant to be.
Status Sign(const Path& folder, const SigningKey& key) {
  const Path file = folder / kCertificateFile;
  ASSAY_TRY(const std::string text, ReadFile(file));
  ASSAY_TRY(const Json certificate, OpenSealed(text, file.string()));
  ASSAY_TRY(auto files, FilesOf(certificate, file.string()));
  files[kCertificateFile] = Sha256Hex(text);
  return WriteFileAtomically(folder / kEnvelopeFile,
                             SignStatement(StatementOf(files, certificate), key));
}

Json CertificateFor(const std::map<std::string, std::string>& files,
                    const gates::VettedKernel& kernel, const Provenance& provenance,
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
    shown.erase("errors");  // drawn in reports, proof of nothing
    if (gate.at("status") == verdict::Name(verdict::GateStatus::kSkipped)) {
      skipped.push_back({{"gate", gate.at("gate")}, {"reason", gate.at("reason")}});
    } else {
      gates.push_back(std::move(shown));
    }
  }
  Json digests = Json::object();
  for (const auto& [name, content] : files) digests[name] = Sha256Hex(content);
  if (!provenance.prompts_digest.empty()) digests["prompts"] = provenance.prompts_digest;
  Json certificate = {{"schema", "assay.certificate/1"},
                      {"instance", instance.Id()},
                      {"op", {{"name", instance.op.name}, {"sha256", instance.op.digest}}},
                      {"binding", std::move(binding)},
                      {"arch", instance.arch},
                      {"outcome", verdict::Name(kernel.verdict().outcome)},
                      {"engine", kernel.verdict().engine},
                      {"truth", kernel.verdict().truth},
                      {"sha256", std::move(digests)},
                      {"author", {{"model", provenance.author}, {"attempt", provenance.attempt}}},
                      {"compiler", kernel.compiled().compiler},
                      {"resources", ResourcesToJson(kernel.compiled().resources)},
                      {"gates", std::move(gates)},
                      {"skipped", std::move(skipped)},
                      {"ledger", verdict.at("ledger")},
                      {"versions", provenance.versions},
                      {"time", time}};
  if (provenance.signer != nullptr) certificate["signer"] = provenance.signer->Public().id();
  return certificate;
}

}  // namespace

Json CertificateOf(const gates::VettedKernel& kernel, const Provenance& provenance,
                   const std::string& time) {
  return CertificateFor(ContentsOf(kernel), kernel, provenance, time);
}

Result<std::string> Emit(const gates::VettedKernel& kernel, const Provenance& provenance,
                         Clock& clock, const Path& folder) {
  std::error_code error;
  const Path fresh = FreshOf(folder);
  std::filesystem::remove_all(fresh, error);
  ASSAY_TRY_VOID(MakeFolders(fresh));
  const std::map<std::string, std::string> files = ContentsOf(kernel);
  for (const auto& [name, content] : files)
    ASSAY_TRY_VOID(WriteFileAtomically(fresh / name, content));
  const std::string certificate =
      SealedText(CertificateFor(files, kernel, provenance, clock.Timestamp()));
  ASSAY_TRY_VOID(WriteFileAtomically(fresh / kCertificateFile, certificate));
  if (provenance.signer != nullptr) ASSAY_TRY_VOID(Sign(fresh, *provenance.signer));
  return Sha256Hex(certificate);
}

Status Publish(const Path& folder, const std::string& certificate) {
  std::error_code error;
  const Path fresh = FreshOf(folder);
  const Path old = folder.string() + ".old";
  if (std::filesystem::exists(fresh, error)) {
    // One that no record names is of a judgement that did not come to its end.
    const Result<std::string> text = ReadFile(fresh / kCertificateFile);
    if (!text || Sha256Hex(*text) != certificate) {
      std::filesystem::remove_all(fresh, error);
    } else {
      std::filesystem::remove_all(old, error);
      if (std::filesystem::exists(folder, error)) std::filesystem::rename(folder, old, error);
      std::filesystem::rename(fresh, folder, error);
      if (error) {
        return Fail(ErrorKind::kEnvironment,
                    "cannot move the vetted kernel into place: " + error.message(), folder.string(),
                    "check that the run's folder is writable; the run can be resumed");
      }
    }
  }
  ASSAY_TRY_VOID(Check(folder, certificate));
  std::filesystem::remove_all(old, error);
  return {};
}

}  // namespace assay::runs

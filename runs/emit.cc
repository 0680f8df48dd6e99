#include "runs/emit.h"

#include "base/digest.h"
#include "runs/verify.h"
#include "runs/vetted_loaders.h"

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
  const auto loaders = LoadersOf({.instance = instance,
                                  .launch = kernel.candidate().launch,
                                  .symbols = kernel.compiled().lowered,
                                  .ledger = kernel.verdict().ledger,
                                  .cubin = kernel.compiled().cubin,
                                  .ptx = kernel.compiled().ptx});
  if (loaders) files.insert(loaders->begin(), loaders->end());
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

Result<std::string> EmitCopy(const Path& from, const Path& folder) {
  ASSAY_TRY(const std::string certificate, ReadFile(from / kCertificateFile));
  ASSAY_TRY_VOID(Check(from, Sha256Hex(certificate)));
  std::error_code error;
  const Path fresh = FreshOf(folder);
  std::filesystem::remove_all(fresh, error);
  ASSAY_TRY_VOID(MakeFolders(fresh));
  ASSAY_TRY(const Json json, ParseJson(certificate, (from / kCertificateFile).string()));
  ASSAY_TRY(auto files, FilesOf(json, (from / kCertificateFile).string()));
  if (json.contains("signer")) files[kEnvelopeFile] = "";
  for (const auto& [name, digest] : files) {
    ASSAY_TRY(const std::string content, ReadFile(from / name));
    ASSAY_TRY_VOID(WriteFileAtomically(fresh / name, content));
  }
  ASSAY_TRY_VOID(WriteFileAtomically(fresh / kCertificateFile, certificate));
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

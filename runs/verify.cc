#include "runs/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/text.h"
#include "runs/vetted_loaders.h"
#include "validator/gates/gate.h"
#include "validator/verdict/render.h"

namespace assay::runs {
namespace {

using Standing = Verification::Standing;
using Check = Verification::Check;

constexpr std::size_t kMostWords = 400;

std::unexpected<Error> Broken(const Path& file, std::string what) {
  return Fail(ErrorKind::kMalformedInput, std::move(what), file.string(),
              "restore the folder from a copy, or vet the kernel again");
}

// What a vetted folder holds beside certificate and envelope, and nothing else: a file of any other
// name would be one that nobody judged, and some names are read by who works in that folder.
bool IsVettedFile(std::string_view name) {
  constexpr std::string_view kFiles[] = {"kernel.cu", "launch.json", "kernel.ptx", "kernel.py",
                                         "kernel.hpp"};
  if (std::ranges::find(kFiles, name) != std::end(kFiles)) return true;
  constexpr std::string_view kHead = "kernel.sm_";
  constexpr std::string_view kTail = ".cubin";
  if (!name.starts_with(kHead) || !name.ends_with(kTail)) return false;
  const std::string_view chip =
      name.substr(kHead.size(), name.size() - kHead.size() - kTail.size());
  return !chip.empty() && chip.size() <= 8 && std::ranges::all_of(chip, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  });
}

// A word of a certificate; empty where there is none.
std::string Word(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json Part(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  return found == json.end() ? Json() : *found;
}

std::string Said(const Error& error) {
  return OneLine(error.place.empty() ? error.message : error.place + ": " + error.message,
                 kMostWords);
}

// One folder being verified; each member function is one check.
class Verifier {
 public:
  Verifier(const Path& folder, const VerifyOptions& options) : folder_(folder), options_(options) {}

  Verification Run() {
    if (!ReadCertificate()) return std::move(result_);
    Files();
    Signature();
    const bool op = Op();
    Sources(op);
    Loaders();
    Judge();
    return std::move(result_);
  }

 private:
  void Add(std::string name, Standing status, std::string detail) {
    result_.checks.push_back({std::move(name), status, OneLine(detail, kMostWords)});
  }
  void Add(std::string name, const Status& status, std::string detail) {
    Add(std::move(name), status ? Standing::kHolds : Standing::kBroken,
        status ? std::move(detail) : Said(status.error()));
  }

  bool ReadCertificate() {
    const Path file = folder_ / kCertificateFile;
    const Result<std::string> text = ReadFile(file);
    Result<Json> certificate =
        text ? OpenSealed(*text, file.string()) : Result<Json>(std::unexpected(text.error()));
    if (certificate && Word(*certificate, "schema") != "assay.certificate/1")
      certificate = Broken(file, "this is no certificate of a kind that is known here");
    if (certificate && Word(*certificate, "outcome") != "accepted")
      certificate = Broken(file, "the certificate is not of an accepted kernel");
    if (!certificate) {
      Add("certificate", Standing::kBroken, Said(certificate.error()));
      return false;
    }
    text_ = *text;
    certificate_ = *std::move(certificate);
    result_.instance = OneLine(Word(certificate_, "instance"), kMostWords);
    result_.engine = OneLine(Word(certificate_, "engine"), kMostWords);
    result_.signer = OneLine(Word(certificate_, "signer"), kMostWords);
    auto ledger = verdict::LedgerFromJson(Part(certificate_, "ledger"), file.string());
    if (ledger) result_.ledger = *ledger;
    const Json skipped = Part(certificate_, "skipped");
    if (skipped.is_array()) {
      for (const Json& gate : skipped) {
        if (gate.is_object())
          result_.skipped.push_back(
              OneLine(Word(gate, "gate") + ": " + Word(gate, "reason"), kMostWords));
      }
    }
    Add("certificate", ledger ? Standing::kHolds : Standing::kBroken,
        ledger ? fmt::format("{}, accepted on {}, {}", result_.instance, result_.engine,
                             Word(certificate_, "time"))
               : Said(ledger.error()));
    return true;
  }

  void Files() {
    Status checked = CheckFiles(folder_, certificate_);
    const auto files = FilesOf(certificate_, (folder_ / kCertificateFile).string());
    if (checked) checked = HasSources(*files);
    Add("files", checked,
        files ? fmt::format("{} files are what the certificate says", files->size()) : "");
  }

  // A certificate that named less would leave the rest unsaid.
  Status HasSources(const std::map<std::string, std::string>& files) const {
    const std::string cubin = "kernel." + Word(certificate_, "arch") + ".cubin";
    for (const std::string& name :
         {std::string("kernel.cu"), std::string("launch.json"), std::string("kernel.ptx"), cubin}) {
      if (!files.contains(name))
        return Broken(folder_ / kCertificateFile, "the certificate does not name " + name);
    }
    if (files.contains("kernel.py") != files.contains("kernel.hpp") ||
        files.size() > (files.contains("kernel.py") ? 6u : 4u))
      return Broken(folder_ / kCertificateFile, "the certificate does not name what a judge emits");
    return {};
  }

  Status CheckSignature() {
    const Path file = folder_ / kEnvelopeFile;
    ASSAY_TRY(const std::string text, ReadFile(file));
    ASSAY_TRY(const SignedStatement opened, OpenEnvelope(text, file.string()));
    if (opened.key.id() != Word(certificate_, "signer"))
      return Broken(file, "the key that signed is not the one that the certificate names");
    ASSAY_TRY(auto files, FilesOf(certificate_, (folder_ / kCertificateFile).string()));
    files[kCertificateFile] = Sha256Hex(text_);
    if (opened.statement != StatementOf(files, certificate_))
      return Broken(file, "what was signed is another folder");
    return {};
  }

  void Signature() {
    const std::string signer = Word(certificate_, "signer");
    if (signer.empty()) {
      if (options_.key) {
        Add("signature", Standing::kBroken, "a key was given, and nobody has signed this folder");
      } else {
        Add("signature", Standing::kNotAsked,
            "not signed: who can write this folder can make another that is whole as well");
      }
      return;
    }
    Status status = CheckSignature();
    if (status && options_.key && options_.key->id() != signer)
      status =
          Broken(folder_ / kEnvelopeFile, "signed by " + signer + ", which is not the key given");
    if (!status) {
      Add("signature", Standing::kBroken, Said(status.error()));
    } else if (options_.key) {
      Add("signature", Standing::kHolds, "by the key given, " + signer);
    } else {
      Add("signature", Standing::kNotAsked,
          "by " + signer + "; no key was given (--key) to say whose that is");
    }
  }

  // Whether the instance is known: then the sources can be compiled as the judge compiled them.
  bool Op() {
    const Path file = folder_ / kCertificateFile;
    const Json op = Part(certificate_, "op");
    const std::string name = op.is_object() ? Word(op, "name") : "";
    const Result<ops::OpSpec> found =
        options_.find_op ? options_.find_op(name)
                         : Fail(ErrorKind::kUsage, "there is no library to look in");
    if (!found) {
      Add("op", Standing::kUnknown, Said(found.error()));
      return false;
    }
    if (found->name != name) {
      Add("op", Standing::kBroken,
          fmt::format("the certificate is of the op '{}', not of '{}'", name, found->name));
      return false;
    }
    std::map<std::string, std::string> binding;
    const Json words = Part(certificate_, "binding");
    if (words.is_object()) {
      for (const auto& [variable, dtype] : words.items())
        binding[variable] = dtype.is_string() ? dtype.get<std::string>() : "";
    }
    Result<ops::Instance> instance = ops::MakeInstance(*found, binding, Word(certificate_, "arch"));
    if (!instance || instance->Id() != Word(certificate_, "instance")) {
      Add("op", Standing::kBroken,
          instance ? "the certificate names the instance " + Word(certificate_, "instance") +
                         ", and describes " + instance->Id()
                   : Said(instance.error()));
      return false;
    }
    instance_ = *std::move(instance);
    if (found->digest != Word(op, "sha256")) {
      Add("op", Standing::kUnknown,
          fmt::format("'{}' is not the op here that it was then: what was vetted is vetted for the "
                      "op of then",
                      name));
      return true;
    }
    Add("op", Standing::kHolds, fmt::format("'{}' is the one of this library", name));
    return true;
  }

  // Nothing where the compiler makes the same; what differs otherwise.
  Result<std::string> Compiled() {
    ASSAY_TRY(std::string kernel, ReadFile(folder_ / "kernel.cu"));
    ASSAY_TRY(std::string launch, ReadFile(folder_ / "launch.json"));
    ASSAY_TRY(const Json document, ParseJson(launch, (folder_ / "launch.json").string()));
    ASSAY_TRY(const ops::LaunchPlan plan,
              ops::ParseLaunchPlan(document, (folder_ / "launch.json").string(), instance_.op));
    const verdict::Candidate candidate{.kernel = std::move(kernel), .launch = std::move(launch)};
    ASSAY_TRY(const engine::CompileOutcome outcome,
              options_.compiler->Compile(gates::RequestFor(instance_, candidate, plan)));
    using Kind = engine::CompileOutcome::Kind;
    if (outcome.kind == Kind::kTimedOut || outcome.kind == Kind::kCrashed)
      return Fail(ErrorKind::kEnvironment, "the compiler did not end: " + outcome.detail);
    const std::string then = Word(certificate_, "compiler");
    if (outcome.kind == Kind::kCompiled && outcome.kernel.compiler != then) {
      return Fail(ErrorKind::kEnvironment,
                  fmt::format("compiled by {} then; here is {}, which need not make the same", then,
                              outcome.kernel.compiler));
    }
    if (outcome.kind == Kind::kRefused) return "the compiler refuses them";
    ASSAY_TRY(const std::string ptx, ReadFile(folder_ / "kernel.ptx"));
    if (outcome.kernel.ptx != ptx) return "they compile to other PTX";
    ASSAY_TRY(const std::string cubin, ReadFile(folder_ / ("kernel." + instance_.arch + ".cubin")));
    if (outcome.kernel.cubin != cubin) return "they compile to other machine code";
    compiled_ = outcome.kernel;
    return std::string();
  }

  // kernel.py and kernel.hpp are programs that whoever uses the kernel runs: a certificate that anybody
  // could have written says nothing of them, but what they must be follows from the rest.
  void Loaders() {
    const auto files = FilesOf(certificate_, (folder_ / kCertificateFile).string());
    if (!files || !files->contains("kernel.py")) return;
    if (!compiled_) {
      const bool asked = options_.compiler != nullptr || !options_.no_compiler.empty();
      return Add("loaders", asked ? Standing::kUnknown : Standing::kNotAsked,
                 "not made again: that needs the sources compiled");
    }
    const auto differs = [&]() -> Result<std::string> {
      ASSAY_TRY(const std::string launch, ReadFile(folder_ / "launch.json"));
      ASSAY_TRY(const auto made, LoadersOf({.instance = instance_,
                                            .launch = launch,
                                            .symbols = compiled_->lowered,
                                            .ledger = result_.ledger,
                                            .cubin = compiled_->cubin,
                                            .ptx = compiled_->ptx}));
      for (const auto& [name, text] : made) {
        const auto named = files->find(name);
        if (named == files->end() || named->second != Sha256Hex(text)) return name;
      }
      return std::string();
    }();
    if (!differs) return Add("loaders", Standing::kUnknown, Said(differs.error()));
    if (differs->empty()) {
      return Add("loaders", Standing::kHolds,
                 "kernel.py and kernel.hpp are what follows from the rest");
    }
    Add("loaders", Standing::kUnknown,
        fmt::format(
            "{} is not what this version writes: it is another version's, or somebody else's; "
            "read it before it is run, or vet the kernel again",
            *differs));
  }

  void Sources(bool op) {
    if (options_.compiler == nullptr && options_.no_compiler.empty())
      return Add("sources", Standing::kNotAsked, "not compiled again, as was asked");
    if (options_.compiler == nullptr)
      return Add("sources", Standing::kUnknown, options_.no_compiler);
    if (!op) return Add("sources", Standing::kUnknown, "not compiled: that needs the op");
    const Result<std::string> differs = Compiled();
    if (!differs) {
      const bool folder = differs.error().kind == ErrorKind::kMalformedInput;
      return Add("sources", folder ? Standing::kBroken : Standing::kUnknown, Said(differs.error()));
    }
    Add("sources", differs->empty() ? Standing::kHolds : Standing::kBroken,
        differs->empty() ? Word(certificate_, "compiler") + " makes the same PTX and machine code"
                         : *differs);
  }

  // What another build may judge otherwise. The jail's description and the GPU's driver are not it.
  void Judge() {
    const Json versions = Part(certificate_, "versions");
    const auto then = [&](const std::string& tool) {
      return versions.is_object() ? Word(versions, tool) : std::string();
    };
    if (!options_.current) {
      return Add("judge", Standing::kNotAsked, fmt::format("assay {}", then("assay")));
    }
    for (const auto& [tool, now] : *options_.current) {
      if (tool != "assay" && tool != "nvrtc" && !tool.ends_with(" sha256")) continue;
      if (then(tool) == now) continue;
      return Add("judge", Standing::kBroken,
                 then(tool).empty()
                     ? fmt::format("the certificate does not say which {} judged", tool)
                     : fmt::format("judged by another judge than this one: {} was {}, and is {}",
                                   tool, then(tool), now));
    }
    Add("judge", Standing::kHolds, fmt::format("this build of assay {}", then("assay")));
  }

  const Path& folder_;
  const VerifyOptions& options_;
  Verification result_;
  std::string text_;
  Json certificate_;
  ops::Instance instance_;
  std::optional<engine::CompiledKernel> compiled_;  ///< Where it is what the folder holds.
};

}  // namespace

Result<std::map<std::string, std::string>> FilesOf(const Json& certificate,
                                                   const std::string& file) {
  const auto found = certificate.find("sha256");
  if (found == certificate.end() || !found->is_object())
    return Broken(file, "the certificate names no digests");
  std::map<std::string, std::string> files;
  for (const auto& [name, digest] : found->items()) {
    if (name == "prompts") continue;  // of what the model was asked with, which is no file here
    if (!IsVettedFile(name) || !digest.is_string())
      return Broken(file, "the certificate names '" + name + "'");
    files[name] = digest.get<std::string>();
  }
  return files;
}

Status CheckFiles(const Path& folder, const Json& certificate) {
  ASSAY_TRY(const auto files, FilesOf(certificate, (folder / kCertificateFile).string()));
  std::set<std::string> named = {kCertificateFile};
  if (certificate.contains("signer")) named.insert(kEnvelopeFile);
  for (const auto& [name, digest] : files) {
    ASSAY_TRY(const std::string content, ReadFile(folder / name, 1ull << 30));
    if (Sha256Hex(content) != digest)
      return Broken(folder / name, "the file is not the one that was vetted");
    named.insert(name);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (named.erase(entry.path().filename().string()) == 0)
      return Broken(entry.path(), "the certificate does not name this file");
    if (!entry.is_regular_file(error) || entry.is_symlink(error))
      return Broken(entry.path(), "this is a link, or no file");
  }
  if (error) return Broken(folder, "cannot be listed: " + error.message());
  if (!named.empty()) return Broken(folder / *named.begin(), "the file is missing");
  return {};
}

Verification::Outcome Verification::outcome() const {
  Outcome worst = Outcome::kHolds;
  for (const Check& check : checks) {
    if (check.status == Standing::kBroken) return Outcome::kBroken;
    if (check.status == Standing::kUnknown) worst = Outcome::kUnknown;
  }
  return checks.empty() ? Outcome::kUnknown : worst;
}

std::string_view Name(Verification::Standing standing) {
  constexpr std::string_view kNames[] = {"holds", "broken", "not known", "not asked"};
  return kNames[static_cast<std::size_t>(standing)];
}

std::string_view Name(Verification::Outcome outcome) {
  constexpr std::string_view kNames[] = {"verified", "refused", "inconclusive"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Verification Verify(const Path& folder, const VerifyOptions& options) {
  return Verifier(folder, options).Run();
}

Json ToJson(const Verification& verification) {
  Json checks = Json::array();
  for (const Check& check : verification.checks)
    checks.push_back(
        {{"check", check.name}, {"status", Name(check.status)}, {"detail", check.detail}});
  return {{"schema", "assay.verification/1"},
          {"outcome", Name(verification.outcome())},
          {"instance", verification.instance},
          {"engine", verification.engine},
          {"signer", verification.signer},
          {"checks", std::move(checks)},
          {"ledger", verdict::ToJson(verification.ledger)},
          {"skipped", verification.skipped}};
}

std::string RenderText(const Verification& verification) {
  std::string text = fmt::format("{}{}{}\n", Name(verification.outcome()),
                                 verification.instance.empty() ? "" : ": ", verification.instance);
  for (const Check& check : verification.checks)
    text += fmt::format("  {:<12} {:<10} {}\n", check.name, Name(check.status), check.detail);
  if (verification.instance.empty()) return text;
  text += "what the certificate covers (engine " + verification.engine + "):\n";
  text += verdict::RenderLedger(verification.ledger);
  for (const std::string& gate : verification.skipped) text += "not run: " + gate + "\n";
  return text;
}

}  // namespace assay::runs

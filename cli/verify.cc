// assay verify: is this folder what the judge let out?
#include "runs/verify.h"

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/workbench.h"
#include "ops/names.h"

namespace assay::cli {
namespace {

struct Request {
  std::string folder;
  std::string key;
  std::string op;
  bool current = false;
  bool no_compile = false;
  WorkbenchOptions tools{.jobs = 1};
};

int ExitCode(runs::Verification::Outcome outcome) {
  switch (outcome) {
    case runs::Verification::Outcome::kHolds:
      return kExitDone;
    case runs::Verification::Outcome::kBroken:
      return kExitRefuted;
    case runs::Verification::Outcome::kUnknown:
      return kExitInconclusive;
  }
  return kExitInternal;
}

Result<int> Verify(const Request& request, bool json) {
  std::error_code error;
  if (!std::filesystem::is_directory(request.folder, error)) {
    return Fail(ErrorKind::kUsage, "there is no such folder", request.folder,
                "name a vetted folder: the one that holds certificate.json");
  }
  runs::VerifyOptions options;
  if (!request.key.empty()) {
    ASSAY_TRY(runs::PublicKey key, runs::PublicKey::Load(request.key));
    options.key = std::move(key);
  }
  options.find_op = [&](const std::string& name) -> Result<ops::OpSpec> {
    if (!request.op.empty()) return ops::Library::Default().Find(request.op);
    // A folder from elsewhere does not bring what it is verified by.
    if (!ops::IsIdentifier(name))
      return Fail(ErrorKind::kUsage, "the certificate names no op of the library");
    return ops::Library::Default().Find(name);
  };
  std::unique_ptr<Workbench> bench;
  if (!request.no_compile || request.current) {
    Result<std::unique_ptr<Workbench>> made = Workbench::Make(request.tools);
    if (!made && request.current) return std::unexpected(made.error());
    if (made) {
      bench = *std::move(made);
    } else {
      options.no_compiler = "not compiled: " + made.error().message;
    }
  }
  if (bench != nullptr && !request.no_compile) options.compiler = &bench->compiler();
  if (request.current) {
    ASSAY_TRY(options.current, bench->JudgeVersions());
  }
  std::optional<Elapsed> elapsed(std::in_place, "verifying");
  const runs::Verification verification = runs::Verify(request.folder, options);
  elapsed.reset();
  Say(runs::RenderText(verification));
  if (json) ASSAY_TRY_VOID(PrintJson(runs::ToJson(verification)));
  return ExitCode(verification.outcome());
}

}  // namespace

void AddVerify(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "verify", "Is a vetted folder what the judge let out? Nothing is judged again.");
  auto request = std::make_shared<Request>();
  command->add_option("folder", request->folder, "The folder that holds certificate.json.")
      ->required();
  command->add_option("--key", request->key,
                      "Public key (PEM, Ed25519) whose signature it must have.");
  command->add_flag("--current", request->current,
                    "Refuse what another build of the judge than this one has let out.");
  command->add_flag("--no-compile", request->no_compile,
                    "Do not compile the sources again (a machine without NVRTC).");
  command->add_option("--op", request->op,
                      "Op to verify by, where the certificate's name is not of the library.");
  command->add_flag("--unsafe-no-jail", request->tools.unsafe_no_jail,
                    "Compile without namespaces.");
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Examples:\n"
      "  assay verify runs/ID/vetted/INSTANCE\n"
      "  assay verify kernels/softmax --key team.pub.pem --current\n"
      "Keys: openssl genpkey -algorithm ed25519 -out key.pem && chmod 600 key.pem   (assay "
      "generate "
      "--sign-key key.pem)\n"
      "      openssl pkey -in key.pem -pubout -out team.pub.pem                      (assay verify "
      "--key team.pub.pem)\n"
      "Without a key a folder is only known to be whole: who can write it can make another that "
      "is whole as well.\n"
      "Exit codes: 0 verified, 1 refused, 2 something could not be checked, 3 bad input.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Verify(*request, session.json); };
  });
}

}  // namespace assay::cli

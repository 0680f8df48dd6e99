#include "runs/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/digest.h"
#include "runs/testing/fakes.h"
#include "runs/testing/keys.h"
#include "runs/testing/schema.h"
#include "runs/vetted_loaders.h"

namespace assay::runs {
namespace {

using ::testing::HasSubstr;

constexpr const char* kKernel = "__global__ void k() {}\n";
constexpr const char* kPtx = ".version 8.0\n.target sm_90\n";

// Compiles the one kernel to the one PTX, and any other to another.
class OneCompiler final : public engine::Compiler {
 public:
  Result<engine::CompileOutcome> Compile(const engine::CompileRequest& request) override {
    ++asked;
    engine::CompileOutcome outcome;
    outcome.kind = kind;
    outcome.kernel.ptx = request.source == kKernel ? kPtx : "other";
    outcome.kernel.cubin =
        "\x7f"
        "ELF";
    outcome.kernel.compiler = version;
    for (const std::string& entry : request.entries) outcome.kernel.lowered[entry] = "_Z1k";
    return outcome;
  }
  engine::CompileOutcome::Kind kind = engine::CompileOutcome::Kind::kCompiled;
  std::string version = "NVRTC 13.0";
  int asked = 0;
};

// Only the Gatekeeper makes what Emit takes; what Emit leaves is made by hand here.
class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() : instance_(testing::RmsNorm()) {
    testing::WriteKeys(scratch_.path(), "ours");
    testing::WriteKeys(scratch_.path(), "other");
    Make(folder_);
  }

  Json Certificate() const {
    return {{"schema", "assay.certificate/1"},
            {"instance", instance_.Id()},
            {"op", {{"name", instance_.op.name}, {"sha256", instance_.op.digest}}},
            {"binding", {{"T", "bf16"}}},
            {"arch", instance_.arch},
            {"outcome", "accepted"},
            {"engine", "emulator"},
            {"sha256",
             {{"kernel.cu", Sha256Hex(std::string_view(kKernel))},
              {"launch.json", Sha256Hex(launch_)},
              {"kernel.ptx", Sha256Hex(std::string_view(kPtx))},
              {"kernel.sm_90.cubin", Sha256Hex(std::string_view("\x7f"
                                                                "ELF"))},
              {"prompts", "0"}}},
            {"author", {{"model", "m"}, {"attempt", 1}}},
            {"compiler", "NVRTC 13.0"},
            {"resources", Json::object()},
            {"gates", Json::array()},
            {"skipped", Json::array({{{"gate", "device"}, {"reason", "no GPU was asked for"}}})},
            {"ledger", verdict::ToJson(Ledger())},
            {"versions", {{"assay", "0.1.0"}, {"assay-worker sha256", "aa"}, {"jail", "j"}}},
            {"time", "2026-01-01T00:00:00.000Z"}};
  }
  static verdict::Ledger Ledger() {
    verdict::Ledger ledger;
    ledger.Planned("smoke", 3);
    ledger.Examined("smoke");
    ledger.LeaveOut("smoke", "no memory", "rows=1", 2);
    return ledger;
  }

  // Signed where a key is named.
  void Make(const Path& folder, const std::string& key = {}, const Json& changes = Json::object()) {
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(MakeFolders(folder));
    Json certificate = Certificate();
    certificate.update(changes, true);
    if (!key.empty()) certificate["signer"] = Key(key).Public().id();
    const std::string text = SealedText(certificate);
    Put(folder / "kernel.cu", kKernel);
    Put(folder / "launch.json", launch_);
    Put(folder / "kernel.ptx", kPtx);
    Put(folder / "kernel.sm_90.cubin",
        "\x7f"
        "ELF");
    Put(folder / "certificate.json", text);
    if (key.empty()) return;
    const Json sealed = *ParseJson(text, "c");
    auto files = *FilesOf(sealed, "c");
    files["certificate.json"] = Sha256Hex(text);
    Put(folder / "certificate.dsse.json", SignStatement(StatementOf(files, sealed), Key(key)));
  }
  SigningKey Key(const std::string& name) const {
    return *SigningKey::Load(scratch_.path() / (name + ".pem"));
  }
  static void Put(const Path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  }

  Verification AskOf(const Path& folder, const std::string& key = {}) {
    VerifyOptions options{.compiler = &compiler_,
                          .find_op = [&](const std::string& name) -> Result<ops::OpSpec> {
                            if (name == instance_.op.name) return instance_.op;
                            return Fail(ErrorKind::kUsage, "no op '" + name + "'");
                          }};
    if (!key.empty()) options.key = Key(key).Public();
    options.current = current_;
    return Verify(folder, options);
  }
  Verification Ask(const std::string& key = {}) { return AskOf(folder_, key); }
  std::string Outcome(const std::string& key = {}) { return std::string(Name(Ask(key).outcome())); }

  const ops::Instance instance_;
  const std::string launch_ = testing::Slurp(instance_.op.folder / "naive" / "launch.json");
  testing::TemporaryFolder scratch_;
  const Path folder_ = scratch_.path() / "vetted";
  OneCompiler compiler_;
  std::optional<std::map<std::string, std::string>> current_;
};

TEST_F(VerifyTest, WhatWasLetOutHoldsAndSaysWhatItCovers) {
  const Verification verification = Ask();
  EXPECT_EQ(Name(verification.outcome()), "verified") << RenderText(verification);
  EXPECT_EQ(compiler_.asked, 1);
  const std::string text = RenderText(verification);
  EXPECT_THAT(text, HasSubstr("1 of 3 planned cases"));
  EXPECT_THAT(text, HasSubstr("left out: 2 smoke: no memory"));
  EXPECT_THAT(text, HasSubstr("not run: device: no GPU was asked for"));
  EXPECT_THAT(text, HasSubstr("engine emulator"));
  EXPECT_THAT(text, HasSubstr("not signed"));
  EXPECT_EQ(ToJson(verification).at("ledger"), verdict::ToJson(Ledger()));
}

TEST_F(VerifyTest, ACertificateKeepsToItsSchema) {
  const Json schema = testing::ReadSchema("runs/schema/certificate.schema.json");
  Make(folder_, "ours");
  const Json certificate = *ParseJson(testing::Slurp(folder_ / "certificate.json"), "c");
  EXPECT_EQ(testing::Violation(schema, certificate, ""), "");
}

// The heart of it. Of a signed folder and of one that is not; with the key and without.
TEST_F(VerifyTest, OneChangedByteInAnyFileIsRefused) {
  for (const std::string key : {"", "ours"}) {
    Make(folder_, key);
    ASSERT_EQ(Outcome(key), "verified") << RenderText(Ask(key));
    ASSERT_EQ(Name(Verify(folder_, {}).outcome()), "inconclusive");
    for (const std::string& name : testing::FilesBelow(folder_)) {
      const std::string text = testing::Slurp(folder_ / name);
      for (std::size_t i = 0; i < text.size(); ++i) {
        std::string changed = text;
        changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
        Put(folder_ / name, changed);
        // By the bytes alone: neither op nor compiler is asked.
        ASSERT_EQ(Name(Verify(folder_, {}).outcome()), "refused") << name << " at " << i;
      }
      Put(folder_ / name, text + "\n");
      EXPECT_EQ(Outcome(), "refused") << name;
      Put(folder_ / name, text.substr(0, text.size() - 1));
      EXPECT_EQ(Outcome(), "refused") << name;
      Put(folder_ / name, text);
    }
    EXPECT_EQ(Outcome(key), "verified");
  }
}

TEST_F(VerifyTest, AMissingFileAndOneMoreAreRefused) {
  for (const std::string key : {"", "ours"}) {
    Make(folder_, key);
    for (const std::string& name : testing::FilesBelow(folder_)) {
      const std::string text = testing::Slurp(folder_ / name);
      std::filesystem::remove(folder_ / name);
      EXPECT_EQ(Outcome(key), "refused") << name;
      // The same bytes under a link are not the folder's own.
      Put(scratch_.path() / "elsewhere", text);
      std::filesystem::create_symlink(scratch_.path() / "elsewhere", folder_ / name);
      EXPECT_EQ(Outcome(key), "refused") << name;
      std::filesystem::remove(folder_ / name);
      Put(folder_ / name, text);
    }
    for (const char* const more : {"more.so", "certificate.dsse.json", ".hidden"}) {
      if (std::filesystem::exists(folder_ / more)) continue;
      Put(folder_ / more, "x");
      EXPECT_EQ(Outcome(key), "refused") << more;
      std::filesystem::remove(folder_ / more);
    }
    std::filesystem::create_directory(folder_ / "sub");
    EXPECT_EQ(Outcome(key), "refused");
    std::filesystem::remove(folder_ / "sub");
    EXPECT_EQ(Outcome(key), "verified");
  }
  EXPECT_EQ(Name(AskOf("/nowhere").outcome()), "refused");
}

TEST_F(VerifyTest, ACertificateOfAnotherKernelIsRefused) {
  const Path other = scratch_.path() / "other";
  Make(other, "ours", {{"sha256", {{"kernel.cu", Sha256Hex(std::string_view("other"))}}}});
  Put(other / "kernel.cu", "other");
  Make(folder_, "ours");
  EXPECT_EQ(Name(AskOf(other, "ours").outcome()), "refused");  // it compiles to something else
  for (const char* const file : {"certificate.json", "certificate.dsse.json"}) {
    std::filesystem::copy_file(other / file, folder_ / file,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(Outcome("ours"), "refused") << file;
  }
  EXPECT_EQ(Outcome(""), "refused");
}

TEST_F(VerifyTest, TheKeyGivenMustHaveSigned) {
  EXPECT_EQ(Outcome("ours"), "refused");  // nobody has
  Make(folder_, "ours");
  EXPECT_EQ(Outcome("ours"), "verified");
  EXPECT_EQ(Outcome("other"), "refused");
  EXPECT_THAT(RenderText(Ask("other")), HasSubstr("which is not the key given"));
  EXPECT_EQ(Outcome(), "verified");
  EXPECT_THAT(RenderText(Ask()), HasSubstr("no key was given (--key)"));
  // Who strips the signature has to seal the certificate again, and the key's owner sees it.
  Make(folder_);
  EXPECT_EQ(Outcome("ours"), "refused");
}

TEST_F(VerifyTest, AForgedFolderThatIsWholeIsFoundByItsKeyAlone) {
  Make(folder_, "other", {{"engine", "gpu,emulator"}});
  EXPECT_EQ(Outcome(), "verified");
  EXPECT_EQ(Outcome("ours"), "refused");
}

TEST_F(VerifyTest, WhatCannotBeCompiledAgainIsUndecided) {
  compiler_.version = "NVRTC 12.8";
  EXPECT_EQ(Outcome(), "inconclusive");
  EXPECT_THAT(RenderText(Ask()), HasSubstr("here is NVRTC 12.8"));
  compiler_.version = "NVRTC 13.0";
  compiler_.kind = engine::CompileOutcome::Kind::kCrashed;
  EXPECT_EQ(Outcome(), "inconclusive");
  compiler_.kind = engine::CompileOutcome::Kind::kRefused;
  EXPECT_EQ(Outcome(), "refused");
  const VerifyOptions none{.no_compiler = "there is no NVRTC",
                           .find_op = [&](const std::string&) { return instance_.op; }};
  EXPECT_EQ(Name(Verify(folder_, none).outcome()), "inconclusive");
  // The twin: who asks for less is told so, and gets it.
  const VerifyOptions less{.find_op = [&](const std::string&) { return instance_.op; }};
  EXPECT_EQ(Name(Verify(folder_, less).outcome()), "verified");
  EXPECT_THAT(RenderText(Verify(folder_, less)), HasSubstr("not compiled again, as was asked"));
}

TEST_F(VerifyTest, AnotherOpIsNotTheOneThatWasVetted) {
  Make(folder_, "", {{"op", {{"sha256", "00"}}}});
  EXPECT_EQ(Outcome(), "inconclusive");
  Make(folder_, "", {{"op", {{"name", "nothing"}}}});
  EXPECT_EQ(Outcome(), "inconclusive");
  Make(folder_, "", {{"binding", {{"T", "f32"}}}});
  EXPECT_EQ(Outcome(), "refused");
  Make(folder_, "", {{"outcome", "refuted"}});
  EXPECT_EQ(Outcome(), "refused");
  Make(folder_, "", {{"sha256", {{"../../x", "00"}}}});
  EXPECT_EQ(Outcome(), "refused");
}

TEST_F(VerifyTest, AnOlderJudgeIsRefusedWhereTheCurrentOneIsAsked) {
  current_ = {{"assay", "0.1.0"}, {"assay-worker sha256", "aa"}, {"jail", "another"}};
  EXPECT_EQ(Outcome(), "verified");
  current_ = {{"assay", "0.2.0"}, {"assay-worker sha256", "aa"}};
  EXPECT_EQ(Outcome(), "refused");
  current_ = {{"assay", "0.1.0"}, {"assay-worker sha256", "bb"}};
  EXPECT_EQ(Outcome(), "refused");
  current_ = std::map<std::string, std::string>{{"assay sha256", "cc"}};
  EXPECT_THAT(RenderText(Ask()), HasSubstr("does not say which assay sha256"));
  current_.reset();
  EXPECT_EQ(Outcome(), "verified");
}

// Hostile certificates: whatever stands in them, an answer comes.
TEST_F(VerifyTest, WhateverStandsInACertificateAnAnswerComes) {
  const Json right = Certificate();
  for (const auto& [key, value] : right.items()) {
    for (const Json& wrong : {Json(), Json(1), Json("x"), Json::array({Json(1)}), Json::object()}) {
      Make(folder_);
      Json certificate = right;
      certificate[key] = wrong;
      Put(folder_ / "certificate.json", SealedText(certificate));
      const Verification verification = Ask();
      EXPECT_FALSE(RenderText(verification).empty());
      if (key == "sha256" || key == "outcome" || key == "schema" || key == "ledger") {
        EXPECT_EQ(Name(verification.outcome()), "refused") << key << wrong;
      }
    }
  }
}

// Without a key anybody may write a certificate, and kernel.py is a program.
TEST_F(VerifyTest, LoadersAreWhatFollowsFromTheRest) {
  const Json plan = *ParseJson(launch_, "launch");
  std::map<std::string, std::string> symbols;
  for (const Json& kernel : plan.at("kernels")) symbols[kernel.at("entry")] = "_Z1k";
  const std::string cubin =
      "\x7f"
      "ELF";
  const verdict::Ledger ledger = Ledger();
  auto loaders = LoadersOf({.instance = instance_,
                            .launch = launch_,
                            .symbols = symbols,
                            .ledger = ledger,
                            .cubin = cubin,
                            .ptx = kPtx});
  ASSERT_TRUE(loaders) << ToString(loaders.error());
  const auto make = [&](const std::map<std::string, std::string>& more) {
    Json digests = Json::object();
    for (const auto& [name, text] : more) digests[name] = Sha256Hex(text);
    Make(folder_, "", {{"sha256", digests}});
    for (const auto& [name, text] : more) Put(folder_ / name, text);
  };
  make(*loaders);
  EXPECT_EQ(Outcome(), "verified") << RenderText(Ask());
  EXPECT_THAT(RenderText(Ask()), HasSubstr("what follows from the rest"));
  for (const char* const name : {"kernel.py", "kernel.hpp"}) {
    auto changed = *loaders;
    changed.at(name) += "\nimport os\n";
    make(changed);
    EXPECT_EQ(Outcome(), "inconclusive") << name;
    EXPECT_THAT(RenderText(Ask()), HasSubstr("read it before it is run")) << name;
  }
  make({{"kernel.py", loaders->at("kernel.py")}});
  EXPECT_EQ(Outcome(), "refused") << "one without the other";
  // A module of this name would be taken for torch by who works in the folder.
  for (const char* const name : {"torch.py", "__init__.py", "kernel.pyc", "kernel.sm_90.cubin.py",
                                 "kernel.sm_.cubin", "kernel.sm_80.cubin"}) {
    auto more = *loaders;
    more[name] = "x";
    make(more);
    EXPECT_EQ(Outcome(), "refused") << name;
  }
}

TEST_F(VerifyTest, ACertificateNamesEverythingThatIsEmitted) {
  for (const char* const name : {"kernel.cu", "launch.json", "kernel.ptx", "kernel.sm_90.cubin"}) {
    Make(folder_);
    Json certificate = Certificate();
    certificate.at("sha256").erase(name);
    Put(folder_ / "certificate.json", SealedText(certificate));
    std::filesystem::remove(folder_ / name);
    EXPECT_EQ(Outcome(), "refused") << name;
  }
}

}  // namespace
}  // namespace assay::runs

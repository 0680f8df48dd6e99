// Kernels that are wrong only where something is large (corpus/large/families): each family is a right
// kernel, which is accepted, and edits of it, each of which is refuted with a counterexample that
// replays.
//
// variants.json: {"op", "dtypes", "wrong": [{"name", "what", "edits": [["text", "other text"], ...]}]}.
// A text occurs once in kernel.cu or launch.json. What is "open" is accepted so far, and says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/gates/testing/share.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

using verdict::Candidate;
using verdict::Outcome;

const Path kFamilies = Path(ASSAY_SOURCE_DIR) / "corpus" / "large" / "families";

struct Member {
  std::string name;  ///< Of the test.
  std::string what;  ///< Empty: it is right.
  std::string op;
  std::map<std::string, std::string> dtypes;
  Candidate candidate;
};

void PrintTo(const Member& member, std::ostream* out) { *out << member.name; }

/// False where the text does not occur exactly once in either.
bool Edit(Candidate& candidate, const std::string& text, const std::string& other) {
  int edited = 0;
  for (std::string* const file : {&candidate.kernel, &candidate.launch}) {
    const std::size_t at = file->find(text);
    if (at == std::string::npos) continue;
    if (file->find(text, at + 1) != std::string::npos) return false;
    file->replace(at, text.size(), other);
    ++edited;
  }
  return edited == 1;
}

std::vector<Member> Members() {
  std::vector<Member> members;
  std::vector<Path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(kFamilies))
    folders.push_back(entry.path());
  std::ranges::sort(folders);
  for (const Path& folder : folders) {
    const Json json = ReadJsonFile((folder / "variants.json").string()).value();
    const std::string family = folder.filename().string();
    const Member right{.name = family + "_right",
                       .what = "",
                       .op = json.at("op"),
                       .dtypes = json.at("dtypes"),
                       .candidate = CandidateIn(folder)};
    members.push_back(right);
    for (const Json& wrong : json.at("wrong")) {
      if (wrong.contains("open")) continue;
      Member member = right;
      member.name = family + "_" + wrong.at("name").get<std::string>();
      member.what = wrong.at("what").get<std::string>();
      for (const Json& edit : wrong.at("edits")) {
        if (!Edit(member.candidate, edit.at(0), edit.at(1))) member.candidate.kernel.clear();
      }
      members.push_back(std::move(member));
    }
  }
  return members;
}

class FamiliesTest : public RealBenchTest<testing::TestWithParam<Member>> {};

TEST_P(FamiliesTest, IsJudgedRightly) {
  const Member& member = GetParam();
  ASSERT_NE(member.candidate.kernel, "") << "an edit's text does not occur exactly once";
  const ops::Instance instance =
      ops::MakeInstance(bench_->library.Find(member.op).value(), member.dtypes, "sm_90").value();
  Options options;
  options.holdout_seed = [] { return 20'260'101; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(instance, member.candidate);
  const std::string text = member.what + "\n" + RenderVerdict(judgement.verdict);
  EXPECT_TRUE(judgement.verdict.ledger.Balanced()) << text;
  if (member.what.empty()) {
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted) << text;
    return;
  }
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted) << text;
  const auto all = judgement.verdict.Counterexamples();
  ASSERT_FALSE(all.empty()) << text;
  const auto again = gatekeeper.Replay(instance, *all.front());
  ASSERT_TRUE(again) << ToString(again.error());
  ASSERT_FALSE(again->findings.empty()) << text;
  EXPECT_EQ(again->findings.front().kind, all.front()->findings.front().kind);
}

INSTANTIATE_TEST_SUITE_P(Corpus, FamiliesTest, testing::ValuesIn(Share(Members())),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace assay::gates

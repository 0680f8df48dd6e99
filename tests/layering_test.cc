// The layers of docs/design.md, enforced: a folder may include only the folders below it.
//
// The table is the law; a new folder needs a row. In particular nothing in validator/ may include agent/ or prompts/: the author must
// never steer the judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace assay {
namespace {

namespace fs = std::filesystem;
using Allowed = std::map<std::string, std::set<std::string>>;

const Allowed& Layers() {
  static const Allowed kLayers = {
      {"include", {}},
      {"base", {"include"}},
      {"ops", {"base"}},
      {"sandbox", {"base"}},
      {"validator/findings", {"base"}},
      {"validator/execution", {"base", "validator/findings"}},
      {"validator/ptx", {"base"}},
      {"validator/ptx/facts", {"base", "validator/ptx"}},
      {"validator/emu",
       {"base", "validator/ptx", "validator/findings", "validator/execution", "validator/emu/race",
        "validator/emu/watch", "validator/emu/weak", "validator/emu/shadow",
        "validator/emu/semantics", "validator/emu/handlers"}},
      {"validator/emu/race", {"base", "validator/emu/semantics"}},
      {"validator/emu/semantics", {"base", "validator/ptx"}},
      {"validator/emu/watch",
       {"base", "validator/ptx", "validator/findings", "validator/execution", "validator/emu",
        "validator/emu/race", "validator/emu/weak", "validator/emu/shadow",
        "validator/emu/handlers"}},
      {"validator/emu/weak",
       {"base", "validator/ptx", "validator/findings", "validator/execution", "validator/emu",
        "validator/emu/race", "validator/emu/watch", "validator/emu/semantics",
        "validator/emu/handlers"}},
      {"validator/emu/shadow",
       {"base", "validator/ptx", "validator/findings", "validator/execution", "validator/emu",
        "validator/emu/semantics", "validator/emu/handlers"}},
      {"validator/emu/handlers",
       {"base", "validator/ptx", "validator/findings", "validator/execution", "validator/emu",
        "validator/emu/race", "validator/emu/watch", "validator/emu/weak", "validator/emu/shadow",
        "validator/emu/semantics"}},
      {"validator/gpu", {"base", "validator/findings", "validator/execution"}},
      {"validator/cases", {"base", "ops", "validator/execution"}},
      {"validator/engine",
       {"base", "ops", "sandbox", "validator/findings", "validator/execution",
        "validator/ptx/facts", "validator/cases"}},
      {"validator/oracle",
       {"base", "ops", "validator/findings", "validator/execution", "validator/ptx/facts",
        "validator/cases", "validator/engine"}},
      {"validator/speed",
       {"base", "ops", "validator/findings", "validator/execution", "validator/cases",
        "validator/engine", "validator/oracle"}},
      {"validator/verdict",
       {"base", "ops", "validator/findings", "validator/execution", "validator/cases"}},
      {"validator/policy", {"base", "validator/findings", "validator/ptx/facts"}},
      {"validator/cost",
       {"base", "ops", "sandbox", "validator/findings", "validator/execution", "validator/cases",
        "validator/engine"}},
      {"validator/campaign",
       {"base", "ops", "validator/findings", "validator/execution", "validator/ptx/facts",
        "validator/cases", "validator/engine", "validator/oracle", "validator/verdict"}},
      {"validator/gates",
       {"base", "ops", "validator/findings", "validator/execution", "validator/cases",
        "validator/engine", "validator/oracle", "validator/speed", "validator/verdict",
        "validator/policy", "validator/campaign"}},
      {"validator/sanitize",
       {"base", "ops", "validator/findings", "validator/execution", "validator/engine"}},
      {"workers",
       {"base", "sandbox", "validator/findings", "validator/execution", "validator/ptx",
        "validator/ptx/facts", "validator/emu", "validator/gpu", "validator/engine"}},
      {"loaders", {"base", "ops"}},
      {"runs",
       {"base", "ops", "loaders", "validator/findings", "validator/execution", "validator/cases",
        "validator/engine", "validator/oracle", "validator/verdict", "validator/gates"}},
      {"rewards", {"base", "ops", "runs", "validator/findings", "validator/verdict"}},
      {"serve",
       {"base", "ops", "runs", "validator/findings", "validator/execution", "validator/engine",
        "validator/verdict", "validator/gates"}},
      {"dataset", {"base", "ops", "runs", "rewards", "validator/findings", "validator/verdict"}},
      {"report", {"base", "ops", "runs", "validator/findings", "validator/verdict"}},
      {"agent/models", {"base", "runs"}},
      {"agent/prompts",
       {"base", "ops", "runs", "validator/findings", "validator/cases", "validator/verdict"}},
      {"agent/loop",
       {"base", "ops", "runs", "agent/models", "agent/prompts", "validator/findings",
        "validator/verdict", "validator/campaign", "validator/gates"}},
      {"api",
       {"include", "base", "ops", "sandbox", "runs", "agent/loop", "validator/findings",
        "validator/campaign", "validator/engine", "validator/oracle", "validator/verdict",
        "validator/gates"}},
      {"batch",
       {"base", "ops", "runs", "agent/models", "agent/prompts", "agent/loop", "validator/findings",
        "validator/verdict"}},
      {"importers",
       {"base", "ops", "sandbox", "validator/execution", "validator/cases", "validator/engine",
        "validator/oracle"}},
      {"corpus", {"base", "validator/findings", "validator/gates"}},
      {"cli",
       {"base",
        "ops",
        "sandbox",
        "runs",
        "rewards",
        "serve",
        "dataset",
        "report",
        "agent/models",
        "agent/prompts",
        "agent/loop",
        "batch",
        "importers",
        "corpus",
        "validator/findings",
        "validator/execution",
        "validator/cases",
        "validator/engine",
        "validator/oracle",
        "validator/speed",
        "validator/verdict",
        "validator/campaign",
        "validator/cost",
        "validator/gates",
        "validator/sanitize"}},
  };
  return kLayers;
}

// The layer that a path relative to the repository belongs to: the longest row that is a prefix of its folder.
std::string LayerOf(const std::string& path) {
  std::string best;
  for (const auto& [layer, allowed] : Layers()) {
    if (path.starts_with(layer + "/") && layer.size() > best.size()) best = layer;
  }
  return best;
}

// Includes of `file` that its layer may not have, as "file:line includes path".
std::vector<std::string> Violations(const std::string& file, std::istream& text) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+)")re");
  const std::string layer = LayerOf(file);
  std::vector<std::string> violations;
  if (layer.empty()) return violations;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    std::smatch match;
    if (!std::regex_search(line, match, kInclude)) continue;
    if (fs::exists(fs::path(ASSAY_SOURCE_DIR) / "ops/prelude" / match[1].str()))
      continue;  // device headers
    // What the public headers include each other by holds outside of the tree as well.
    const std::string installed = "include/" + match[1].str();
    const bool is_public = fs::exists(fs::path(ASSAY_SOURCE_DIR) / installed);
    const std::string target = LayerOf(is_public ? installed : match[1].str());
    if (target == layer || Layers().at(layer).contains(target)) continue;
    violations.push_back(file + ":" + std::to_string(number) + ": " + layer +
                         " must not include \"" + match[1].str() + "\"" +
                         (target.empty() ? " (not a path from the repository's root)" : ""));
  }
  return violations;
}

struct Walk {
  int files = 0;
  std::vector<std::string> violations;
};

Walk WalkTree(const fs::path& root) {
  Walk walk;
  for (const auto& [layer, allowed] : Layers()) {
    if (!fs::exists(root / layer)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / layer)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      const std::string path = fs::relative(entry.path(), root);
      // Tests, and what only tests link (folders named testing), may reach for anything.
      if (LayerOf(path) != layer || path.ends_with("_test.cc") ||
          path.find("/testing/") != std::string::npos)
        continue;
      std::ifstream text(entry.path());
      std::ranges::move(Violations(path, text), std::back_inserter(walk.violations));
      ++walk.files;
    }
  }
  return walk;
}

TEST(Layering, NoForbiddenInclude) {
  const Walk walk = WalkTree(ASSAY_SOURCE_DIR);
  for (const std::string& violation : walk.violations) ADD_FAILURE() << violation;
  EXPECT_GT(walk.files, 20);
}

// The real folders, copied, each with one include that its layer may not have.
TEST(Layering, AForbiddenIncludeInACopyOfTheTreeIsFound) {
  struct Planted {
    const char* file;
    const char* include;
  };
  constexpr Planted kPlanted[] = {{"validator/emu/scheduler.h", "validator/engine/engine.h"},
                                  {"validator/emu/race/race.h", "validator/emu/warp.h"},
                                  {"validator/gates/gate.h", "agent/loop/loop.h"},
                                  {"agent/models/model.h", "agent/loop/loop.h"}};
  const fs::path copy = fs::path(testing::TempDir()) / "assay_layering_test";
  fs::remove_all(copy);
  for (const char* const folder : {"validator/emu", "validator/gates", "agent"}) {
    fs::create_directories(copy / folder);
    fs::copy(fs::path(ASSAY_SOURCE_DIR) / folder, copy / folder, fs::copy_options::recursive);
  }
  EXPECT_TRUE(WalkTree(copy).violations.empty());
  for (const Planted& planted : kPlanted) {
    ASSERT_TRUE(fs::exists(copy / planted.file)) << planted.file;
    std::ofstream(copy / planted.file, std::ios::app) << "#include \"" << planted.include << "\"\n";
  }
  const std::vector<std::string> violations = WalkTree(copy).violations;
  EXPECT_EQ(violations.size(), std::size(kPlanted));
  for (const Planted& planted : kPlanted) {
    EXPECT_TRUE(std::ranges::any_of(violations, [&](const std::string& violation) {
      return violation.starts_with(planted.file) &&
             violation.find(planted.include) != std::string::npos;
    })) << planted.file;
  }
  fs::remove_all(copy);
}

TEST(Layering, TheCheckItselfFires) {
  std::istringstream bad("#include \"agent/loop/loop.h\"\n#include \"base/error.h\"\n");
  const auto violations = Violations("validator/gates/x.cc", bad);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_NE(violations[0].find("validator/gates/x.cc:1"), std::string::npos);
  std::istringstream good("#include \"validator/oracle/oracle.h\"\n#include <vector>\n");
  EXPECT_TRUE(Violations("validator/gates/x.cc", good).empty());
  // Within the judge as well: what to try knows of no gate.
  const std::string up = "#include \"validator/gates/gate.h\"\n";
  for (const char* room :
       {"validator/campaign/x.cc", "validator/verdict/x.cc", "validator/policy/x.cc"}) {
    std::istringstream text(up);
    EXPECT_EQ(Violations(room, text).size(), 1u) << room;
  }
  std::istringstream same(up);
  EXPECT_TRUE(Violations("validator/gates/x.cc", same).empty());
}

// Inside agent/ as well: the record knows no model, a model no loop, a prompt no model.
TEST(Layering, TheRoomsOfTheAgentAreHeldApart) {
  const auto violations = [](const std::string& file, const std::string& header) {
    std::istringstream text("#include \"" + header + "\"\n");
    return Violations(file, text).size();
  };
  EXPECT_EQ(violations("runs/x.cc", "agent/models/model.h"), 1u);
  EXPECT_EQ(violations("agent/models/x.cc", "agent/loop/generate.h"), 1u);
  EXPECT_EQ(violations("agent/prompts/x.cc", "agent/models/model.h"), 1u);
  EXPECT_EQ(violations("agent/models/x.cc", "runs/conversation.h"), 0u);
  EXPECT_EQ(violations("agent/loop/x.cc", "agent/models/model.h"), 0u);
  // A folder of agent/ without a row of its own is nobody's.
  EXPECT_EQ(violations("agent/loop/x.cc", "agent/other/x.h"), 1u);
}

TEST(Layering, EveryFolderWithSourcesHasARow) {
  const fs::path root = ASSAY_SOURCE_DIR;
  for (const char* top :
       {"include", "base", "ops", "sandbox", "validator", "workers", "loaders", "runs", "rewards",
        "dataset", "report", "agent", "api", "batch", "corpus", "cli"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.path().extension() != ".h") continue;
      const std::string path = fs::relative(entry.path(), root);
      if (path.find("/testing/") != std::string::npos) continue;
      EXPECT_FALSE(LayerOf(path).empty()) << path << " belongs to no layer of the table";
    }
  }
}

}  // namespace
}  // namespace assay

// The tables of corpus/regress/README.md: each row names what is there and says how it comes out,
// and each kernel of that folder has a row. A file that moves, or a test that is renamed, shows here.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace assay::tests {
namespace {

const Path kTree = ASSAY_SOURCE_DIR;
const Path kRegress = kTree / "corpus" / "regress";

struct Row {
  std::string text;
  std::vector<std::string> where;
  std::string comes_out;
  std::vector<std::string> twins;
};

std::vector<std::string> Cut(std::string_view text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// What stands between backticks.
std::vector<std::string> Quoted(std::string_view cell) {
  std::vector<std::string> names;
  const std::vector<std::string> parts = Cut(cell, '`');
  for (std::size_t i = 1; i < parts.size(); i += 2) names.push_back(parts[i]);
  return names;
}

std::string Trimmed(const std::string& cell) {
  const std::size_t first = cell.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : cell.substr(first, cell.find_last_not_of(' ') + 1 - first);
}

std::vector<Row> ReadRows(std::string_view document) {
  std::vector<Row> rows;
  for (const std::string& line : Cut(document, '\n')) {
    if (!line.starts_with("| ") || line.starts_with("| what |")) continue;
    const std::vector<std::string> cells = Cut(line, '|');
    EXPECT_EQ(cells.size(), 6u) << line;
    if (cells.size() != 6) continue;
    rows.push_back({line, Quoted(cells[2]), Trimmed(cells[3]), Quoted(cells[4])});
  }
  return rows;
}

Path PlaceOf(const std::string& name) {
  const std::string path = name.substr(0, name.find(": "));
  return path.find('/') == std::string::npos ? kRegress / path : kTree / path;
}

/// What is wrong with a name; empty: it is there, and so is what it says to look for.
std::string Fault(const std::string& name) {
  const Path place = PlaceOf(name);
  if (!std::filesystem::exists(place)) return place.string() + " is not there";
  const std::size_t colon = name.find(": ");
  if (colon == std::string::npos) return "";
  const auto text = ReadFile(place);
  if (!text) return ToString(text.error());
  return text->contains(name.substr(colon + 2)) ? "" : name + ": it does not say so";
}

/// How expect.json says that a kernel comes out; empty where it says nothing of the kind.
std::string Expected(const std::string& name) {
  const Path file = PlaceOf(name) / "expect.json";
  if (!std::filesystem::exists(file)) return "";
  const auto about = ReadJsonFile(file.string());
  EXPECT_TRUE(about) << ToString(about.error());
  return about ? about->value("expect", "") : "";
}

TEST(NamedExamples, AreWhereTheTableSays) {
  const std::vector<Row> rows = ReadRows(ReadFile(kRegress / "README.md").value());
  EXPECT_GT(rows.size(), 60u);
  const std::set<std::string> words = {"refuted",  "accepted", "inconclusive",
                                       "findings", "test",     "open"};
  for (const Row& row : rows) {
    EXPECT_TRUE(words.contains(row.comes_out)) << row.text;
    EXPECT_FALSE(row.where.empty()) << row.text;
    for (const std::string& name : row.where) {
      EXPECT_EQ(Fault(name), "") << row.text;
      const std::string expected = Expected(name);
      EXPECT_TRUE(expected.empty() || expected == row.comes_out) << row.text;
    }
    for (const std::string& name : row.twins) {
      EXPECT_EQ(Fault(name), "") << row.text;
      EXPECT_TRUE(Expected(name) != row.comes_out || Expected(name).empty()) << row.text;
    }
  }
}

TEST(NamedExamples, EveryKernelHasARowAndASentence) {
  std::set<std::string> named;
  for (const Row& row : ReadRows(ReadFile(kRegress / "README.md").value())) {
    named.insert(row.where.begin(), row.where.end());
    named.insert(row.twins.begin(), row.twins.end());
  }
  for (const auto& entry : std::filesystem::directory_iterator(kRegress)) {
    const std::string name = entry.path().filename();
    if (!entry.is_directory() || name == "ops") continue;
    EXPECT_TRUE(named.contains(name)) << name << " stands in no table";
    const auto about = ReadJsonFile((entry.path() / "expect.json").string());
    ASSERT_TRUE(about) << ToString(about.error());
    EXPECT_FALSE(about->value("what", "").empty()) << name;
  }
}

TEST(NamedExamples, WhatIsMissingIsFound) {
  EXPECT_EQ(Fault("corpus/README.md: regress/"), "");
  EXPECT_NE(Fault("corpus/README.md: no such words there"), "");
  EXPECT_NE(Fault("corpus/no_such_folder"), "");
  EXPECT_NE(Fault("no_such_kernel"), "");
}

}  // namespace
}  // namespace assay::tests

#include "tests/litmus/litmus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/file.h"

namespace assay::litmus {
namespace {

using Kind = Instruction::Kind;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::optional<std::uint32_t> Number(const std::string& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<T> Find(const std::vector<std::pair<std::string, T>>& names,
                      const std::string& name) {
  for (const auto& [key, value] : names) {
    if (key == name) return value;
  }
  return std::nullopt;
}

const std::vector<std::pair<std::string, Order>> kOrders = {{"weak", Order::kWeak},
                                                            {"volatile", Order::kVolatile},
                                                            {"relaxed", Order::kRelaxed},
                                                            {"acquire", Order::kAcquire},
                                                            {"release", Order::kRelease},
                                                            {"acq_rel", Order::kAcqRel},
                                                            {"sc", Order::kSc}};
const std::vector<std::pair<std::string, Scope>> kScopes = {
    {"cta", Scope::kCta}, {"gpu", Scope::kGpu}, {"sys", Scope::kSys}};
const std::vector<std::pair<std::string, Kind>> kKinds = {
    {"st", Kind::kStore},   {"ld", Kind::kLoad},     {"atom", Kind::kAdd},
    {"red", Kind::kReduce}, {"fence", Kind::kFence}, {"bar", Kind::kBarrier}};
const std::vector<std::pair<std::string, Test::Expectation>> kExpectations = {
    {"forbidden", Test::Expectation::kForbidden},
    {"allowed shown", Test::Expectation::kShown},
    {"allowed never", Test::Expectation::kNever},
    {"allowed race", Test::Expectation::kRace}};

int RegisterOf(const std::string& text) {
  if (text.size() < 2 || text[0] != 'r') return -1;
  const auto number = Number(text.substr(1));
  return number && *number < 16 ? static_cast<int>(*number) : -1;
}

int LocationOf(Test& test, const std::string& name) {
  const auto at = std::ranges::find(test.locations, name);
  if (at != test.locations.end()) return static_cast<int>(at - test.locations.begin());
  test.locations.push_back(name);
  return static_cast<int>(test.locations.size()) - 1;
}

/// False: not an instruction.
bool ParseInstruction(const std::string& line, Test& test, Thread& thread) {
  const std::vector<std::string> words = Split(line, ' ');
  const std::vector<std::string> parts = Split(words[0], '.');
  Instruction in;
  in.text = line;
  const auto kind = Find(kKinds, parts[0]);
  if (!kind) return false;
  in.kind = *kind;
  if (in.kind == Kind::kBarrier) {
    thread.code.push_back(in);
    return words.size() == 1 && parts.size() == 1;
  }
  if (parts.size() < 2) return false;
  const auto order = Find(kOrders, parts[1]);
  if (!order) return false;
  in.order = *order;
  const bool scoped = in.order != Order::kWeak && in.order != Order::kVolatile;
  std::size_t next = 2;
  if (scoped) {
    const auto scope = parts.size() > next ? Find(kScopes, parts[next]) : std::nullopt;
    if (!scope) return false;
    in.scope = *scope;
    ++next;
  }
  if (in.kind == Kind::kAdd || in.kind == Kind::kReduce) {
    if (parts.size() != next + 1) return false;
    if (parts[next] == "exch" && in.kind == Kind::kAdd) {
      in.kind = Kind::kExchange;
    } else if (parts[next] != "add") {
      return false;
    }
    ++next;
  }
  if (parts.size() != next) return false;
  std::size_t word = 1;
  if (in.kind == Kind::kLoad || in.kind == Kind::kAdd || in.kind == Kind::kExchange) {
    if (words.size() <= word) return false;
    in.result = RegisterOf(words[word++]);
    if (in.result < 0) return false;
    thread.registers = std::max(thread.registers, in.result + 1);
  }
  if (in.kind != Kind::kFence) {
    if (words.size() <= word) return false;
    in.location = LocationOf(test, words[word++]);
  }
  if (in.Writes()) {
    if (words.size() <= word) return false;
    in.operand = RegisterOf(words[word]);
    if (in.operand < 0) {
      const auto value = Number(words[word]);
      if (!value) return false;
      in.value = *value;
    } else if (in.operand >= thread.registers) {
      return false;
    }
    ++word;
  }
  thread.code.push_back(in);
  return words.size() == word;
}

bool ParseOutcome(const std::string& text, Outcome& outcome) {
  for (const std::string& term : Split(text, ' ')) {
    const std::vector<std::string> sides = Split(term, '=');
    const auto value = sides.size() == 2 ? Number(sides[1]) : std::nullopt;
    if (!value) return false;
    outcome[sides[0]] = *value;
  }
  return !outcome.empty();
}

std::string Trim(std::string line) {
  const auto comment = line.find('#');
  if (comment != std::string::npos) line.resize(comment);
  const auto first = line.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(' ') - first + 1);
}

/// One line of a test that has begun. False: it cannot be read.
bool ParseLine(const std::string& key, const std::string& rest, const std::string& line,
               Test& test) {
  if (key == "about") {
    test.about = rest;
  } else if (key == "space") {
    test.shared = rest == "shared";
    return test.shared;
  } else if (key == "thread") {
    const std::vector<std::string> parts = Split(rest, '.');
    const auto block = parts.size() == 2 ? Number(parts[0]) : std::nullopt;
    const auto thread = parts.size() == 2 ? Number(parts[1]) : std::nullopt;
    if (!block || !thread) return false;
    test.threads.push_back({.block = *block, .thread = *thread, .code = {}});
  } else if (key == "outcome") {
    return ParseOutcome(rest, test.outcome);
  } else if (key == "expect") {
    const auto expectation = Find(kExpectations, rest);
    if (!expectation) return false;
    test.expectation = *expectation;
  } else {
    return !test.threads.empty() && ParseInstruction(line, test, test.threads.back());
  }
  return true;
}

}  // namespace

std::string ToString(const Outcome& outcome) {
  std::string text;
  for (const auto& [name, value] : outcome)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

bool Matches(const Outcome& whole, const Outcome& part) {
  return std::ranges::all_of(part, [&](const auto& term) {
    const auto at = whole.find(term.first);
    return at != whole.end() && at->second == term.second;
  });
}

std::uint32_t Test::blocks() const {
  std::uint32_t most = 0;
  for (const Thread& thread : threads) most = std::max(most, thread.block + 1);
  return most;
}

std::uint32_t Test::block_threads() const {
  std::uint32_t most = 0;
  for (const Thread& thread : threads) most = std::max(most, thread.thread + 1);
  return (most + 31) / 32 * 32;
}

Result<std::vector<Test>> Parse(std::string_view text, const std::string& file) {
  std::vector<Test> tests;
  std::stringstream in{std::string(text)};
  int number = 0;
  for (std::string raw; std::getline(in, raw);) {
    ++number;
    const std::string line = Trim(raw);
    if (line.empty()) continue;
    const std::string key = line.substr(0, line.find(' '));
    const std::string rest = key.size() == line.size() ? "" : line.substr(key.size() + 1);
    if (key == "test") {
      tests.push_back({.name = rest});
    } else if (tests.empty() || !ParseLine(key, rest, line, tests.back())) {
      return Fail(ErrorKind::kMalformedInput, "cannot read '" + line + "'",
                  fmt::format("{}:{}", file, number));
    }
  }
  return tests;
}

Result<std::vector<Test>> LoadAll(std::string folder) {
  if (folder.empty()) folder = std::string(ASSAY_SOURCE_DIR) + "/tests/litmus/tests";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().string());
  std::ranges::sort(files);
  std::vector<Test> all;
  for (const std::string& file : files) {
    ASSAY_TRY(const std::string text, ReadFile(file));
    ASSAY_TRY(std::vector<Test> tests, Parse(text, file));
    all.insert(all.end(), tests.begin(), tests.end());
  }
  return all;
}

}  // namespace assay::litmus

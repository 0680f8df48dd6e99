#include "dataset/normalise.h"

#include <algorithm>
#include <limits>

#include "base/digest.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "dataset/declared.h"
#include "dataset/tokens.h"

namespace assay::dataset {
namespace {

constexpr std::size_t kRun = 5;  // tokens of a shingle

// Members and qualified names are another's, unless the source declares them as such.
bool IsOwn(std::span<const Token> tokens, std::size_t i, const Declared& declared) {
  if (tokens[i].kind != TokenKind::kWord || !declared.names.contains(tokens[i].text)) return false;
  if (i == 0) return true;
  const std::string_view before = tokens[i - 1].text;
  if (before == "." || before == "->") return declared.members.contains(tokens[i].text);
  if (before == "::" && i >= 2) return declared.names.contains(tokens[i - 2].text);
  return true;
}

constexpr auto kFlow = std::to_array<std::string_view>(
    {"if", "else", "for", "while", "do", "switch", "case", "default", "return", "break", "continue",
     "goto", "?", "&&", "||", "__global__", "asm"});

constexpr auto kTalk = std::to_array<std::string_view>(
    {"__sync",           "__shfl",       "atomic",     "__threadfence",
     "__ballot",         "__any",        "__all",      "__reduce",
     "__match",          "__activemask", "__pipeline", "__cluster",
     "__nanosleep",      "sync",         "arrive",     "wait",
     "memcpy_async",     "cp_async",     "mma_sync",   "load_matrix_sync",
     "store_matrix_sync"});

// Blocks that hold one step or none are the same flow without their braces.
std::string SkeletonOf(std::span<const Token> tokens, const Declared& declared) {
  std::vector<std::string_view> steps;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "__asm__") steps.push_back("asm");
    if (std::ranges::find(kFlow, text) != kFlow.end()) steps.push_back(text);
    if (text == "{") {
      open.push_back(steps.size());
      steps.push_back(text);
    }
    if (text == "}" && !open.empty()) {
      const std::size_t begin = open.back();
      open.pop_back();
      if (steps.size() - begin <= 2) {
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(begin));
      } else {
        steps.push_back(text);
      }
    }
    const bool call = tokens[i].kind == TokenKind::kWord && i + 1 < tokens.size() &&
                      tokens[i + 1].text == "(" && !IsOwn(tokens, i, declared);
    if (call &&
        std::ranges::any_of(kTalk, [&](std::string_view talk) { return text.starts_with(talk); })) {
      steps.push_back(text);
    }
  }
  std::string skeleton;
  for (const std::string_view step : steps) (skeleton += step) += ' ';
  return skeleton;
}

Sketch SketchOf(const std::vector<std::string_view>& words) {
  Sketch sketch{};
  if (words.size() < kRun) return sketch;
  sketch.fill(std::numeric_limits<std::uint32_t>::max());
  std::vector<std::uint64_t> hashes;
  hashes.reserve(words.size());
  for (const std::string_view word : words) hashes.push_back(DeriveSeed(0, word));
  for (std::size_t i = 0; i + kRun <= words.size(); ++i) {
    std::uint64_t shingle = 0;
    for (std::size_t k = 0; k < kRun; ++k) shingle = Mix64(shingle ^ hashes[i + k]);
    for (std::size_t k = 0; k < kSketchSize; ++k) {
      const auto value =
          static_cast<std::uint32_t>(Mix64(shingle + 0x9e3779b97f4a7c15u * (k + 1)) >> 32);
      sketch[k] = std::min(sketch[k], value);
    }
  }
  return sketch;
}

Normalised NormaliseLines(std::string_view source) {
  Normalised result;
  std::uint32_t number = 0;
  std::vector<std::string_view> lines;
  for (std::string_view line : SplitLines(source)) {
    ++number;
    const std::size_t end = line.find_last_not_of(" \t\r");
    if (end == std::string_view::npos) continue;
    line = line.substr(0, end + 1);
    result.text += std::string(line) + "\n";
    result.lines.push_back(number);
    lines.push_back(line);
  }
  result.digest = Sha256Hex(result.text);
  result.skeleton = result.digest;
  result.sketch = SketchOf(lines);
  return result;
}

// The plan names kernels by `entry`; its other strings are names of the op.
void RenameEntries(Json& json, const std::map<std::string, std::string>& renamed) {
  if (json.is_object()) {
    for (auto& [key, item] : json.items()) {
      if (key != "entry" || !item.is_string()) continue;
      // Of "first<float, 256>" the name is what stands before the bracket.
      const std::string entry = item.get<std::string>();
      const std::size_t end = std::min(entry.find('<'), entry.size());
      const auto found = renamed.find(entry.substr(0, end));
      if (found != renamed.end()) item = found->second + entry.substr(end);
    }
  }
  if (!json.is_structured()) return;
  for (auto& item : json) RenameEntries(item, renamed);
}

}  // namespace

std::size_t Normalised::PlaceOf(std::uint32_t line) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(lines, line) - lines.begin());
}

Normalised Normalise(std::string_view source, std::string_view language) {
  if (language != "cuda") return NormaliseLines(source);
  const std::vector<Token> tokens = Tokenise(source);
  const Declared declared = FindDeclared(tokens);
  Normalised result;
  std::vector<std::string_view> words;
  words.reserve(tokens.size());
  bool include = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    result.lines.push_back(token.line);
    if (token.kind == TokenKind::kLineEnd) {
      result.text += "\n";
      words.push_back("\n");
      include = false;
      continue;
    }
    if (token.kind == TokenKind::kDirective) {
      result.text += "\n";
      include = i + 1 < tokens.size() && tokens[i + 1].text == "include";
    }
    if (!include && IsOwn(tokens, i, declared)) {
      const auto name =
          result.renamed
              .emplace(std::string(token.text), "$" + std::to_string(result.renamed.size()))
              .first;
      result.text += name->second;
      words.push_back("$");
    } else {
      result.text += token.text;
      words.push_back(token.kind == TokenKind::kNumber ? std::string_view("0") : token.text);
    }
    result.text += ' ';
  }
  result.digest = Sha256Hex(result.text);
  result.skeleton = Sha256Hex(SkeletonOf(tokens, declared));
  result.sketch = SketchOf(words);
  return result;
}

std::string NormaliseLaunch(std::string_view launch, const Normalised& kernel) {
  Result<Json> plan = ParseJson(launch, "launch.json");
  if (!plan) return std::string(launch);
  // The order of keys means nothing.
  RenameEntries(*plan, kernel.renamed);
  return nlohmann::json(*plan).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double Likeness(const Sketch& a, const Sketch& b) {
  if (a == Sketch{} || b == Sketch{}) return 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < kSketchSize; ++i) equal += a[i] == b[i] ? 1u : 0u;
  return static_cast<double>(equal) / static_cast<double>(kSketchSize);
}

}  // namespace assay::dataset

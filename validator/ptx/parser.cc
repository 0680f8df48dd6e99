#include "validator/ptx/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "validator/ptx/names.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {
namespace {

/// Text of an untrusted module as it may stand in a message: printable ASCII, of bounded length.
std::string Shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string shown(text.substr(0, kMost));
  for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kMost ? shown + "..." : shown;
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the text";
    case Token::Kind::kDotted:
      return "'." + Shown(token.text) + "'";
    case Token::Kind::kString:
      return "\"" + Shown(token.text) + "\"";
    default:
      return "'" + Shown(token.text) + "'";
  }
}

}  // namespace

Excerpt MakeExcerpt(std::string_view text, std::string_view file, const Token& at) {
  constexpr std::size_t kBefore = 60, kAfter = 40;
  const std::size_t offset = std::min<std::size_t>(at.offset, text.size());
  const std::size_t previous = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const std::size_t start = previous == std::string_view::npos ? 0 : previous + 1;
  std::size_t end = text.find('\n', offset);
  if (end == std::string_view::npos) end = text.size();
  const std::size_t from = offset - start > kBefore ? offset - kBefore : start;
  std::string line(text.substr(from, std::min(end, offset + kAfter) - from));
  for (char& c : line) c = c == '\t' ? ' ' : (c >= ' ' && c <= '~' ? c : '?');
  return {
      .place = fmt::format("{}:{}:{}", file, at.line, offset - start + 1),
      .text = fmt::format("\n    {}\n    {}^ near here", line, std::string(offset - from, ' '))};
}

std::unexpected<Error> Parser::Error_(const Token& at, std::string message, std::string cure,
                                      ErrorKind kind) const {
  if (at.kind == Token::Kind::kError) {
    message = fmt::format("{}: '{}'", at.problem, Shown(at.text));
    cure.clear();
  }
  Excerpt excerpt = MakeExcerpt(text_, file_, at);
  return Fail(kind, std::move(message) + excerpt.text, std::move(excerpt.place), std::move(cure));
}

std::unexpected<Error> Parser::Expected(std::string_view what, std::string cure) const {
  return Error_(current_, fmt::format("expected {}, found {}", what, Describe(current_)),
                std::move(cure));
}

bool Parser::Accept(char punctuation) {
  if (!current_.Is(punctuation)) return false;
  Advance();
  return true;
}

Status Parser::Expect(char punctuation) {
  if (Accept(punctuation)) return {};
  return Expected(fmt::format("'{}'", punctuation));
}

Result<Token> Parser::ExpectIdentifier(std::string_view what) {
  if (current_.kind != Token::Kind::kIdentifier) return Expected(what);
  const Token token = current_;
  Advance();
  return token;
}

Result<std::uint64_t> Parser::ExpectCount(std::string_view what, std::uint64_t most) {
  if (current_.kind != Token::Kind::kInteger) return Expected(what);
  if (current_.bits > most) {
    return Error_(current_,
                  fmt::format("{} of {} is above the limit of {}", what, current_.bits, most), {},
                  ErrorKind::kLimit);
  }
  const std::uint64_t value = current_.bits;
  Advance();
  return value;
}

Result<Module> Parser::Run() {
  Advance();
  if (!current_.IsDotted("version")) {
    return Expected("'.version'", "a PTX module starts with .version, .target and .address_size");
  }
  while (current_.kind != Token::Kind::kEnd) ASSAY_TRY_VOID(ParseModuleItem());
  ASSAY_TRY_VOID(Finish());
  return std::move(module_);
}

Status Parser::ParseModuleItem() {
  if (Accept(';')) return {};
  if (current_.kind != Token::Kind::kDotted) {
    return Expected("a directive",
                    "at module level everything starts with a dot: .entry, .global ...");
  }
  Linkage linkage;
  while (true) {
    bool* const flag = current_.text == "extern"    ? &linkage.is_extern
                       : current_.text == "visible" ? &linkage.is_visible
                       : current_.text == "weak"    ? &linkage.is_weak
                       : current_.text == "common"  ? &linkage.is_common
                                                    : nullptr;
    if (flag == nullptr || current_.kind != Token::Kind::kDotted) break;
    *flag = true;
    Advance();
  }
  if (current_.kind != Token::Kind::kDotted) return Expected("a directive");
  const Token directive = current_;
  const std::string_view word = directive.text;
  Advance();
  if (word == "entry" || word == "func") return ParseFunction(word == "entry", linkage);
  if (word == "global") return ParseModuleVariables(Space::kGlobal, linkage);
  if (word == "const") return ParseModuleVariables(Space::kConst, linkage);
  if (word == "shared") return ParseModuleVariables(Space::kShared, linkage);
  if (word == "local") return ParseModuleVariables(Space::kLocal, linkage);
  if (word == "version") return ParseVersion();
  if (word == "target") return ParseTarget();
  if (word == "address_size") {
    const Token value = current_;
    ASSAY_TRY(const std::uint64_t bits, ExpectCount("an address size", 64));
    if (bits != 64 && bits != 32) return Error_(value, "an address size is 32 or 64");
    module_.address_bits = static_cast<int>(bits);
    return {};
  }
  if (word == "file") return ParseFile();
  if (word == "section") return ParseSection();
  if (word == "pragma") return ParsePragma();
  if (word == "alias") return ParseAlias();
  if (word == "reg" || word == "tex" || word == "texref" || word == "samplerref" ||
      word == "surfref" || word == "param") {
    return Error_(directive, fmt::format("'.{}' at module level is not covered", word), {},
                  ErrorKind::kUnsupported);
  }
  return Error_(directive, fmt::format("unknown directive '.{}'", Shown(word)));
}

Status Parser::ParseVersion() {
  const std::string_view text = current_.text;
  const std::size_t point = text.find('.');
  int major = 0, minor = 0;
  const auto parse = [](std::string_view digits, int& value) {
    const char* const end = digits.data() + digits.size();
    const auto [at, problem] = std::from_chars(digits.data(), end, value);
    return problem == std::errc{} && at == end && value >= 0 && value < 1000;
  };
  if (current_.kind != Token::Kind::kFloat64 || point == std::string_view::npos ||
      !parse(text.substr(0, point), major) || !parse(text.substr(point + 1), minor)) {
    return Expected("a version such as 8.3");
  }
  module_.version_major = major;
  module_.version_minor = minor;
  Advance();
  return {};
}

Status Parser::ParseTarget() {
  ASSAY_TRY(const Token name, ExpectIdentifier("a target such as sm_90"));
  if (!name.text.starts_with("sm_")) {
    return Error_(name, fmt::format("'{}' is not a target", Shown(name.text)),
                  "name it sm_NN, as in sm_90");
  }
  module_.target = name.text;
  while (Accept(',')) ASSAY_TRY_VOID(ExpectIdentifier("a target option such as 'debug'"));
  return {};
}

Status Parser::ParseFile() {
  ASSAY_TRY(const std::uint64_t index, ExpectCount("a file number", kLimits.files));
  if (current_.kind != Token::Kind::kString) return Expected("a file name in quotes");
  if (index >= module_.files.size()) module_.files.resize(index + 1);
  module_.files[index] = WithoutControls(current_.text);
  Advance();
  if (current_.kind == Token::Kind::kString) {  // A directory and a name.
    module_.files[index] += "/" + WithoutControls(current_.text);
    Advance();
  }
  while (Accept(',')) ASSAY_TRY_VOID(ExpectCount("a time stamp or size", UINT64_MAX));
  return {};
}

Status Parser::ParseSection() {
  if (current_.kind != Token::Kind::kDotted && current_.kind != Token::Kind::kIdentifier) {
    return Expected("the name of a section");
  }
  const Token name = current_;
  Advance();
  if (!current_.Is('{')) return Expected("'{'");
  if (name.IsDotted("debug_str")) return ParseDebugStrings();
  if (!lexer_.SkipBraces())
    return Error_(name, "a section that is never closed", "add the missing '}'");
  Advance();
  return {};
}

Status Parser::ParseDebugStrings() {
  ASSAY_TRY_VOID(Expect('{'));
  bool bytes = false;
  while (!current_.Is('}')) {
    if (current_.kind == Token::Kind::kEnd || current_.kind == Token::Kind::kError) {
      return Expected("'}'");
    }
    const Token token = current_;
    Advance();
    if (token.kind == Token::Kind::kIdentifier && Accept(':')) {
      locations_.AddDebugLabel(token.text);
    } else if (token.kind == Token::Kind::kDotted) {
      bytes = token.text == "b8" || token.text == "u8" || token.text == "s8";
    } else if (token.kind == Token::Kind::kInteger && bytes) {
      locations_.AddDebugByte(static_cast<char>(token.bits & 0xff));
    }
  }
  Advance();
  return {};
}

Status Parser::ParsePragma() {
  do {
    if (current_.kind != Token::Kind::kString) return Expected("a pragma in quotes");
    Advance();
  } while (Accept(','));
  return Expect(';');
}

Status Parser::ParseAlias() {
  ASSAY_TRY(const Token name, ExpectIdentifier("the name of a function"));
  ASSAY_TRY_VOID(Expect(','));
  ASSAY_TRY(const Token target, ExpectIdentifier("the name of a function"));
  const auto found = symbols_.Find(name.text);
  if (!found || found->kind != Binding::Kind::kFunction) {
    return Error_(name, fmt::format("'{}' is not a declared function", Shown(name.text)),
                  "declare it with .func before .alias");
  }
  pending_aliases_.push_back({found->index, target});
  return Expect(';');
}

Status Parser::Finish() {
  ASSAY_TRY_VOID(ResolveRelocations());
  for (const PendingAlias& alias : pending_aliases_) {
    const auto found = symbols_.Find(alias.target.text);
    if (!found || found->kind != Binding::Kind::kFunction ||
        !module_.functions[found->index].has_body || found->index == alias.function) {
      return Error_(alias.target,
                    fmt::format("'{}' is not a function with a body", Shown(alias.target.text)));
    }
    if (module_.functions[alias.function].has_body) {
      return Error_(alias.target, "an alias has a body of its own");
    }
    module_.functions[alias.function].alias_of = static_cast<std::int32_t>(found->index);
  }
  locations_.Finish(module_);
  MakeNamesUnique();
  return {};
}

Status Parser::ResolveRelocations() {
  for (const PendingRelocation& pending : pending_relocations_) {
    const auto found = symbols_.Find(pending.name.text);
    Relocation& relocation = module_.variables[pending.variable].relocations[pending.relocation];
    if (found && (found->kind == Binding::Kind::kFunction ||
                  found->kind == Binding::Kind::kModuleVariable)) {
      relocation.to_function = found->kind == Binding::Kind::kFunction;
      relocation.index = found->index;
      continue;
    }
    return Error_(pending.name,
                  fmt::format("unknown name '{}' in an initialiser", Shown(pending.name.text)),
                  "declare the variable or function in this module");
  }
  return {};
}

Result<Module> Parse(std::string_view text, std::string_view file) {
  if (text.size() > kLimits.text_bytes) {
    return Fail(ErrorKind::kLimit,
                fmt::format("a PTX text of {} bytes is above the limit of {}", text.size(),
                            kLimits.text_bytes),
                std::string(file));
  }
  return Parser(text, file).Run();
}

}  // namespace assay::ptx

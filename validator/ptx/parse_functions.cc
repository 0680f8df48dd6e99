// Function headers, bodies, nested scopes, labels, .loc.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "validator/ptx/names.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {

Result<std::vector<Variable>> Parser::ParseParameterList() {
  std::vector<Variable> list;
  ASSAY_TRY_VOID(Expect('('));
  if (Accept(')')) return list;
  do {
    ASSAY_TRY(Variable parameter, ParseParameter());
    list.push_back(std::move(parameter));
  } while (Accept(','));
  ASSAY_TRY_VOID(Expect(')'));
  return list;
}

Status Parser::ParseBound(std::array<std::uint32_t, 3>& values) {
  values = {1, 1, 1};
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSAY_TRY(values[i], ParseTuningCount());
    if (!Accept(',')) break;
  }
  return {};
}

Result<std::uint32_t> Parser::ParseTuningCount() {
  const Token at = current_;
  ASSAY_TRY(const std::uint64_t value,
            ExpectCount("a number of threads, blocks or registers", UINT32_MAX));
  if (value == 0) return Error_(at, "a bound of a function is at least 1");
  return static_cast<std::uint32_t>(value);
}

Status Parser::ParseFunctionDirectives(Function& function) {
  std::vector<std::string_view> seen;
  const auto has = [&](std::string_view word) {
    return std::ranges::find(seen, word) != seen.end();
  };
  while (current_.kind == Token::Kind::kDotted) {
    const Token word = current_;
    Advance();
    LaunchBounds& bounds = function.bounds;
    std::uint32_t* const scalar = word.text == "minnctapersm"     ? &bounds.min_blocks
                                  : word.text == "maxnreg"        ? &bounds.max_registers
                                  : word.text == "maxclusterrank" ? &bounds.max_cluster_rank
                                                                  : nullptr;
    std::array<std::uint32_t, 3>* const extents =
        word.text == "maxntid"             ? &bounds.max_threads
        : word.text == "reqntid"           ? &bounds.required_threads
        : word.text == "reqnctapercluster" ? &bounds.cluster
                                           : nullptr;
    if ((scalar != nullptr || extents != nullptr) && has(word.text)) {
      return Error_(word, fmt::format("'.{}' is given twice", word.text));
    }
    seen.push_back(word.text);
    if (scalar != nullptr) {
      ASSAY_TRY(*scalar, ParseTuningCount());
    } else if (extents != nullptr) {
      ASSAY_TRY_VOID(ParseBound(*extents));
    } else if (word.text == "maxnctapersm" || word.text == "abi_preserve" ||
               word.text == "abi_preserve_control") {
      ASSAY_TRY_VOID(ExpectCount("a count", UINT32_MAX));
    } else if (word.text == "explicitcluster") {
      bounds.explicit_cluster = true;
    } else if (word.text == "blocksareclusters") {
      return Error_(word, "'.blocksareclusters' counts the grid in clusters, which is not covered",
                    "use __cluster_dims__ or the plan's cluster, and a grid in blocks",
                    ErrorKind::kUnsupported);
    } else if (word.text == "noreturn") {
      function.no_return = true;
    } else if (word.text == "pragma") {
      ASSAY_TRY_VOID(ParsePragma());
    } else if (word.text == "attribute") {
      ASSAY_TRY_VOID(SkipAttribute());
    } else {
      return Error_(word,
                    fmt::format("unknown directive '.{}' on a function", word.text.substr(0, 40)));
    }
    if ((has("maxntid") && has("reqntid")) || (has("reqnctapercluster") && has("maxclusterrank"))) {
      return Error_(word, fmt::format("'.{}' contradicts an earlier directive", word.text),
                    "either an exact size or a largest one");
    }
  }
  return {};
}

Status Parser::ParseFunction(bool is_entry, Linkage linkage) {
  Function header;
  header.is_entry = is_entry;
  header.is_extern = linkage.is_extern;
  header.is_visible = linkage.is_visible;
  header.is_weak = linkage.is_weak;
  while (current_.IsDotted("attribute")) {
    Advance();
    ASSAY_TRY_VOID(SkipAttribute());
  }
  if (current_.Is('(')) {
    const Token at = current_;
    ASSAY_TRY(header.returns, ParseParameterList());
    if (is_entry && !header.returns.empty()) return Error_(at, "an .entry returns nothing");
  }
  ASSAY_TRY(const Token name, ExpectIdentifier("the name of a function"));
  header.name = name.text;
  header.ptx_line = name.line;
  if (current_.Is('(')) {
    ASSAY_TRY(header.params, ParseParameterList());
  }
  ASSAY_TRY_VOID(ParseFunctionDirectives(header));
  ASSAY_TRY(const std::uint32_t index, DeclareFunction(std::move(header), name));
  if (Accept(';')) return {};
  if (!current_.Is('{')) return Expected("'{' or ';'");
  if (module_.functions[index].has_body) {
    return Error_(name, fmt::format("function '{}' has two bodies", name.text.substr(0, 60)));
  }
  ASSAY_TRY_VOID(EnterFunction(index));
  ASSAY_TRY_VOID(ParseBody());
  ASSAY_TRY_VOID(ResolveLabels());
  ChooseForms();
  symbols_.Leave();
  function_.has_body = true;
  module_.functions[index] = std::move(function_);
  return {};
}

Result<std::uint32_t> Parser::DeclareFunction(Function header, const Token& name) {
  const auto found = symbols_.Find(name.text);
  if (!found) {
    if (name.text == "_" || FindSpecialRegister(name.text)) {
      return Error_(name, fmt::format("'{}' cannot be a function's name", name.text));
    }
    const auto index = static_cast<std::uint32_t>(module_.functions.size());
    symbols_.Declare(name.text, {Binding::Kind::kFunction, index});
    module_.functions.push_back(std::move(header));
    return index;
  }
  if (found->kind != Binding::Kind::kFunction) {
    return Error_(name, fmt::format("'{}' is declared twice", name.text.substr(0, 60)));
  }
  Function& known = module_.functions[found->index];
  const auto same_layout = [](const std::vector<Variable>& a, const std::vector<Variable>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.space == y.space && x.bytes == y.bytes && x.align == y.align;
    });
  };
  if (known.is_entry != header.is_entry || !same_layout(known.params, header.params) ||
      !same_layout(known.returns, header.returns)) {
    return Error_(name, fmt::format("function '{}' was declared with other parameters",
                                    name.text.substr(0, 60)));
  }
  header.is_visible |= known.is_visible;
  header.is_weak |= known.is_weak;
  header.no_return |= known.no_return;
  if (!known.has_body) known = std::move(header);
  return found->index;
}

Status Parser::EnterFunction(std::uint32_t index) {
  function_ = module_.functions[index];
  labels_.Clear();
  locations_.StartFunction();
  location_ = -1;
  body_heads_.clear();
  label_uses_.clear();
  target_lists_.clear();
  target_list_uses_.clear();
  symbols_.Enter();
  for (const bool returns : {true, false}) {
    for (const Variable& variable : returns ? function_.returns : function_.params) {
      Binding binding{Binding::Kind::kFunctionVariable,
                      static_cast<std::uint32_t>(function_.variables.size())};
      function_.variables.push_back(variable);
      if (variable.space == Space::kReg) {
        binding = {Binding::Kind::kRegister,
                   static_cast<std::uint32_t>(function_.registers.size())};
        function_.registers.push_back({variable.name, variable.type});
      }
      // The table keeps views of names: these stay where they are until the function's scope is
      // left.
      const std::string& kept = variable.name;
      if (kept != "_" && !symbols_.Declare(kept, binding)) {
        return Error_(current_,
                      fmt::format("parameter '{}' is declared twice", kept.substr(0, 60)));
      }
    }
  }
  return {};
}

Status Parser::ParseBody() {
  ASSAY_TRY_VOID(Expect('{'));
  symbols_.Enter();
  for (int depth = 1; depth > 0;) {
    if (current_.Is('{')) {
      if (++depth > kLimits.nesting) {
        return Error_(current_, "scopes nested too deeply", {}, ErrorKind::kLimit);
      }
      symbols_.Enter();
      labels_.Enter();
      Advance();
    } else if (current_.Is('}')) {
      symbols_.Leave();
      if (--depth > 0) labels_.Leave();
      Advance();
    } else if (current_.kind == Token::Kind::kEnd) {
      return Expected("'}'", "the body of the function is never closed");
    } else {
      ASSAY_TRY_VOID(ParseStatement());
    }
  }
  return {};
}

Status Parser::ParseStatement() {
  if (current_.kind == Token::Kind::kDotted) return ParseBodyDirective();
  if (Accept(';')) return {};
  Guard guard;
  if (current_.Is('@')) {
    ASSAY_TRY(guard, ParseGuard());
  }
  if (current_.kind != Token::Kind::kIdentifier)
    return Expected("an instruction, a label or a directive");
  const Token word = current_;
  // The lexer stands right behind the word, so a dot there belongs to an opcode.
  if (lexer_.Peek() == '.') return ParseInstruction(word, guard);
  Advance();
  if (current_.Is(':') && !guard.present) return ParseLabel(word);
  return ParseInstruction(word, guard);
}

Status Parser::ParseLabel(const Token& name) {
  Advance();
  if (current_.IsDotted("branchtargets")) return ParseTargetList(name);
  if (current_.IsDotted("callprototype")) return ParsePrototype(name);
  if (current_.IsDotted("calltargets")) {
    return Error_(current_, "'.calltargets' is not covered", "use a .callprototype",
                  ErrorKind::kUnsupported);
  }
  const auto target = static_cast<InstructionIndex>(function_.body.size());
  if (!labels_.Declare(name.text, target)) {
    return Error_(name, fmt::format("label '{}' is declared twice", name.text.substr(0, 60)));
  }
  function_.labels.emplace_back(std::string(name.text), target);
  return {};
}

Status Parser::ParseTargetList(const Token& name) {
  Advance();
  const auto index = static_cast<std::uint32_t>(target_lists_.size());
  TargetList list{.names = {}, .scope = labels_.scope()};
  do {
    ASSAY_TRY(const Token target, ExpectIdentifier("a label"));
    list.names.push_back(target);
  } while (Accept(','));
  target_lists_.push_back(std::move(list));
  if (!symbols_.Declare(name.text, {Binding::Kind::kTargetList, index})) {
    return Error_(name, fmt::format("'{}' is declared twice", name.text.substr(0, 60)));
  }
  return Expect(';');
}

Status Parser::ParsePrototype(const Token& name) {
  Advance();
  Prototype prototype;
  prototype.name = name.text;
  if (current_.Is('(')) {
    ASSAY_TRY(prototype.returns, ParseParameterList());
  }
  ASSAY_TRY(const Token placeholder, ExpectIdentifier("'_'"));
  if (placeholder.text != "_") return Error_(placeholder, "a prototype's name is written '_'");
  if (current_.Is('(')) {
    ASSAY_TRY(prototype.params, ParseParameterList());
  }
  Function directives;
  ASSAY_TRY_VOID(ParseFunctionDirectives(directives));
  prototype.no_return = directives.no_return;
  const auto index = static_cast<std::uint32_t>(function_.prototypes.size());
  if (!symbols_.Declare(name.text, {Binding::Kind::kPrototype, index})) {
    return Error_(name, fmt::format("'{}' is declared twice", name.text.substr(0, 60)));
  }
  function_.prototypes.push_back(std::move(prototype));
  return Expect(';');
}

Status Parser::ParseBodyDirective() {
  const Token word = current_;
  Advance();
  if (word.text == "loc") return ParseLoc();
  if (word.text == "reg") return ParseRegisters();
  if (word.text == "local") return ParseFunctionVariables(Space::kLocal);
  if (word.text == "shared") return ParseFunctionVariables(Space::kShared);
  if (word.text == "param") return ParseFunctionVariables(Space::kParam);
  if (word.text == "pragma") return ParsePragma();
  if (word.text == "file") return ParseFile();
  if (word.text == "global" || word.text == "const" || word.text == "extern") {
    return Error_(word, fmt::format("'.{}' inside a function is not covered", word.text),
                  "declare the variable at module level", ErrorKind::kUnsupported);
  }
  return Error_(word,
                fmt::format("unknown directive '.{}' in a function", word.text.substr(0, 40)));
}

Result<LinePosition> Parser::ParseLinePosition() {
  ASSAY_TRY(const std::uint64_t file, ExpectCount("a file number", kLimits.files));
  ASSAY_TRY(const std::uint64_t line, ExpectCount("a line", UINT32_MAX));
  ASSAY_TRY(const std::uint64_t column, ExpectCount("a column", UINT32_MAX));
  return LinePosition{static_cast<std::uint32_t>(file), static_cast<std::uint32_t>(line),
                      static_cast<std::uint32_t>(column)};
}

Status Parser::ParseLoc() {
  ASSAY_TRY(const LinePosition position, ParseLinePosition());
  std::string_view label;
  std::uint64_t offset = 0;
  std::optional<LinePosition> call_site;
  while (Accept(',')) {
    ASSAY_TRY(const Token key, ExpectIdentifier("'function_name' or 'inlined_at'"));
    if (key.text == "function_name") {
      ASSAY_TRY(const Token name, ExpectIdentifier("a label of .debug_str"));
      label = name.text;
      if (Accept('+')) {
        ASSAY_TRY(offset, ExpectCount("an offset", UINT32_MAX));
      }
    } else if (key.text == "inlined_at") {
      ASSAY_TRY(call_site, ParseLinePosition());
    } else {
      return Error_(key, "expected 'function_name' or 'inlined_at'");
    }
  }
  // Line 0 marks what the compiler added: it belongs to no line, so it stays with the one before.
  if (position.line == 0 && !call_site && location_ >= 0) return {};
  location_ = call_site ? locations_.AddInlined(position, label, offset, *call_site)
                        : locations_.Add(position);
  return {};
}

}  // namespace assay::ptx

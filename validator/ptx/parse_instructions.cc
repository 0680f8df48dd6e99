// Opcodes with their modifiers, guards, branches and calls.
#include <fmt/format.h>

#include <string>

#include "validator/ptx/isa.h"
#include "validator/ptx/names.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {
namespace {

std::uint8_t VectorWidth(std::string_view word) {
  return word == "v2" ? 2 : word == "v4" ? 4 : word == "v8" ? 8 : 0;
}

}  // namespace

Result<Guard> Parser::ParseGuard() {
  ASSAY_TRY_VOID(Expect('@'));
  Guard guard{.present = true};
  guard.negated = Accept('!');
  ASSAY_TRY(const Operand predicate, ParseRegister());
  guard.predicate = predicate.reg;
  return guard;
}

Result<Parser::Head> Parser::CutHead(const Token& word, std::string_view dotted) {
  Head head;
  const auto match = FindOpcode(dotted);
  if (!match) {
    const std::string_view first = dotted.substr(0, dotted.find('.'));
    return Error_(word,
                  IsKnownUncovered(first)
                      ? fmt::format("instruction '{}' is not covered", dotted.substr(0, 80))
                      : fmt::format("unknown instruction '{}'", dotted.substr(0, 80)),
                  {}, ErrorKind::kUnsupported);
  }
  head.opcode = match->opcode;
  if (FamilyOf(head.opcode) == Family::kUnsupported) {
    return Error_(word, fmt::format("instruction '{}' is not covered", dotted.substr(0, 80)), {},
                  ErrorKind::kUnsupported);
  }
  int spaces = 0;
  for (std::size_t start = match->length; start < dotted.size();) {
    const std::size_t end = std::min(dotted.find('.', start + 1), dotted.size());
    const std::string_view name = dotted.substr(start + 1, end - start - 1);
    start = end;
    if (const auto type = FindType(name)) {
      head.types.push_back(*type);
    } else if (const auto space = FindSpace(name)) {
      if (++spaces > 2) return Error_(word, "an instruction with more than two state spaces");
      (spaces == 1 ? head.space : head.space2) = *space;
    } else if (const std::uint8_t width = VectorWidth(name)) {
      if (head.vector_width != 1) return Error_(word, "an instruction with two vector widths");
      head.vector_width = width;
    } else if (const auto mod = FindMod(name)) {
      head.mods.push_back(*mod);
    } else {
      return Error_(
          word,
          fmt::format("unknown modifier '.{}' of '{}'", name.substr(0, 40), Mnemonic(head.opcode)),
          {}, ErrorKind::kUnsupported);
    }
  }
  Instruction in;
  in.opcode = head.opcode;
  in.space = head.space;
  in.space2 = head.space2;
  in.vector_width = head.vector_width;
  in.types = head.types;
  in.mods = head.mods;
  head.candidates = CandidateForms(in);
  return head;
}

Result<const Parser::Head*> Parser::ParseHead(const Token& word) {
  std::string_view dotted = word.text;
  if (current_.offset == word.offset) {
    dotted = lexer_.ExtendDotted(word);
    Advance();
  }
  if (current_.kind == Token::Kind::kDotted) {
    std::string& joined = joined_heads_.emplace_back(dotted);
    for (; current_.kind == Token::Kind::kDotted; Advance()) {
      joined.append(".").append(current_.text);
    }
    dotted = joined;
  }
  const auto found = heads_.find(dotted);
  if (found != heads_.end()) return &found->second;
  ASSAY_TRY(Head head, CutHead(word, dotted));
  return &heads_.emplace(dotted, std::move(head)).first->second;
}

Status Parser::ParseInstruction(const Token& word, const Guard& guard) {
  ASSAY_TRY(const Head* const head, ParseHead(word));
  Instruction in;
  in.opcode = head->opcode;
  in.guard = guard;
  in.space = head->space;
  in.space2 = head->space2;
  in.vector_width = head->vector_width;
  in.types = head->types;
  in.mods = head->mods;
  in.ptx_line = word.line;
  in.location = location_;
  if (in.opcode == Opcode::kCall) {
    ASSAY_TRY_VOID(ParseCall(in));
  } else if (in.opcode == Opcode::kBra || in.opcode == Opcode::kBrx) {
    ASSAY_TRY_VOID(ParseBranch(in));
  } else if (!current_.Is(';')) {
    ASSAY_TRY_VOID(ParseOperands(in.operands));
  }
  if (!current_.Is(';')) return Expected("',' or ';'");
  Advance();
  function_.body.push_back(std::move(in));
  body_heads_.push_back(head);
  return {};
}

Status Parser::ParseBranch(Instruction& in) {
  const auto instruction = static_cast<std::uint32_t>(function_.body.size());
  if (in.opcode == Opcode::kBrx) {
    ASSAY_TRY(Operand index, ParseOperand(0));
    in.operands.push_back(std::move(index));
    ASSAY_TRY_VOID(Expect(','));
    ASSAY_TRY(const Token name, ExpectIdentifier("the name of a .branchtargets list"));
    const auto found = symbols_.Find(name.text);
    if (!found || found->kind != Binding::Kind::kTargetList) {
      return Error_(name, fmt::format("'{}' is not a .branchtargets list", name.text.substr(0, 60)),
                    "declare it in this function, before the branch");
    }
    target_list_uses_.push_back({instruction, 1, found->index});
    in.operands.push_back({.kind = Operand::Kind::kLabelList});
    return {};
  }
  ASSAY_TRY(const Token name, ExpectIdentifier("a label"));
  label_uses_.push_back({instruction, 0, labels_.scope(), name});
  in.operands.push_back({.kind = Operand::Kind::kLabel});
  return {};
}

Result<Operand> Parser::ParseCallList() {
  Operand list{.kind = Operand::Kind::kParamList};
  ASSAY_TRY_VOID(Expect('('));
  if (Accept(')')) return list;
  do {
    if (list.elements.size() >= kLimits.vector_elements) {
      return Error_(current_, "too many arguments", {}, ErrorKind::kLimit);
    }
    ASSAY_TRY(Operand element, ParseOperand(1));
    list.elements.push_back(std::move(element));
  } while (Accept(','));
  ASSAY_TRY_VOID(Expect(')'));
  return list;
}

Status Parser::ParseCall(Instruction& in) {
  Operand returns{.kind = Operand::Kind::kParamList};
  Operand arguments{.kind = Operand::Kind::kParamList};
  if (current_.Is('(')) {
    ASSAY_TRY(returns, ParseCallList());
    ASSAY_TRY_VOID(Expect(','));
  }
  const Token name = current_;
  ASSAY_TRY(Operand callee, ParseOperand(1));
  if (callee.kind != Operand::Kind::kFunction && callee.kind != Operand::Kind::kRegister) {
    return Error_(name, "a call needs a function or a register");
  }
  in.operands.reserve(4);
  in.operands.push_back(std::move(returns));
  in.operands.push_back(std::move(callee));
  if (Accept(',')) {
    if (current_.Is('(')) {
      ASSAY_TRY(arguments, ParseCallList());
      if (!Accept(',')) {
        in.operands.push_back(std::move(arguments));
        return {};
      }
    }
    in.operands.push_back(std::move(arguments));
    ASSAY_TRY(Operand prototype, ParseOperand(1));
    if (prototype.kind != Operand::Kind::kPrototype) {
      return Error_(current_, "expected the name of a .callprototype");
    }
    in.operands.push_back(std::move(prototype));
    return {};
  }
  in.operands.push_back(std::move(arguments));
  return {};
}

}  // namespace assay::ptx

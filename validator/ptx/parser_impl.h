// The parser's state, shared by its files: parser.cc (module level), parse_variables.cc
// (declarations and initialisers), parse_functions.cc (headers, bodies, scopes),
// parse_instructions.cc (opcodes and operands), constant_expression.cc. Nothing else includes this.
// Recursive descent, one token of look-ahead.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "validator/ptx/lexer.h"
#include "validator/ptx/locations.h"
#include "validator/ptx/module.h"
#include "validator/ptx/symbol_table.h"

namespace assay::ptx {

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file), lexer_(text) {}
  Result<Module> Run();

 private:
  struct Linkage {
    bool is_extern = false, is_visible = false, is_weak = false, is_common = false;
  };
  /// A constant as written: an integer (kNone) or the bits of a float.
  struct Constant {
    Type type = Type::kNone;
    std::uint64_t bits = 0;
  };
  /// What stands before the name in a declaration.
  struct VariableHead {
    Space space = Space::kGlobal;
    Type type = Type::kNone;
    std::uint32_t vector = 1;
    std::uint32_t align = 0;
    bool is_pointer = false;
    Space pointee_space = Space::kGeneric;
    std::uint32_t pointee_align = 0;
  };
  struct Dimensions {
    std::vector<std::uint64_t> counts;  ///< Outermost first; a vector type adds its width last.
    bool open = false;                  ///< The outermost was `[]`.
  };
  struct InitialiserState {
    Variable* variable = nullptr;
    bool open = false;                     ///< The outermost dimension has no count yet.
    std::vector<std::uint64_t> strides{};  ///< In elements, of each level of braces.
    std::uint64_t elements = 0;            ///< Of the whole variable, unless open.
    std::uint64_t outer_count = 0;         ///< Items seen at the outermost level.
  };
  struct PendingRelocation {
    std::uint32_t variable = 0, relocation = 0;
    Token name;
  };
  struct PendingAlias {
    std::uint32_t function = 0;
    Token target;
  };
  /// An opcode with its modifiers, cut up once for every distinct text.
  struct Head {
    Opcode opcode{};
    Space space = Space::kGeneric, space2 = Space::kGeneric;
    std::uint8_t vector_width = 1;
    std::vector<Type> types;
    std::vector<Mod> mods;
    std::vector<std::uint16_t> candidates;  ///< Forms with these modifiers.
  };
  struct LabelUse {
    std::uint32_t instruction = 0, operand = 0, scope = 0;
    Token name;
  };
  struct TargetList {
    std::vector<Token> names;
    std::uint32_t scope = 0;
  };
  struct TargetListUse {
    std::uint32_t instruction = 0, operand = 0, list = 0;
  };

  // --- errors and tokens (parser.cc)
  std::unexpected<Error> Error_(const Token& at, std::string message, std::string cure = {},
                                ErrorKind kind = ErrorKind::kMalformedInput) const;
  std::unexpected<Error> Expected(std::string_view what, std::string cure = {}) const;
  void Advance() { current_ = lexer_.Next(); }
  bool Accept(char punctuation);
  Status Expect(char punctuation);
  Result<Token> ExpectIdentifier(std::string_view what);
  Result<std::uint64_t> ExpectCount(std::string_view what, std::uint64_t most);

  // --- module level (parser.cc)
  Status ParseModuleItem();
  Status ParseVersion();
  Status ParseTarget();
  Status ParseFile();
  Status ParseSection();
  Status ParseDebugStrings();
  Status ParsePragma();
  Status ParseAlias();
  Status Finish();
  Status ResolveRelocations();

  // --- constants (constant_expression.cc)
  Result<Constant> ParseConstant();
  Result<std::int64_t> ParseInteger();
  Result<Constant> ParseBinary(int precedence, int depth);
  Result<Constant> ParseUnary(int depth);

  // --- declarations (parse_variables.cc)
  Result<VariableHead> ParseVariableHead(Space space);
  Status ParseVariableWord(VariableHead& head);
  Result<std::uint32_t> ParseAlignment();
  Status SkipAttribute();
  Result<Dimensions> ParseDimensions(const VariableHead& head);
  Status SetSize(Variable& variable, const VariableHead& head, const Dimensions& dimensions,
                 const Token& name);
  Status ParseModuleVariables(Space space, Linkage linkage);
  Status ParseFunctionVariables(Space space);
  Status DeclareModuleVariable(Variable variable, const Token& name, std::size_t first_relocation);
  Status ParseRegisters();
  std::uint64_t RegisterLimit() const;
  Status AddRegisterRange(const Token& prefix, Type type);
  Result<Variable> ParseParameter();

  // --- initialisers (parse_initialisers.cc)
  Status ParseInitialiser(Variable& variable, const VariableHead& head, Dimensions& dimensions);
  Status ParseInitialiserLevel(InitialiserState& state, std::size_t level, std::uint64_t base);
  Status ParseInitialiserValue(InitialiserState& state, std::uint64_t index);
  Status StoreConstant(Variable& variable, std::uint64_t offset, const Constant& constant,
                       const Token& at);
  Status ParseAddressValue(Variable& variable, std::uint64_t offset,
                           std::optional<std::uint64_t> mask);
  Status Reserve(Variable& variable, std::uint64_t end, const Token& at);

  // --- functions (parse_functions.cc)
  Status ParseFunction(bool is_entry, Linkage linkage);
  Result<std::vector<Variable>> ParseParameterList();
  Status ParseFunctionDirectives(Function& function);
  Result<std::uint32_t> ParseTuningCount();
  Status ParseBound(std::array<std::uint32_t, 3>& values);
  Result<std::uint32_t> DeclareFunction(Function header, const Token& name);
  Status EnterFunction(std::uint32_t index);
  Status ParseBody();
  Status ParseStatement();
  Status ParseBodyDirective();
  Status ParseLabel(const Token& name);
  Status ParseTargetList(const Token& name);
  Status ParsePrototype(const Token& name);
  Status ParseLoc();
  Result<LinePosition> ParseLinePosition();

  // --- at the end (resolve_names.cc)
  Status ResolveLabels();
  void ChooseForms();
  void MakeNamesUnique();

  // --- instructions (parse_instructions.cc)
  Status ParseInstruction(const Token& word, const Guard& guard);
  Result<const Head*> ParseHead(const Token& word);
  Result<Head> CutHead(const Token& word, std::string_view dotted);
  Status ParseCall(Instruction& in);
  Result<Operand> ParseCallList();
  Status ParseBranch(Instruction& in);
  Result<Guard> ParseGuard();

  // --- operands (parse_operands.cc)
  Status ParseOperands(std::vector<Operand>& operands);
  Result<Operand> ParseOperand(int depth);
  Result<Operand> ParseName(const Token& name);
  Result<Operand> ParseAddress();
  Result<Operand> ParseVector(int depth);
  Result<Operand> ParseRegister();

  std::string_view text_;
  std::string_view file_;
  Lexer lexer_;
  Token current_;
  Module module_;
  SymbolTable symbols_;
  LocationBuilder locations_;
  std::uint64_t register_count_ = 0;
  std::uint64_t initialiser_bytes_ = 0;
  std::uint64_t branch_targets_ = 0;
  std::vector<PendingRelocation> pending_relocations_;
  std::vector<PendingAlias> pending_aliases_;
  std::unordered_map<std::string_view, Head> heads_;
  std::deque<std::string> joined_heads_;  ///< Opcodes written with blanks before their dots.

  // Of the function being parsed.
  Function function_;
  LabelTable labels_;
  std::int32_t location_ = -1;
  std::vector<const Head*> body_heads_;  ///< Of each instruction.
  std::vector<LabelUse> label_uses_;
  std::vector<TargetList> target_lists_;
  std::vector<TargetListUse> target_list_uses_;
};

/// The place and the excerpt of a token: "file:line:column" and the line with a caret under the
/// token.
struct Excerpt {
  std::string place;
  std::string text;
};
Excerpt MakeExcerpt(std::string_view text, std::string_view file, const Token& at);

}  // namespace assay::ptx

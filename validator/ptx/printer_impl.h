// Pieces of the printer: print_instructions.cc and print_variables.cc for printer.cc.
#pragma once

#include <string>
#include <string_view>

#include "validator/ptx/module.h"

namespace assay::ptx {

/// Appends to `out`. `targets` names the .branchtargets list of a brx.idx.
void AppendInstruction(std::string& out, const Module& module, const Function& function,
                       const Instruction& in, std::string_view targets);

/// ".global .align 4 .u32 name[3]", without initialiser or semicolon.
void AppendDeclaration(std::string& out, const Variable& variable);
/// A module variable with linkage, initialiser and semicolon.
void AppendModuleVariable(std::string& out, const Module& module, const Variable& variable);
/// "(.param .b32 a, .param .b64 b)", or nothing for an empty list.
void AppendParameters(std::string& out, const std::vector<Variable>& parameters);
/// Registers from `first` on, runs of numbered ones as ranges.
void AppendRegisters(std::string& out, const Function& function, std::size_t first);

}  // namespace assay::ptx

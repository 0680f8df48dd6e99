#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "validator/ptx/printer_impl.h"

namespace assay::ptx {
namespace {

std::uint64_t ElementBytes(const Variable& variable) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(BitsOf(variable.type)) / 8);
}

void AppendRelocation(std::string& out, const Module& module, const Relocation& relocation,
                      std::optional<unsigned> byte) {
  std::string_view name = "?";
  if (relocation.to_function && relocation.index < module.functions.size()) {
    name = module.functions[relocation.index].name;
  } else if (!relocation.to_function && relocation.index < module.variables.size()) {
    name = module.variables[relocation.index].name;
  }
  const auto to = std::back_inserter(out);
  if (byte) fmt::format_to(to, "0x{:X}(", std::uint64_t{0xff} << (8 * *byte));
  out += relocation.generic ? "generic(" : "";
  out += name;
  out += relocation.generic ? ")" : "";
  if (relocation.addend != 0) fmt::format_to(to, "+{}", relocation.addend);
  if (byte) out += ')';
}

void AppendElement(std::string& out, const Variable& variable, std::uint64_t offset) {
  const std::uint64_t bytes = ElementBytes(variable);
  std::uint64_t bits = 0;
  std::memcpy(&bits, variable.initialiser.data() + offset, std::min<std::uint64_t>(bytes, 8));
  const auto to = std::back_inserter(out);
  if (variable.type == Type::kF32) {
    fmt::format_to(to, "0f{:08X}", bits);
  } else if (variable.type == Type::kF64) {
    fmt::format_to(to, "0d{:016X}", bits);
  } else if (bytes >= 8) {
    fmt::format_to(to, "{}", static_cast<std::int64_t>(bits));
  } else {
    fmt::format_to(to, "{}", bits);
  }
}

void AppendInitialiser(std::string& out, const Module& module, const Variable& variable) {
  const std::uint64_t bytes = ElementBytes(variable);
  const std::uint64_t end = std::min<std::uint64_t>(variable.initialiser.size(), variable.bytes);
  const bool scalar = variable.bytes == bytes;
  out += scalar ? " = " : " = {";
  auto next = variable.relocations.begin();
  std::string_view separator = "";
  for (std::uint64_t offset = 0; offset + bytes <= end; offset += bytes) {
    out += separator;
    separator = ", ";
    while (next != variable.relocations.end() && next->offset + next->bytes <= offset) ++next;
    if (next == variable.relocations.end() || next->offset > offset) {
      AppendElement(out, variable, offset);
    } else if (bytes == 1) {
      AppendRelocation(out, module, *next,
                       static_cast<unsigned>(next->first_byte + (offset - next->offset)));
    } else {
      AppendRelocation(out, module, *next, std::nullopt);
    }
  }
  if (!scalar) out += '}';
}

/// May be the first of a range. ptxas takes no range whose prefix ends in a digit.
bool StartsRun(std::string_view name) {
  if (name.size() < 2 || name.back() != '0') return false;
  const char last = name[name.size() - 2];
  return last < '0' || last > '9';
}

}  // namespace

void AppendDeclaration(std::string& out, const Variable& variable) {
  const auto to = std::back_inserter(out);
  const std::uint64_t bytes = ElementBytes(variable);
  fmt::format_to(to, ".{}", Name(variable.space));
  if (variable.space != Space::kReg) fmt::format_to(to, " .align {}", variable.align);
  fmt::format_to(to, " .{}", Name(variable.type));
  if (variable.is_pointer) {
    out += " .ptr";
    if (variable.pointee_space != Space::kGeneric) {
      fmt::format_to(to, " .{}", Name(variable.pointee_space));
    }
    if (variable.pointee_align != 0) fmt::format_to(to, " .align {}", variable.pointee_align);
  }
  fmt::format_to(to, " {}", variable.name);
  if (variable.bytes == 0 && variable.is_extern) {
    out += "[]";
  } else if (variable.bytes != bytes && variable.space != Space::kReg) {
    fmt::format_to(to, "[{}]", variable.bytes / bytes);
  }
}

void AppendModuleVariable(std::string& out, const Module& module, const Variable& variable) {
  if (variable.is_extern) out += ".extern ";
  if (variable.is_visible) out += ".visible ";
  if (variable.is_weak) out += ".weak ";
  if (variable.is_common) out += ".common ";
  AppendDeclaration(out, variable);
  if (!variable.initialiser.empty()) AppendInitialiser(out, module, variable);
  out += ";\n";
}

void AppendParameters(std::string& out, const std::vector<Variable>& parameters) {
  if (parameters.empty()) return;
  out += '(';
  std::string_view separator = "";
  for (const Variable& parameter : parameters) {
    out += separator;
    AppendDeclaration(out, parameter);
    separator = ", ";
  }
  out += ')';
}

void AppendRegisters(std::string& out, const Function& function, std::size_t first) {
  const std::vector<Register>& registers = function.registers;
  const auto to = std::back_inserter(out);
  for (std::size_t i = first; i < registers.size();) {
    std::size_t end = i + 1;
    const std::string_view name = registers[i].name;
    if (StartsRun(name)) {
      const std::string_view prefix = name.substr(0, name.size() - 1);
      while (end < registers.size() && registers[end].type == registers[i].type &&
             registers[end].name.starts_with(prefix) &&
             std::string_view(registers[end].name).substr(prefix.size()) ==
                 std::to_string(end - i)) {
        ++end;
      }
      if (end - i > 1) {
        fmt::format_to(to, "\t.reg .{} {}<{}>;\n", Name(registers[i].type), prefix, end - i);
        i = end;
        continue;
      }
    }
    fmt::format_to(to, "\t.reg .{} {};\n", Name(registers[i].type), name);
    i = end;
  }
}

}  // namespace assay::ptx

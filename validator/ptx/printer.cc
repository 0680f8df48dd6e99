#include "validator/ptx/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "validator/ptx/printer_impl.h"

namespace assay::ptx {
namespace {

class ModulePrinter {
 public:
  explicit ModulePrinter(const Module& module) : module_(module) {}

  std::string Run() {
    Format(".version {}.{}\n", module_.version_major, module_.version_minor);
    if (!module_.target.empty()) Format(".target {}\n", module_.target);
    Format(".address_size {}\n", module_.address_bits);
    ChooseTargetPrefix();
    Files();
    // Indices follow the order of first declarations. An .entry is declared by its definition,
    // unless it needs what comes later. Device functions that come before all of those are declared
    // first, since initialisers may hold their addresses.
    std::size_t next = 0;
    for (; next < module_.functions.size() && !module_.functions[next].is_entry; ++next) {
      Declare(module_.functions[next]);
    }
    for (const Variable& variable : module_.variables) {
      AppendModuleVariable(out_, module_, variable);
    }
    std::vector<const Function*> later;
    for (std::size_t i = 0; i < module_.functions.size(); ++i) {
      const Function& function = module_.functions[i];
      if (function.is_entry && function.has_body && !NeedsLater(function, i)) {
        Header(function);
        Body(function);
        continue;
      }
      if (i >= next) Declare(function);
      if (function.has_body) later.push_back(&function);
    }
    for (const Function* const function : later) {
      Header(*function);
      Body(*function);
    }
    for (const Function& function : module_.functions) {
      if (function.alias_of < 0) continue;
      Format(".alias {}, {};\n", function.name,
             module_.functions[static_cast<std::size_t>(function.alias_of)].name);
    }
    InlinedNames();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void Format(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  /// A prefix of no name of the module, for lists of branch targets.
  void ChooseTargetPrefix() {
    target_prefix_ = "$targets";
    bool clash = true;
    const auto check = [&](std::string_view name) { clash |= name.starts_with(target_prefix_); };
    while (clash) {
      clash = false;
      target_prefix_ += '_';
      for (const Variable& variable : module_.variables) check(variable.name);
      for (const Function& function : module_.functions) {
        check(function.name);
        for (const Register& reg : function.registers) check(reg.name);
        for (const Variable& variable : function.variables) check(variable.name);
        for (const Prototype& prototype : function.prototypes) check(prototype.name);
      }
    }
  }

  void Files() {
    for (std::size_t i = 0; i < module_.files.size(); ++i) {
      const bool last = i + 1 == module_.files.size();
      if (!module_.files[i].empty() || last) Format(".file {} \"{}\"\n", i, module_.files[i]);
    }
  }

  static bool NeedsLater(const Function& function, std::size_t own_index) {
    const auto refers = [&](const Operand& operand) {
      return operand.kind == Operand::Kind::kFunction && operand.function > own_index;
    };
    return std::any_of(function.body.begin(), function.body.end(), [&](const Instruction& in) {
      return std::any_of(in.operands.begin(), in.operands.end(), refers);
    });
  }

  void Declare(const Function& function) {
    Header(function);
    out_ += ";\n";
  }

  void Bound(std::string_view name, const std::array<std::uint32_t, 3>& values) {
    if (values == std::array<std::uint32_t, 3>{}) return;
    Format("\n.{} {}, {}, {}", name, values[0], values[1], values[2]);
  }

  void Header(const Function& function) {
    if (function.is_extern) out_ += ".extern ";
    if (function.is_visible) out_ += ".visible ";
    if (function.is_weak) out_ += ".weak ";
    out_ += function.is_entry ? ".entry " : ".func ";
    AppendParameters(out_, function.returns);
    if (!function.returns.empty()) out_ += ' ';
    out_ += function.name;
    AppendParameters(out_, function.params);
    const LaunchBounds& bounds = function.bounds;
    Bound("maxntid", bounds.max_threads);
    Bound("reqntid", bounds.required_threads);
    if (bounds.min_blocks != 0) Format("\n.minnctapersm {}", bounds.min_blocks);
    if (bounds.max_registers != 0) Format("\n.maxnreg {}", bounds.max_registers);
    if (bounds.explicit_cluster) Format("\n.explicitcluster");
    Bound("reqnctapercluster", bounds.cluster);
    if (bounds.max_cluster_rank != 0) Format("\n.maxclusterrank {}", bounds.max_cluster_rank);
    if (function.no_return) Format("\n.noreturn");
  }

  void Body(const Function& function) {
    out_ += "\n{\n";
    const std::size_t parameters = function.returns.size() + function.params.size();
    std::size_t in_registers = 0;
    for (std::size_t i = 0; i < std::min(parameters, function.variables.size()); ++i) {
      in_registers += function.variables[i].space == Space::kReg ? 1 : 0;
    }
    AppendRegisters(out_, function, in_registers);
    for (std::size_t i = parameters; i < function.variables.size(); ++i) {
      out_ += '\t';
      AppendDeclaration(out_, function.variables[i]);
      out_ += ";\n";
    }
    for (const Prototype& prototype : function.prototypes) {
      Format("\t{}: .callprototype ", prototype.name);
      AppendParameters(out_, prototype.returns);
      out_ += " _ ";
      AppendParameters(out_, prototype.params);
      out_ += prototype.no_return ? " .noreturn;\n" : ";\n";
    }
    std::int32_t location = -1;
    latest_.clear();
    auto label = function.labels.begin();
    for (std::size_t i = 0; i <= function.body.size(); ++i) {
      for (; label != function.labels.end() && label->second == i; ++label) {
        Format("{}:\n", label->first);
      }
      if (i == function.body.size()) break;
      const Instruction& in = function.body[i];
      if (in.location != location && in.location >= 0) Location(in.location);
      location = in.location;
      Targets(function, in);
      out_ += '\t';
      AppendInstruction(out_, module_, function, in, target_name_);
      out_ += ";\n";
    }
    out_ += "}\n";
  }

  void Targets(const Function& function, const Instruction& in) {
    for (const Operand& operand : in.operands) {
      if (operand.kind != Operand::Kind::kLabelList) continue;
      target_name_ = fmt::format("{}{}", target_prefix_, target_lists_++);
      Format("\t{}: .branchtargets ", target_name_);
      std::string_view separator = "";
      for (const InstructionIndex target : operand.targets) {
        const auto found = std::lower_bound(
            function.labels.begin(), function.labels.end(), target,
            [](const auto& known, InstructionIndex wanted) { return known.second < wanted; });
        const bool known = found != function.labels.end() && found->second == target;
        Format("{}{}", separator, known ? found->first : "?");
        separator = ", ";
      }
      out_ += ";\n";
    }
  }

  using Position = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  static Position PositionOf(const SourceLocation& location) {
    return {location.file, location.line, location.column};
  }

  /// Writes .loc for `index`. A call site is named by its position alone, so it must be the latest
  /// location there.
  void Location(std::int32_t index) {
    std::vector<std::int32_t> chain;
    for (std::int32_t i = index; i >= 0; i = Site(i)) {
      chain.push_back(i);
      const std::int32_t site = Site(i);
      if (site < 0 || site >= i) break;
      const auto found = latest_.find(PositionOf(At(site)));
      if (found != latest_.end() && found->second == site) break;
    }
    for (auto i = chain.rbegin(); i != chain.rend(); ++i) OneLocation(*i);
  }

  void OneLocation(std::int32_t index) {
    const SourceLocation& location = At(index);
    Format("\t.loc {} {} {}", location.file, location.line, location.column);
    if (const std::int32_t site = Site(index); site >= 0) {
      const auto [name, is_new] = names_.try_emplace(location.function, names_.size());
      const SourceLocation& from = At(site);
      Format(", function_name $L__info_string{}, inlined_at {} {} {}", name->second, from.file,
             from.line, from.column);
    }
    out_ += '\n';
    latest_[PositionOf(location)] = index;
  }

  const SourceLocation& At(std::int32_t index) const {
    static const SourceLocation nowhere;
    const auto i = static_cast<std::size_t>(index);
    return i < module_.locations.size() ? module_.locations[i] : nowhere;
  }
  std::int32_t Site(std::int32_t index) const { return At(index).inlined_at; }

  void InlinedNames() {
    if (names_.empty()) return;
    out_ += ".section .debug_str\n{\n";
    for (const auto& [name, number] : names_) {
      Format("$L__info_string{}:\n\t.b8 ", number);
      for (const char c : name) Format("{},", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out_ += "0\n";
    }
    out_ += "}\n";
  }

  const Module& module_;
  std::string out_;
  std::map<Position, std::int32_t> latest_;
  std::map<std::string, std::size_t> names_;
  std::string target_prefix_;
  std::string target_name_;
  std::size_t target_lists_ = 0;
};

}  // namespace

std::string Print(const Module& module) { return ModulePrinter(module).Run(); }

}  // namespace assay::ptx

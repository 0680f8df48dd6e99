#include "validator/ptx/facts/compute.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "validator/ptx/facts/compute_impl.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::Space;

namespace {

/// Places kept of one thing that is used: in the author's file, in headers.
constexpr std::size_t kMostOwnSites = 64;
constexpr std::size_t kMostHeaderSites = 8;

/// "ns::count" of "_ZN2ns5countE". The demangler's work can explode, so long names stay as they are.
std::string Shown(const std::string& name) {
  constexpr std::size_t kLongest = 512;
  if (!name.starts_with("_Z") || name.size() > kLongest) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

bool IsOwn(std::string_view file, std::string_view own) {
  return !own.empty() && file.ends_with(own) &&
         (file.size() == own.size() || file[file.size() - own.size() - 1] == '/');
}

/// Of an address operand written as a number.
bool IsLiteral(const Operand& operand) {
  return operand.kind == Operand::Kind::kAddress && !operand.has_base_register &&
         !operand.has_symbol;
}

class UseCollector {
 public:
  UseCollector(const SiteFinder& sites, std::vector<Use>& uses) : sites_(sites), uses_(uses) {}

  void Add(Use::Kind kind, std::string_view name, std::uint32_t function, const Instruction& in) {
    const auto [entry, fresh] = index_.try_emplace({kind, std::string(name)}, uses_.size());
    if (fresh)
      uses_.push_back(
          {.kind = kind, .name = std::string(name), .count = 0, .sites = {}, .sites_left_out = 0});
    Use& use = uses_[entry->second];
    ++use.count;
    if (!seen_.emplace(entry->second, in.location, in.location < 0 ? in.ptx_line : 0).second)
      return;
    Site site = sites_.Of(function, in);
    const bool known = std::ranges::any_of(use.sites, [&](const Site& other) {
      return other.own_line == site.own_line && other.in_header == site.in_header &&
             (site.own_line != 0 || other.ptx_line == site.ptx_line);
    });
    if (known) return;
    const auto same = std::ranges::count(use.sites, site.in_header, &Site::in_header);
    if (static_cast<std::size_t>(same) >= (site.in_header ? kMostHeaderSites : kMostOwnSites)) {
      ++use.sites_left_out;
    } else {
      use.sites.push_back(std::move(site));
    }
  }

 private:
  const SiteFinder& sites_;
  std::vector<Use>& uses_;
  std::map<std::pair<Use::Kind, std::string>, std::size_t> index_;
  std::set<std::tuple<std::size_t, std::int32_t, std::uint32_t>> seen_;
};

class UseWalk {
 public:
  UseWalk(const ptx::Module& module, UseCollector& out) : module_(module), out_(out) {}

  void Run() {
    for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
      for (const Instruction& in : module_.functions[f].body) One(f, in);
    }
  }

 private:
  void One(std::uint32_t f, const Instruction& in) {
    out_.Add(Use::Kind::kOpcode, ptx::Mnemonic(in.opcode), f, in);
    for (const Operand& operand : in.operands) Walk(f, in, operand);
    if (in.opcode == Opcode::kCall && in.operands.size() > 1 &&
        in.operands[1].kind == Operand::Kind::kFunction) {
      const ptx::Function& callee = module_.functions[in.operands[1].function];
      if (!callee.has_body && callee.alias_of < 0) out_.Add(Use::Kind::kCallee, callee.name, f, in);
    }
    std::size_t number = 0;
    for (const Operand& operand : in.operands) {
      if (operand.kind != Operand::Kind::kAddress && operand.kind != Operand::Kind::kTensor)
        continue;
      const Space space = number == 0 ? in.space : number == 1 ? in.space2 : Space::kShared;
      const bool outside =
          space == Space::kGlobal || space == Space::kConst ||
          (space == Space::kGeneric && (number == 0 || in.space == Space::kGeneric));
      if (IsLiteral(operand) && outside)
        out_.Add(Use::Kind::kLiteralAddress, ptx::Mnemonic(in.opcode), f, in);
      ++number;
    }
  }

  void Walk(std::uint32_t f, const Instruction& in, const Operand& operand) {
    if (operand.kind == Operand::Kind::kSpecial)
      out_.Add(Use::Kind::kSpecialRegister, ptx::Name(operand.special), f, in);
    for (const Operand& element : operand.elements) Walk(f, in, element);
  }

  const ptx::Module& module_;
  UseCollector& out_;
};

void Declare(const ptx::Module& module, Facts& facts) {
  for (const ptx::Function& function : module.functions) {
    Function& out = facts.functions.emplace_back();
    out.name = function.name;
    out.is_entry = function.is_entry;
    out.is_defined = function.has_body || function.alias_of >= 0;
    out.is_weak = function.is_weak;
    out.is_extern = function.is_extern;
    out.bounds = {.max_threads = function.bounds.max_threads,
                  .required_threads = function.bounds.required_threads,
                  .cluster = function.bounds.cluster,
                  .explicit_cluster = function.bounds.explicit_cluster};
    out.ptx_line = function.ptx_line;
  }
  const auto add = [&](const ptx::Variable& variable) {
    if (variable.space != Space::kGlobal && variable.space != Space::kConst) return;
    Variable& out = facts.variables.emplace_back();
    out.name = variable.name;
    out.shown = Shown(variable.name);
    out.bytes = variable.bytes;
    out.is_extern = variable.is_extern;
    out.is_weak = variable.is_weak;
    out.ptx_line = variable.ptx_line;
  };
  for (const ptx::Variable& variable : module.variables) add(variable);
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Variable& variable : function.variables) add(variable);
  }
}

}  // namespace

SiteFinder::SiteFinder(const ptx::Module& module, std::string_view own_file) : module_(module) {
  for (const std::string& file : module.files) own_.push_back(IsOwn(file, own_file));
}

Site SiteFinder::Of(std::uint32_t function, const Instruction& in) const {
  Site site;
  site.function = module_.functions[function].name;
  site.instruction = ptx::PrintInstruction(module_, module_.functions[function], in);
  constexpr std::size_t kLongestText = 160;
  if (site.instruction.size() > kLongestText) {
    site.instruction.resize(kLongestText);
    site.instruction += "...";
  }
  site.ptx_line = in.ptx_line;
  if (in.location >= 0 && static_cast<std::size_t>(in.location) < module_.locations.size()) {
    const ptx::SourceLocation& frame = module_.locations[static_cast<std::size_t>(in.location)];
    const bool named = frame.file < module_.files.size() && !module_.files[frame.file].empty();
    site.file = named ? module_.files[frame.file] : "";
    site.line = frame.line;
    site.in_header = named && !own_[frame.file];
  }
  site.own_line = OwnLine(in);
  return site;
}

std::uint32_t SiteFinder::OwnLine(const Instruction& in) const {
  for (std::int32_t at = in.location;
       at >= 0 && static_cast<std::size_t>(at) < module_.locations.size();) {
    const ptx::SourceLocation& frame = module_.locations[static_cast<std::size_t>(at)];
    if (frame.file < own_.size() && own_[frame.file]) return frame.line;
    if (frame.inlined_at >= at) break;
    at = frame.inlined_at;  // a location is inlined only at an older one
  }
  return 0;
}

Facts FactsOf(const ptx::Module& module, const FactsOptions& options) {
  Facts facts;
  const SiteFinder sites(module, options.own_file);
  UseCollector collector(sites, facts.uses);
  UseWalk(module, collector).Run();
  Declare(module, facts);
  if (const Status consistent = ptx::Verify(module); !consistent) {
    facts.fault = ToString(consistent.error());
    return facts;
  }
  const Origins origins(module);
  FindMemory(module, origins, sites, facts);
  FindConstants(module, sites, facts);
  FindDecisions(module, origins, sites, facts);
  FindFlow(module, origins, facts);
  return facts;
}

}  // namespace assay::facts

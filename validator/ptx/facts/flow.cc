#include "validator/ptx/facts/flow.h"

#include <algorithm>
#include <limits>

#include "validator/ptx/facts/origins.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Operand;

namespace {

bool IsCall(const Instruction& in) { return ptx::FormOf(in).rules.effect == ptx::Effect::kCall; }

}  // namespace

std::vector<std::uint32_t> Cycles(std::span<const std::vector<std::uint32_t>> successors) {
  const auto count = static_cast<std::uint32_t>(successors.size());
  constexpr std::uint32_t kNew = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> order(count, kNew), low(count, 0), component(count, 0), stack;
  std::vector<bool> open(count, false);
  struct Frame {
    std::uint32_t node;
    std::size_t next;
  };
  std::vector<Frame> frames;  // recursion made explicit: modules are as deep as they like
  std::uint32_t seen = 0;
  std::uint32_t components = 0;
  for (std::uint32_t root = 0; root < count; ++root) {
    if (order[root] != kNew) continue;
    frames.push_back({root, 0});
    while (!frames.empty()) {
      const std::uint32_t node = frames.back().node;
      if (frames.back().next == 0 && order[node] == kNew) {
        order[node] = low[node] = seen++;
        stack.push_back(node);
        open[node] = true;
      }
      if (frames.back().next < successors[node].size()) {
        const std::uint32_t next = successors[node][frames.back().next++];
        if (order[next] == kNew) {
          frames.push_back({next, 0});
        } else if (open[next]) {
          low[node] = std::min(low[node], order[next]);
        }
        continue;
      }
      if (low[node] == order[node]) {
        const bool cycle = stack.back() != node ||
                           std::ranges::find(successors[node], node) != successors[node].end();
        if (cycle) ++components;
        std::uint32_t member = node;
        do {
          member = stack.back();
          stack.pop_back();
          open[member] = false;
          component[member] = cycle ? components : 0;
        } while (member != node);
      }
      frames.pop_back();
      if (!frames.empty()) low[frames.back().node] = std::min(low[frames.back().node], low[node]);
    }
  }
  return component;
}

namespace {

void Registers(const Operand& operand, std::vector<ptx::RegisterIndex>& registers) {
  if (operand.kind == Operand::Kind::kRegister || operand.has_base_register)
    registers.push_back(operand.reg);
  for (const Operand& element : operand.elements) Registers(element, registers);
}

/// Memory that only this thread sees, or that no one writes.
bool IsPrivate(ptx::Space space) {
  return space == ptx::Space::kLocal || space == ptx::Space::kParam ||
         space == ptx::Space::kParamEntry || space == ptx::Space::kParamFunc ||
         space == ptx::Space::kConst;
}

class PollingFinder {
 public:
  explicit PollingFinder(const ptx::Function& function)
      : function_(function),
        successors_(ptx::ControlFlow(function)),
        effects_(function.body.size()) {
    for (std::size_t i = 0; i < effects_.size(); ++i) {
      const Instruction& in = function.body[i];
      const std::size_t written = IsCall(in) ? 1 : ptx::RulesOf(in).written();
      for (std::size_t o = 0; o < in.operands.size(); ++o)
        Registers(in.operands[o], o < written ? effects_[i].written : effects_[i].read);
      if (in.guard.present) effects_[i].read.push_back(in.guard.predicate);
      effects_[i].reads_memory = std::ranges::any_of(ptx::MemoryRoles(in), &ptx::MemoryRole::reads);
    }
  }

  Polling Run() {
    std::vector<std::uint32_t> all(function_.body.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    Loops(all, std::vector<bool>(all.size(), false), 0);
    for (auto* reads : {&found_.reads, &found_.perhaps}) {
      std::ranges::sort(*reads);
      reads->erase(std::ranges::unique(*reads).begin(), reads->end());
    }
    return std::move(found_);
  }

 private:
  struct Effect {
    std::vector<ptx::RegisterIndex> read;
    std::vector<ptx::RegisterIndex> written;
    bool reads_memory = false;
  };

  /// The loops among `nodes`, without edges to those that are `cut`.
  void Loops(const std::vector<std::uint32_t>& nodes, std::vector<bool> cut, int depth) {
    constexpr int kDeepest = 16;
    std::vector<std::uint32_t> position(function_.body.size(), UINT32_MAX);
    for (std::uint32_t i = 0; i < nodes.size(); ++i) position[nodes[i]] = i;
    std::vector<std::vector<std::uint32_t>> edges(nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      for (const std::uint32_t next : successors_[nodes[i]]) {
        if (position[next] != UINT32_MAX && !cut[next]) edges[i].push_back(position[next]);
      }
    }
    const std::vector<std::uint32_t> cycle = Cycles(edges);
    const std::uint32_t cycles = cycle.empty() ? 0 : *std::ranges::max_element(cycle);
    std::vector<std::vector<std::uint32_t>> loops(cycles + 1);
    for (std::uint32_t i = 0; i < cycle.size(); ++i) loops[cycle[i]].push_back(nodes[i]);
    if (cycles > 0 && depth >= kDeepest) {
      found_.unknown = true;
      return;
    }
    std::vector<std::uint32_t> loop_of(function_.body.size(), 0);
    for (std::uint32_t i = 0; i < cycle.size(); ++i) loop_of[nodes[i]] = cycle[i];
    // A loop is entered where an edge comes from outside of it.
    std::vector<bool> inner_cut = cut;
    for (std::uint32_t from = 0; from < function_.body.size(); ++from) {
      for (const std::uint32_t to : successors_[from]) {
        if (loop_of[to] != 0 && loop_of[from] != loop_of[to]) inner_cut[to] = true;
      }
    }
    if (!function_.body.empty()) inner_cut[0] = true;
    for (std::uint32_t number = 1; number <= cycles; ++number) {
      // One that nothing enters is never run, or is cut at its first instruction.
      inner_cut[loops[number].front()] =
          inner_cut[loops[number].front()] ||
          std::ranges::none_of(loops[number], [&](std::uint32_t i) { return inner_cut[i]; });
      std::vector<bool> inside(function_.body.size(), false);
      for (const std::uint32_t i : loops[number]) inside[i] = true;
      One(loops[number], inside, found_.reads);
      LoopsWithOneHead(loops[number], inside, inner_cut);
      Loops(loops[number], inner_cut, depth + 1);
    }
  }

  /// Several jumps back to one head may be loops in each other, or one loop with a `continue`.
  void LoopsWithOneHead(const std::vector<std::uint32_t>& loop, const std::vector<bool>& inside,
                        const std::vector<bool>& cut) {
    constexpr std::size_t kMostJumps = 64;
    std::vector<std::vector<std::uint32_t>> before(function_.body.size());
    for (const std::uint32_t from : loop) {
      for (const std::uint32_t to : successors_[from]) {
        if (inside[to]) before[to].push_back(from);
      }
    }
    for (const std::uint32_t head : loop) {
      if (!cut[head] || before[head].size() < 2) continue;
      if (before[head].size() > kMostJumps) {
        found_.unknown = true;
        continue;
      }
      for (const std::uint32_t jump : before[head]) {
        std::vector<bool> part(function_.body.size(), false);
        std::vector<std::uint32_t> nodes = {head};
        part[head] = true;
        if (!part[jump]) nodes.push_back(jump);
        part[jump] = true;
        for (std::size_t i = 1; i < nodes.size(); ++i) {
          for (const std::uint32_t from : before[nodes[i]]) {
            if (part[from]) continue;
            part[from] = true;
            nodes.push_back(from);
          }
        }
        std::ranges::sort(nodes);
        if (nodes.size() < loop.size()) One(nodes, part, found_.perhaps);
      }
    }
  }

  /// What decides whether this loop is left, and is it read in it?
  void One(const std::vector<std::uint32_t>& loop, const std::vector<bool>& inside,
           std::vector<ptx::InstructionIndex>& reads) {
    std::vector<bool> wanted(function_.registers.size(), false);
    const auto want = [&](const Effect& effect) {
      bool grew = false;
      for (const ptx::RegisterIndex reg : effect.read) {
        grew = grew || !wanted[reg];
        wanted[reg] = true;
      }
      return grew;
    };
    const auto is_wanted = [&](std::uint32_t i) {
      return std::ranges::any_of(effects_[i].written,
                                 [&](ptx::RegisterIndex reg) { return wanted[reg]; });
    };
    for (const std::uint32_t i : loop) {
      const ptx::Effect effect = ptx::FormOf(function_.body[i]).rules.effect;
      const bool leaves =
          std::ranges::any_of(successors_[i], [&](std::uint32_t next) { return !inside[next]; });
      if (leaves || effect == ptx::Effect::kExit || effect == ptx::Effect::kReturn ||
          effect == ptx::Effect::kTrap)
        want(effects_[i]);
    }
    constexpr int kMostRounds = 64;
    bool grew = true;
    int round = 0;
    for (; grew && round < kMostRounds; ++round) {
      grew = false;
      for (auto i = loop.rbegin(); i != loop.rend(); ++i) {
        if (is_wanted(*i)) grew = want(effects_[*i]) || grew;
      }
    }
    if (grew) found_.unknown = true;
    for (const std::uint32_t i : loop) {
      const Instruction& in = function_.body[i];
      if (!is_wanted(i)) continue;
      if (ReadsKernelParameter(function_, in)) continue;
      if (IsCall(in) ||
          (effects_[i].reads_memory && IsPrivate(in.space) && in.space != ptx::Space::kConst)) {
        found_.unknown = true;
      } else if (effects_[i].reads_memory && !IsPrivate(in.space)) {
        reads.push_back(i);
      }
    }
  }

  const ptx::Function& function_;
  std::vector<std::vector<std::uint32_t>> successors_;
  std::vector<Effect> effects_;
  Polling found_;
};

}  // namespace

bool ReadsKernelParameter(const ptx::Function& function, const Instruction& in) {
  const bool reads = in.opcode == ptx::Opcode::kLd &&
                     (in.space == ptx::Space::kParam || in.space == ptx::Space::kParamEntry);
  if (!function.is_entry || !reads || in.operands.size() < 2) return false;
  const Operand& address = in.operands[1];
  return address.has_symbol && address.symbol.scope == ptx::SymbolRef::Scope::kFunction &&
         address.symbol.index < function.params.size() && function.returns.empty();
}

Polling PollingOf(const ptx::Function& function) { return PollingFinder(function).Run(); }

CallGraph CallsOf(const ptx::Module& module) {
  CallGraph graph;
  graph.callees.resize(module.functions.size());
  graph.unknown.assign(module.functions.size(), false);
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
    for (const Instruction& in : module.functions[f].body) {
      if (!IsCall(in)) continue;
      const bool direct = in.operands.size() > 1 && in.operands[1].kind == Operand::Kind::kFunction;
      if (!direct) {
        graph.unknown[f] = true;
        continue;
      }
      std::uint32_t callee = in.operands[1].function;
      if (const std::int32_t alias = module.functions[callee].alias_of; alias >= 0)
        callee = static_cast<std::uint32_t>(alias);
      graph.callees[f].push_back(callee);
      if (!module.functions[callee].has_body) graph.unknown[f] = true;
    }
    std::ranges::sort(graph.callees[f]);
    graph.callees[f].erase(std::ranges::unique(graph.callees[f]).begin(), graph.callees[f].end());
  }
  graph.recursive.assign(module.functions.size(), false);
  const std::vector<std::uint32_t> cycle = Cycles(graph.callees);
  for (std::size_t f = 0; f < cycle.size(); ++f) graph.recursive[f] = cycle[f] != 0;
  return graph;
}

std::vector<std::uint32_t> CallGraph::Reached(std::uint32_t function) const {
  std::vector<std::uint32_t> reached = {function};
  std::vector<bool> seen(callees.size(), false);
  seen[function] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::uint32_t callee : callees[reached[i]]) {
      if (seen[callee]) continue;
      seen[callee] = true;
      reached.push_back(callee);
    }
  }
  std::ranges::sort(reached);
  return reached;
}

}  // namespace assay::facts

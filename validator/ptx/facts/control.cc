#include "validator/ptx/facts/control.h"

#include <algorithm>
#include <utility>

#include "validator/ptx/facts/flow.h"
#include "validator/ptx/isa.h"

namespace assay::facts {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
// Steps from an instruction to one that it joins at, all together.
constexpr std::uint64_t kMostWork = 200'000'000;
constexpr std::size_t kMostDecided = 4'000'000;

/// With an edge to the end (the number after the last) from where the function is left.
std::vector<std::vector<std::uint32_t>> FlowToTheEnd(const ptx::Function& function) {
  std::vector<std::vector<std::uint32_t>> next = ptx::ControlFlow(function);
  const auto end = static_cast<std::uint32_t>(next.size());
  for (std::uint32_t i = 0; i < end; ++i) {
    const ptx::Instruction& in = function.body[i];
    const ptx::Effect effect = ptx::FormOf(in).rules.effect;
    const bool leaves = effect == ptx::Effect::kReturn || effect == ptx::Effect::kExit ||
                        effect == ptx::Effect::kTrap;
    const bool past_the_end = std::ranges::any_of(in.operands, [&](const ptx::Operand& operand) {
      return (operand.kind == ptx::Operand::Kind::kLabel && operand.target >= end) ||
             std::ranges::any_of(operand.targets, [&](auto target) { return target >= end; });
    });
    const bool runs_off = i + 1 == end && (!ptx::Leaves(effect) || in.guard.present);
    if (leaves || past_the_end || runs_off) next[i].push_back(end);
  }
  next.emplace_back();
  return next;
}

/// From the end backwards, each after those that it may come to next as far as there is no cycle.
std::vector<std::uint32_t> ReversePostorder(const std::vector<std::vector<std::uint32_t>>& before) {
  const auto end = static_cast<std::uint32_t>(before.size()) - 1;
  std::vector<std::uint32_t> order;
  std::vector<bool> seen(before.size(), false);
  std::vector<std::pair<std::uint32_t, std::size_t>> open = {{end, 0}};
  seen[end] = true;
  while (!open.empty()) {
    auto& [node, index] = open.back();
    if (index == before[node].size()) {
      order.push_back(node);
      open.pop_back();
      continue;
    }
    const std::uint32_t from = before[node][index++];
    if (!seen[from]) {
      seen[from] = true;
      open.emplace_back(from, 0);
    }
  }
  std::ranges::reverse(order);
  return order;
}

}  // namespace

std::optional<Control> ControlOf(const ptx::Function& function) {
  const std::vector<std::vector<std::uint32_t>> next = FlowToTheEnd(function);
  const auto end = static_cast<std::uint32_t>(next.size()) - 1;
  std::vector<std::vector<std::uint32_t>> before(next.size());
  for (std::uint32_t i = 0; i < end; ++i) {
    for (const std::uint32_t to : next[i]) before[to].push_back(i);
  }
  const std::vector<std::uint32_t> order = ReversePostorder(before);
  if (order.size() != next.size()) return std::nullopt;
  std::vector<std::uint32_t> place(next.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;

  Control control;
  std::vector<std::uint32_t>& joins_at = control.joins_at;
  joins_at.assign(next.size(), kNone);
  joins_at[end] = end;
  std::uint64_t work = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t i : order) {
      if (i == end) continue;
      std::uint32_t meet = kNone;
      for (std::uint32_t to : next[i]) {
        if (joins_at[to] == kNone) continue;
        while (meet != kNone && meet != to) {
          if (++work > kMostWork) return std::nullopt;
          std::uint32_t& behind = place[meet] > place[to] ? meet : to;
          behind = joins_at[behind];
        }
        meet = to;
      }
      changed = changed || joins_at[i] != meet;
      joins_at[i] = meet;
    }
  }

  control.decided_by.resize(end);
  std::size_t decided = 0;
  for (std::uint32_t branch = 0; branch < end; ++branch) {
    if (next[branch].size() < 2) continue;
    for (const std::uint32_t to : next[branch]) {
      for (std::uint32_t i = to; i != joins_at[branch] && i != end; i = joins_at[i]) {
        if (++decided > kMostDecided) return std::nullopt;
        std::vector<std::uint32_t>& by = control.decided_by[i];
        if (by.empty() || by.back() != branch) by.push_back(branch);
      }
    }
  }
  return control;
}

}  // namespace assay::facts

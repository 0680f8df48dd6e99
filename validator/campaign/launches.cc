#include "validator/campaign/launches.h"

#include <algorithm>
#include <set>

namespace assay::campaign {
namespace {

/// What `name` among a launch's arguments may be written through; empty for what nobody writes.
template <class Plan>
std::string WrittenThrough(const ops::OpSpec& op, const Plan& plan, std::string name) {
  const auto map =
      std::ranges::find_if(plan.tensor_maps, [&](const auto& each) { return each.name == name; });
  if (map != plan.tensor_maps.end()) name = map->tensor;
  // What is overwritten has two names.
  for (const ops::TensorSpec& output : op.outputs) {
    if (output.updates == name) return output.name;
  }
  const bool is_workspace = std::ranges::any_of(
      plan.workspace, [&](const auto& workspace) { return workspace.name == name; });
  return is_workspace || op.FindOutput(name) != nullptr ? name : std::string();
}

template <class Plan>
std::set<std::string> WrittenBy(const ops::OpSpec& op, const Plan& plan, std::size_t launch) {
  std::set<std::string> written;
  for (const std::string& name : plan.kernels[launch].args)
    written.insert(WrittenThrough(op, plan, name));
  written.erase("");
  return written;
}

template <class Plan>
LaunchGroups Groups(const ops::OpSpec& op, const Plan& plan) {
  LaunchGroups groups;
  std::vector<std::set<std::string>> memory;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    std::vector<std::size_t> mine;
    std::set<std::string> written = WrittenBy(op, plan, i);
    for (std::size_t g = groups.size(); g-- > 0;) {
      const bool shared = std::ranges::any_of(
          memory[g], [&](const std::string& name) { return written.contains(name); });
      if (!shared) continue;
      mine.insert(mine.begin(), groups[g].begin(), groups[g].end());
      written.merge(memory[g]);
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(g));
      memory.erase(memory.begin() + static_cast<std::ptrdiff_t>(g));
    }
    mine.push_back(i);
    std::ranges::sort(mine);
    groups.push_back(std::move(mine));
    memory.push_back(std::move(written));
  }
  std::ranges::sort(groups);
  return groups;
}

}  // namespace

LaunchGroups GroupsOf(const ops::OpSpec& op, const ops::LaunchPlan& plan) {
  return Groups(op, plan);
}

LaunchGroups GroupsOf(const ops::OpSpec& op, const ops::ResolvedPlan& plan) {
  return Groups(op, plan);
}

bool HandsOn(const ops::OpSpec& op, const ops::LaunchPlan& plan) {
  return GroupsOf(op, plan).size() < plan.kernels.size();
}

ops::ResolvedPlan Only(const ops::ResolvedPlan& plan, const std::vector<std::size_t>& group) {
  ops::ResolvedPlan only = plan;
  only.kernels.clear();
  for (const std::size_t launch : group) only.kernels.push_back(plan.kernels[launch]);
  return only;
}

ops::Instance WithOutputsOf(const ops::Instance& instance, const ops::ResolvedPlan& plan) {
  std::set<std::string> written;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    written.merge(WrittenBy(instance.op, plan, i));
  ops::Instance some = instance;
  std::erase_if(some.op.outputs,
                [&](const ops::TensorSpec& output) { return !written.contains(output.name); });
  return some;
}

}  // namespace assay::campaign

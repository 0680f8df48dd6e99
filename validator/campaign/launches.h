// Which launches of a plan have to do with each other.
//
// One launch hands on to a later one what it writes: an output, or workspace. Those that share no such
// memory do not know of each other, whatever inputs both read; so each can be cut, and run, by itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ops/launch_plan.h"
#include "ops/op.h"

namespace assay::campaign {

/// Numbers of a plan's launches, those that share what one of them may write together; in order.
using LaunchGroups = std::vector<std::vector<std::size_t>>;
LaunchGroups GroupsOf(const ops::OpSpec& op, const ops::LaunchPlan& plan);
LaunchGroups GroupsOf(const ops::OpSpec& op, const ops::ResolvedPlan& plan);

/// Does any launch share with another what one of them may write?
bool HandsOn(const ops::OpSpec& op, const ops::LaunchPlan& plan);

/// The launches of `group` alone.
ops::ResolvedPlan Only(const ops::ResolvedPlan& plan, const std::vector<std::size_t>& group);

/// An op with those outputs alone that `plan` may write.
ops::Instance WithOutputsOf(const ops::Instance& instance, const ops::ResolvedPlan& plan);

}  // namespace assay::campaign

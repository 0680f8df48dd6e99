// Families of ops: which ops are so close that learning one gives away another.
//
// Each op has tags, read off the words of its name by a table (families.cc): rms_norm_backward is
// {norm}, embedding_rmsnorm_backward {norm, indexing}; a name that the table does not know is a tag of
// its own, without "fused", "forward", "backward", "grad" and numbers. Ops that share a tag, directly or through
// others, are one family. Erring towards large families costs variety; erring towards small ones
// would put a sister of an evaluation op into training.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace assay::dataset {

std::set<std::string> TagsOf(std::string_view op);

/// Op -> family. A family is named by its tags, "indexing+norm". `extra`: tags by op, added to those
/// of the name.
std::map<std::string, std::string> FamiliesOf(
    const std::set<std::string>& ops,
    const std::map<std::string, std::set<std::string>>& extra = {});

}  // namespace assay::dataset

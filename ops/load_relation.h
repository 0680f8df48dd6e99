// `relation` of an output in op.json, read and checked against the other outputs.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "ops/op.h"

namespace assay::ops {

/// A kind's name, or an object with `kind` and what it takes. Names in it are not looked up yet.
Result<Relation> ReadRelation(const Json& value, const std::string& place);

/// Outputs, hidden ones and inputs that are overwritten must fit together; `file` is op.json.
Status CheckRelations(const OpSpec& op, const std::string& file);

}  // namespace assay::ops

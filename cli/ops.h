// Ops as people and programs are shown them: `assay ops`, and the tools of `assay mcp`.
#pragma once

#include <string>

#include "base/json.h"
#include "ops/op.h"

namespace assay::cli {

struct OpsListed {
  std::string text;
  Json json;
};
/// Fails where there are none.
Result<OpsListed> ListOps(const ops::Library& library);

Json OpToJson(const ops::OpSpec& op);
std::string OpToText(const ops::OpSpec& op);

}  // namespace assay::cli

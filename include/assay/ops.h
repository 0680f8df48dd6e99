// Ops: what kernels can be asked for. The format is told in docs/ops.md.
//
//   auto op = FindOp(environment, "rms_norm");
//   if (!op) return Complain(op.error());
//   for (const auto& [variable, choices] : op->dtypes) ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/environment.h"
#include "assay/error.h"

namespace assay::api {

/// Dtypes of an op's type variables: {"T": "bf16"}. What is left out takes the op's first choice.
using Binding = std::map<std::string, std::string>;

struct Axis {
  std::string name;
  std::int64_t least = 1;
  std::int64_t most = 1;
  std::string expression;  ///< Of an axis that follows from others; else empty.
  std::string description;
};

struct Tensor {
  std::string name;
  std::vector<std::string> shape;  ///< An expression over axes for each dimension; none: a scalar.
  std::string dtype;               ///< "bf16", or a type variable.
  std::string description;
};

struct Op {
  std::string name;
  std::string summary;
  std::filesystem::path folder;
  std::string digest;  ///< SHA-256 over op.json, the reference's source and plan.
  std::map<std::string, std::vector<std::string>> dtypes;
  std::vector<Axis> axes;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<std::string> properties;
};

/// An op of the library by its name, or any by its folder.
Result<Op> FindOp(const Environment& environment, std::string_view name_or_folder);

struct OpEntry {
  std::string name;
  std::filesystem::path folder;
  std::string error;  ///< Why its op.json cannot be read; empty where it can.
};
/// All ops of the library, by name.
std::vector<OpEntry> ListOps(const Environment& environment);

}  // namespace assay::api

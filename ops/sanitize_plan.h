// The stand-alone launch file of `assay sanitize`: assay.launch/1 with the data in it, and no op.
//
//   {"schema": "assay.launch/1", "options": ["-DN=4"],
//    "kernels": [{"entry": "k", "grid": [4], "block": [256], "shared_bytes": 0,
//                 "args": ["x", "y", "n"]}],
//    "buffers": {"x": {"dtype": "f32", "elements": 1024,
//                      "init": {"kind": "uniform", "low": -1, "high": 1, "seed": 7}},
//                "y": {"dtype": "f32", "elements": 1024, "init": {"kind": "uninitialised"},
//                      "save": "y.bin"}},
//    "scalars": {"n": {"dtype": "i32", "value": 1024}}}
//
// role, of a buffer: input (writing it is a finding), output (all of it must be written, with
// defined values), workspace (its contents are nobody's business); none: an output where `save` keeps
// it, else a buffer that may be read and written. may_differ: its contents may depend on the schedule, by intent.
// init kinds: zero, constant (value), iota, uniform (low, high, seed), normal (mean, scale, seed),
// file (path, raw little-endian), uninitialised. Its author is the user who runs it, so it may name
// options and paths; paths are relative to the launch file. Integer scalars may be used in grid,
// block and shared_bytes. A plan is a value; filling is a pure function of it (and of files).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "ops/launch_plan.h"

namespace assay::ops {

struct BufferInit {
  enum class Kind : std::uint8_t {
    kZero,
    kConstant,
    kIota,
    kUniform,
    kNormal,
    kFile,
    kUninitialised
  };
  Kind kind = Kind::kUninitialised;
  double value = 0;            ///< kConstant.
  double low = 0, high = 1;    ///< kUniform; for integers both ends are included.
  double mean = 0, scale = 1;  ///< kNormal.
  std::uint64_t seed = 0;
  Path path = {};  ///< kFile, relative paths resolved.
};

struct SanitizeBuffer {
  enum class Role : std::uint8_t { kPlain, kInput, kOutput, kWorkspace };
  std::string name;
  DType dtype = DType::kF32;
  std::int64_t elements = 0;
  Role role = Role::kPlain;
  bool may_differ = false;  ///< Between schedules.
  BufferInit init;
  std::optional<Path> save;  ///< Where to write its bytes after the run.
};

struct SanitizeScalar {
  std::string name;
  DType dtype = DType::kI32;
  double value = 0;          ///< Float dtypes.
  std::int64_t integer = 0;  ///< Integer dtypes.
  /// Little-endian bytes, as long as the dtype.
  std::vector<std::uint8_t> Bytes() const;
};

struct SanitizePlan {
  std::vector<std::string> options;     ///< Compiler options, in order.
  std::vector<ResolvedKernel> kernels;  ///< In order; empty grids are left out.
  std::vector<SanitizeBuffer> buffers;  ///< In the order written.
  std::vector<SanitizeScalar> scalars;
  std::vector<ResolvedTensorMap>
      tensor_maps;  ///< Over buffers, sizes in integer scalars or numbers.
};

/// `folder` is the launch file's, for relative paths.
Result<SanitizePlan> ParseSanitizePlan(const Json& document, const std::string& file,
                                       const Path& folder);

/// Fills `bytes` (elements * SizeOf(dtype) of them). kZero, kUninitialised: left as they are. A
/// file of another size is an error.
Status FillBuffer(const SanitizeBuffer& buffer, std::span<std::byte> bytes);

}  // namespace assay::ops

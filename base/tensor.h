// A dense row-major tensor whose bytes live in shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/shared_memory.h"

namespace assay {

using Shape = std::vector<std::int64_t>;  ///< Extents, outermost first; empty for a scalar.

/// Product of the extents (1 for a scalar), or an error when it leaves 63 bits.
Result<std::int64_t> ElementCount(const Shape& shape);

struct Tensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::int64_t elements = 0;
  SharedMemory memory;

  /// Zeroed tensor.
  static Result<Tensor> Create(DType dtype, Shape shape);
  /// The same bytes in memory of its own. What was never touched stays so.
  Result<Tensor> Clone() const;

  double At(std::int64_t index) const;
  void Set(std::int64_t index, double value);
  const std::byte* Element(std::int64_t index) const;
  std::byte* Element(std::int64_t index);
};

/// The values of a tensor that nobody writes to any more, to be mapped again and again. It shares the tensor's memory file.
class KeptTensor {
 public:
  static Result<KeptTensor> Of(const Tensor& tensor);

  /// In a mapping of its own: what is written there stays there, and goes to no other process.
  Result<Tensor> Map() const;
  /// Of the file's pages, those that there are.
  std::size_t BytesHeld() const;

 private:
  UniqueFd file_;
  std::size_t bytes_ = 0;
  DType dtype_ = DType::kF32;
  Shape shape_;
  std::int64_t elements_ = 0;
};

/// The first element whose bits differ between two tensors; 0 where their sizes do.
std::optional<std::int64_t> FirstDifference(const Tensor& a, const Tensor& b);
/// The index, one number a dimension, of the element at a row-major place.
std::vector<std::int64_t> IndexOf(std::int64_t place, const Shape& shape);

/// Tensors by the names that the op gives them.
using TensorMap = std::map<std::string, Tensor, std::less<>>;

}  // namespace assay

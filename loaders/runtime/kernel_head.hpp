#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

//@namespace@

/// A call that the kernel's certificate does not cover, or that cannot be made here.
class Refused : public std::runtime_error {
 public:
  explicit Refused(const std::string& message, const std::string& cure = "")
      : std::runtime_error(cure.empty() ? message : message + "\n  fix: " + cure) {}
};

enum class DType { boolean, i8, u8, i16, u16, i32, u32, i64, u64, f8e4m3, f8e5m2, bf16, f16, f32, f64 };

/// A tensor in the memory of the GPU. Only packed ones are taken: strides may be left out.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< Elements.
};

// What is said of the kernel below.

/// An extent. The op allows low to high; the judge ran shapes as long as `whole`, some blocks of shapes as long as
/// `in_slices`, and the ends of shapes as long as `at_ends`.
struct Axis {
  const char* name;
  std::int64_t low, high, whole, in_slices, at_ends;
  /// The longest that the judge saw, each axis by itself.
  std::int64_t tried() const { return std::max(whole, std::max(in_slices, at_ends)); }
};

/// A scalar's domain.
struct Domain {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::vector<double> choices;
  bool allow_nan = false;
  bool allow_infinity = false;
};

/// An argument by its name: a tensor, a scalar or an axis.
struct Operand {
  std::string name;
  enum class Kind { input, output, scalar, axis } kind = Kind::axis;
  const Tensor* tensor = nullptr;
  DType dtype = DType::i64;  ///< As it was vetted.
  std::size_t align = 1;     ///< Bytes that a tensor's address is a multiple of.
  std::vector<std::int64_t> shape;
  std::string shape_text;
  double number = 0;         ///< A scalar of a float type.
  std::int64_t integer = 0;  ///< Any other scalar, and an axis.
  Domain domain;
  std::string updates;  ///< Of an output: the input that it is, as the kernel changes it.
};

struct Workspace {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  bool zero;
};

/// What cuTensorMapEncodeTiled is told; dimension 0 is the innermost, strides are bytes.
struct TensorMap {
  std::string name, tensor;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< Of dimensions 1 and up; empty: packed.
  std::vector<std::int64_t> box;
  int swizzle;
  bool fill_nan;
};

struct Launch {
  const char* symbol;  ///< Of the function in the machine code.
  std::array<std::int64_t, 3> grid, block, cluster;
  std::int64_t shared_bytes;
  bool cooperative;
  std::vector<std::string> args;
};

struct Plan {
  std::vector<Workspace> workspace;
  std::vector<TensorMap> tensor_maps;
  std::vector<Launch> launches;
};

struct Constraint {
  const char* text;
  bool holds;
};

// 64-bit integers that are checked, as the judge has them.

inline std::int64_t fit(bool wrapped, std::int64_t value) {
  if (wrapped) throw Refused("an extent leaves 63 bits", "use a smaller shape");
  return value;
}
inline std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  const bool wrapped = __builtin_add_overflow(a, b, &value);
  return fit(wrapped, value);
}
inline std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  const bool wrapped = __builtin_sub_overflow(a, b, &value);
  return fit(wrapped, value);
}
inline std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  const bool wrapped = __builtin_mul_overflow(a, b, &value);
  return fit(wrapped, value);
}
inline std::int64_t negate(std::int64_t a) { return subtract(0, a); }
inline void check_divisor(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Refused(std::to_string(a) + " is divided by zero", "use another shape");
  fit(a == std::numeric_limits<std::int64_t>::min() && b == -1, 0);
}
inline std::int64_t divide(std::int64_t a, std::int64_t b) {
  check_divisor(a, b);
  return a / b;
}
inline std::int64_t modulo(std::int64_t a, std::int64_t b) {
  check_divisor(a, b);
  return a % b;
}
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  check_divisor(a, b);
  if (a < 0 || b < 0) throw Refused("ceil_div of negative operands", "use another shape");
  return a / b + (a % b != 0 ? 1 : 0);
}
inline std::int64_t round_up(std::int64_t a, std::int64_t b) { return multiply(ceil_div(a, b), b); }
inline std::int64_t minimum(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t maximum(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

/// The extent of dimension `at`.
inline std::int64_t extent(const Tensor& tensor, std::size_t at) {
  if (at >= tensor.shape.size()) throw Refused("a tensor has too few dimensions");
  return tensor.shape[at];
}


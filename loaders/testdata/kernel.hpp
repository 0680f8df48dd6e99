// scatter_add-T=bf16-sm_90: a CUDA kernel that Assay vetted, for C++17 and the CUDA driver.
//
//   namespace vetted = assay_kernels::scatter_add_T_bf16_sm_90;
//   vetted::Kernel kernel("the folder of this file");   // into the current context
//   vetted::Call call;                                  // its members are the arguments
//   kernel(call, stream);
//
// Throws Refused, with what to do about it, for whatever the kernel was not vetted for: another dtype, an extent out of
// range, strides, memory of the CPU, another chip. Kernel::watch checks a share of the calls against a reference.
//
// Written by Assay from launch.json, op.json and certificate.json, which holds this file's digest. Needs the CUDA driver
// when it runs, and nothing of CUDA when it is compiled.
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

namespace assay_kernels::scatter_add_T_bf16_sm_90 {

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

// The kernel's own.

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtautological-compare"  // plans may say what is so

inline constexpr const char* instance = "scatter_add-T=bf16-sm_90";
inline constexpr const char* arch = "sm_90";
/// What holds the program, the preferred one first, and its SHA-256.
inline const std::vector<std::pair<std::string, std::string>>& images() {
  static const std::vector<std::pair<std::string, std::string>> all = {
      {"kernel.sm_90.cubin", "7c9b185f35cce03019b3c7cebdef327545fd0cfdeb1acdf7db7fd7d528c74538"},
      {"kernel.ptx", "d9657e50116f295ed2619730493b11018e73fa798b576fffa7f01973aba8d929"},
  };
  return all;
}
/// Extents that vary.
inline const std::vector<Axis>& axis_table() {
  static const std::vector<Axis> all = {
      // name, low, high, whole, in_slices, at_ends
      {"tokens", 1, 1048576, 257, 0, 0},
      {"hidden", 1, 16384, 64, 0, 4096},
      {"rows", 1, 262144, 31, 1000, 0},
  };
  return all;
}

/// One call. Outputs are written.
struct Call {
  Tensor src;  ///< bf16 [tokens, hidden]
  Tensor index;  ///< i64 [tokens]
  Tensor out;  ///< output, bf16 [rows, hidden]
};

struct Axes {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t rows = 0;
};

/// The axes, from the shapes.
inline Axes solve(const Call& call) {
  Axes axes;
  axes.tokens = extent(call.src, 0);
  axes.hidden = extent(call.src, 1);
  axes.rows = extent(call.out, 0);
  return axes;
}

/// Those of axis_table().
inline std::vector<std::int64_t> values_of(const Axes& axes) {
  (void)axes;
  return {axes.tokens, axes.hidden, axes.rows};
}

/// What the op asks of the axes.
inline std::vector<Constraint> constraints(const Axes& axes) {
  (void)axes;
  return {
  };
}

/// All arguments by name, with what each must be.
inline std::vector<Operand> operands_of(const Call& call, const Axes& axes) {
  using Kind = Operand::Kind;
  const double infinity = std::numeric_limits<double>::infinity();
  (void)infinity;
  return {
      {"src", Kind::input, &call.src, DType::bf16, 2, {axes.tokens, axes.hidden}, "tokens, hidden", 0, 0, {}, ""},
      {"index", Kind::input, &call.index, DType::i64, 8, {axes.tokens}, "tokens", 0, 0, {}, ""},
      {"out", Kind::output, &call.out, DType::bf16, 2, {axes.rows, axes.hidden}, "rows, hidden", 0, 0, {}, ""},
      {"tokens", Kind::axis, nullptr, DType::i64, 1, {}, "", 0, axes.tokens, {}},
      {"hidden", Kind::axis, nullptr, DType::i64, 1, {}, "", 0, axes.hidden, {}},
      {"rows", Kind::axis, nullptr, DType::i64, 1, {}, "", 0, axes.rows, {}},
  };
}

inline std::vector<std::pair<std::string, Tensor*>> outputs_of(Call& call) {
  return {{"out", &call.out}};
}

/// launch.json for one shape.
inline Plan plan_of(const Axes& axes) {
  (void)axes;
  Plan plan;
  plan.workspace.push_back({"sums", DType::f32, {axes.rows, axes.hidden}, true});
  plan.launches.push_back({
      "_Z0",
      {{ceil_div(multiply(axes.tokens, axes.hidden), 256), 1, 1}},  // grid
      {{256, 1, 1}},  // block
      {{1, 1, 1}},  // cluster
      0,  // bytes of shared memory
      false,  // cooperative
      {"src", "index", "sums", "tokens", "hidden"},
  });
  plan.launches.push_back({
      "_Z1",
      {{ceil_div(multiply(axes.rows, axes.hidden), 256), 1, 1}},  // grid
      {{256, 1, 1}},  // block
      {{1, 1, 1}},  // cluster
      0,  // bytes of shared memory
      false,  // cooperative
      {"sums", "out", "rows", "hidden"},
  });
  return plan;
}

#pragma GCC diagnostic pop

// The driver, opened at run time: its header need not be installed.

namespace driver {

using Address = unsigned long long;

struct Attribute {  // CUlaunchAttribute
  enum Id : std::int32_t { cooperative = 2, cluster = 4 };
  std::int32_t id = 0;
  std::uint32_t padding = 0;
  alignas(8) std::uint32_t value[16] = {};
};

struct Config {  // CUlaunchConfig
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  void* stream = nullptr;
  Attribute* attributes = nullptr;
  std::uint32_t attribute_count = 0;
};

struct alignas(64) MapImage {  // CUtensorMap
  std::uint64_t opaque[16] = {};
};

/// Calls by their exported names. Each returns a code, 0 for success.
struct Calls {
  int (*cuGetErrorName)(int, const char**);
  int (*cuCtxGetCurrent)(void**);
  int (*cuCtxGetDevice)(int*);
  int (*cuDeviceGetAttribute)(int*, int, int);
  int (*cuModuleLoadData)(void**, const void*);
  int (*cuModuleUnload)(void*);
  int (*cuModuleGetFunction)(void**, void*, const char*);
  int (*cuFuncGetParamInfo)(void*, std::size_t, std::size_t*, std::size_t*);
  int (*cuFuncSetAttribute)(void*, int, int);
  int (*cuPointerGetAttribute)(void*, int, Address);
  int (*cuMemGetAddressRange_v2)(Address*, std::size_t*, Address);
  int (*cuMemAllocAsync)(Address*, std::size_t, void*);
  int (*cuMemFreeAsync)(Address, void*);
  int (*cuMemsetD8Async)(Address, unsigned char, std::size_t, void*);
  int (*cuMemcpyDtoHAsync_v2)(void*, Address, std::size_t, void*);
  int (*cuMemcpyDtoDAsync_v2)(Address, Address, std::size_t, void*);
  int (*cuStreamSynchronize)(void*);
  int (*cuStreamIsCapturing)(void*, int*);
  int (*cuLaunchKernelEx)(const Config*, void*, void**, void**);
  int (*cuTensorMapEncodeTiled)(MapImage*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
                                const std::uint32_t*, const std::uint32_t*, int, int, int, int);
};

inline const Calls& calls() {
  static const Calls opened = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw Refused("there is no CUDA driver", "run on a machine with a GPU");
    Calls all{};
    const auto find = [library](auto& call, const char* name) {
      call = reinterpret_cast<std::decay_t<decltype(call)>>(dlsym(library, name));
      if (call == nullptr) throw Refused(std::string("the CUDA driver lacks ") + name, "install a newer driver");
    };
#define ASSAY_FIND(name) find(all.name, #name)
    ASSAY_FIND(cuGetErrorName);
    ASSAY_FIND(cuCtxGetCurrent);
    ASSAY_FIND(cuCtxGetDevice);
    ASSAY_FIND(cuDeviceGetAttribute);
    ASSAY_FIND(cuModuleLoadData);
    ASSAY_FIND(cuModuleUnload);
    ASSAY_FIND(cuModuleGetFunction);
    ASSAY_FIND(cuFuncGetParamInfo);
    ASSAY_FIND(cuFuncSetAttribute);
    ASSAY_FIND(cuPointerGetAttribute);
    ASSAY_FIND(cuMemGetAddressRange_v2);
    ASSAY_FIND(cuMemAllocAsync);
    ASSAY_FIND(cuMemFreeAsync);
    ASSAY_FIND(cuMemsetD8Async);
    ASSAY_FIND(cuMemcpyDtoHAsync_v2);
    ASSAY_FIND(cuMemcpyDtoDAsync_v2);
    ASSAY_FIND(cuStreamSynchronize);
    ASSAY_FIND(cuStreamIsCapturing);
    ASSAY_FIND(cuLaunchKernelEx);
    ASSAY_FIND(cuTensorMapEncodeTiled);
#undef ASSAY_FIND
    return all;
  }();
  return opened;
}

inline void check(int code, const char* call) {
  if (code == 0) return;
  const char* name = nullptr;
  calls().cuGetErrorName(code, &name);
  throw std::runtime_error(std::string(instance) + ": " + call + ": " + (name != nullptr ? name : "error") + " (" +
                           std::to_string(code) + ")");
}

/// Memory for as long as the work that was put on the stream so far needs it.
class Memory {
 public:
  Memory(std::size_t bytes, void* stream) : stream_(stream) {
    check(calls().cuMemAllocAsync(&address_, std::max<std::size_t>(bytes, 1), stream), "cuMemAllocAsync");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { calls().cuMemFreeAsync(address_, stream_); }
  Address address() const { return address_; }

 private:
  Address address_ = 0;
  void* stream_;
};

}  // namespace driver

// Numbers.

inline std::size_t size_of(DType dtype) {
  constexpr std::size_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8};
  return sizes[static_cast<std::size_t>(dtype)];
}
inline const char* name_of(DType dtype) {
  constexpr const char* names[] = {"bool", "i8",     "u8",     "i16",  "u16", "i32", "u32", "i64",
                                   "u64",  "f8e4m3", "f8e5m2", "bf16", "f16", "f32", "f64"};
  return names[static_cast<std::size_t>(dtype)];
}
inline bool is_float(DType dtype) { return dtype >= DType::f8e4m3; }
inline bool is_signed(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

/// Exponent and fraction bits of the float types of 8 and 16 bits.
inline std::pair<int, int> small_form(DType dtype) {
  if (dtype == DType::bf16) return {8, 7};
  if (dtype == DType::f16) return {5, 10};
  if (dtype == DType::f8e5m2) return {5, 2};
  return {4, 3};
}

inline std::uint32_t encode_small(DType dtype, double value) {
  const int exponent_bits = small_form(dtype).first, fraction_bits = small_form(dtype).second;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + fraction_bits) : 0;
  std::uint32_t most = ((1u << exponent_bits) - 1) << fraction_bits;  // infinity
  if (dtype == DType::f8e4m3) most = 0x7e;                            // 448: there is none
  if (std::isnan(value)) return sign | (dtype == DType::f8e4m3 ? 0x7f : most | (1u << (fraction_bits - 1)));
  if (std::isinf(value)) return sign | most;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int last = std::max(value == 0 ? 1 - bias : exponent - 1, 1 - bias) - fraction_bits;
  const double steps = std::nearbyint(std::ldexp(std::fabs(value), -last));
  const double bits = steps + std::ldexp(last + fraction_bits + bias - 1, fraction_bits);
  return sign | static_cast<std::uint32_t>(std::min<double>(bits, most));
}

inline double decode_small(DType dtype, std::uint32_t bits) {
  const int exponent_bits = small_form(dtype).first, fraction_bits = small_form(dtype).second;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const double sign = (bits >> (exponent_bits + fraction_bits)) != 0 ? -1 : 1;
  const bool last = exponent == (1 << exponent_bits) - 1;
  if (dtype == DType::f8e4m3 ? last && fraction == 7 : last) {
    if (dtype == DType::f8e4m3 || fraction != 0) return std::numeric_limits<double>::quiet_NaN();
    return sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <class T>
double decode_as(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return static_cast<double>(value);
}

inline double decode(DType dtype, const void* element) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8:
      return decode_as<std::uint8_t>(element);
    case DType::i8:
      return decode_as<std::int8_t>(element);
    case DType::i16:
      return decode_as<std::int16_t>(element);
    case DType::u16:
      return decode_as<std::uint16_t>(element);
    case DType::i32:
      return decode_as<std::int32_t>(element);
    case DType::u32:
      return decode_as<std::uint32_t>(element);
    case DType::i64:
      return decode_as<std::int64_t>(element);
    case DType::u64:
      return decode_as<std::uint64_t>(element);
    case DType::f32:
      return decode_as<float>(element);
    case DType::f64:
      return decode_as<double>(element);
    case DType::f8e4m3:
    case DType::f8e5m2:
      return decode_small(dtype, static_cast<const std::uint8_t*>(element)[0]);
    default:
      break;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, element, sizeof bits);
  return decode_small(dtype, bits);
}

/// The little-endian bytes of a scalar in its own dtype.
inline std::vector<unsigned char> pack(const Operand& operand) {
  std::vector<unsigned char> bytes(size_of(operand.dtype));
  if (operand.dtype == DType::f64) {
    std::memcpy(bytes.data(), &operand.number, 8);
  } else if (operand.dtype == DType::f32) {
    const float value = static_cast<float>(operand.number);
    std::memcpy(bytes.data(), &value, 4);
  } else if (is_float(operand.dtype)) {
    const std::uint32_t value = encode_small(operand.dtype, operand.number);
    std::memcpy(bytes.data(), &value, bytes.size());
  } else {
    std::memcpy(bytes.data(), &operand.integer, bytes.size());
    std::int64_t back = is_signed(operand.dtype) && (bytes.back() & 0x80) != 0 ? -1 : 0;
    std::memcpy(&back, bytes.data(), bytes.size());
    if (back != operand.integer)
      throw Refused(operand.name + " is " + std::to_string(operand.integer) + ", which is no " + name_of(operand.dtype));
  }
  return bytes;
}

/// The same in the bytes of a kernel's parameter, where the value survives that.
inline std::vector<unsigned char> fit_scalar(const Operand& operand, std::size_t size) {
  std::vector<unsigned char> bytes = pack(operand);
  if (bytes.size() == size) return bytes;
  const bool negative = !is_float(operand.dtype) && is_signed(operand.dtype) && (bytes.back() & 0x80) != 0;
  const unsigned char fill = negative ? 0xff : 0;
  bool fits = !is_float(operand.dtype);
  for (std::size_t i = size; i < bytes.size(); ++i) fits = fits && bytes[i] == fill;
  if (fits && negative && size < bytes.size()) fits = (bytes[size - 1] & 0x80) != 0;
  if (!fits)
    throw Refused(operand.name + " does not fit the " + std::to_string(size) + " bytes of the kernel's parameter",
                  "use a smaller shape or value");
  bytes.resize(size, fill);
  return bytes;
}

/// SHA-256 (FIPS 180-4) in hexadecimal.
inline std::string sha256(const std::string& text) {
  std::array<std::uint32_t, 64> constants{};
  std::array<std::uint32_t, 8> state{};
  // The fractional parts of the cube and square roots of the first primes; long doubles hold 32 bits and some of them.
  for (std::uint32_t prime = 2, count = 0; count < 64; ++prime) {
    bool divides = false;
    for (std::uint32_t d = 2; d * d <= prime; ++d) divides = divides || prime % d == 0;
    if (divides) continue;
    const auto bits = [](long double root) {
      return static_cast<std::uint32_t>(std::floor((root - std::floor(root)) * 4294967296.0L));
    };
    constants[count] = bits(std::cbrt(static_cast<long double>(prime)));
    if (count < 8) state[count] = bits(std::sqrt(static_cast<long double>(prime)));
    ++count;
  }
  std::string padded = text + '\x80';
  padded.append((119 - text.size() % 64) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>((static_cast<std::uint64_t>(text.size()) * 8) >> shift);
  const auto rotate = [](std::uint32_t x, int n) { return x >> n | x << (32 - n); };
  for (std::size_t block = 0; block < padded.size(); block += 64) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t byte = 0; byte < 4; ++byte)
        w[i] = w[i] << 8 | static_cast<unsigned char>(padded[block + 4 * i + byte]);
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
             (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    std::array<std::uint32_t, 8> s = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                                ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
      const std::uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                                ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
    }
    for (std::size_t i = 0; i < 8; ++i) state[i] += s[i];
  }
  std::string digest;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) digest += "0123456789abcdef"[word >> shift & 15];
  }
  return digest;
}

// Watch in production.

/// One output of one checked call against its reference. Errors are counted in allowances.
struct Check {
  std::string output;
  std::uint64_t call = 0;  ///< Which call of the kernel, from 1.
  double worst = 0;        ///< The largest |got - wanted| / allowance; above 1: exceeded.
  double bias = 0;         ///< The mean of (got - wanted) / allowance.
  std::uint64_t exceeded = 0;
  std::uint64_t elements = 0;
};

/// What the checked calls of one output came to.
struct Tally {
  std::uint64_t checked = 0;
  std::uint64_t exceeded = 0;  ///< Calls.
  double worst = 0;
  double bias = 0;    ///< Mean over the checked calls.
  double first = 0;   ///< Mean of `worst` over the first 16 checked calls.
  double recent = 0;  ///< The same, recent calls counting most.

  /// How many times larger errors are now than they were at first; 1: as they were.
  double drift() const {
    if (first > 0) return recent / first;
    return recent <= 0 ? 1 : std::numeric_limits<double>::infinity();
  }
  void add(const Check& check) {
    ++checked;
    exceeded += check.exceeded > 0 ? 1 : 0;
    worst = std::max(worst, check.worst);
    bias += (check.bias - bias) / static_cast<double>(checked);
    const double now = std::min(check.worst, 1e6);
    if (checked <= 16) {
      first += (now - first) / static_cast<double>(checked);
      recent = first;
    } else {
      recent += 0.1 * (now - recent);
    }
  }
};

/// Checks one call in 1 / rate against a reference, on the CPU, after the call.
///
/// The allowance of an element is relative * |wanted| + absolute * rms(wanted). It is a yardstick for watching, coarser
/// than the bound that the judge derived. Cost: nothing but a countdown for a call that is not checked; the reference,
/// both results copied to the CPU and compared there, and a wait for the stream for one that is.
class Watch {
 public:
  /// Writes what is right to the outputs of `call`, on `stream`: another vetted kernel, or a library's.
  using Reference = std::function<void(const Call& call, void* stream)>;

  explicit Watch(Reference reference, double rate = 1e-3, std::uint64_t seed = std::random_device{}())
      : reference_(std::move(reference)), rate_(rate), random_(seed) {
    if (!(rate > 0 && rate <= 1)) throw Refused("a rate of this kind checks nothing", "use a share of calls, as 1e-3");
    left_ = wait();
  }

  double relative = -1;  ///< Below 0: by the output's dtype.
  double absolute = -1;
  std::function<void(const Check&)> on_check;     ///< Each check of an output.
  std::function<void(const std::string&)> log;    ///< A line where an allowance was exceeded, or a reference failed.

  std::uint64_t calls() const { return calls_; }
  std::uint64_t failed() const { return failed_; }
  const std::map<std::string, Tally>& outputs() const { return outputs_; }

  /// The counters in Prometheus' text format.
  std::string prometheus() const {
    std::ostringstream text;
    text.precision(9);
    const auto head = [&text](const char* name, const char* kind, const char* words) {
      text << "# HELP assay_kernel_" << name << ' ' << words << "\n# TYPE assay_kernel_" << name << ' ' << kind << '\n';
    };
    const auto row = [&](const char* name, const std::string& output, double value) {
      text << "assay_kernel_" << name << "{instance=\"" << instance << '"';
      if (!output.empty()) text << ",output=\"" << output << '"';
      text << "} ";
      if (std::isinf(value)) {
        text << "+Inf\n";
      } else {
        text << value << '\n';
      }
    };
    head("calls_total", "counter", "Calls while watched.");
    row("calls_total", "", static_cast<double>(calls_));
    head("reference_failed_total", "counter", "References that failed.");
    row("reference_failed_total", "", static_cast<double>(failed_));
    const auto rows = [&](const char* name, const char* kind, const char* words, auto field) {
      head(name, kind, words);
      for (const auto& [output, tally] : outputs_) row(name, output, static_cast<double>(field(tally)));
    };
    rows("checked_total", "counter", "Calls that were checked.", [](const Tally& t) { return t.checked; });
    rows("exceeded_total", "counter", "Checked calls beyond their allowance.", [](const Tally& t) { return t.exceeded; });
    rows("allowance_use", "gauge", "Largest error, in allowances.", [](const Tally& t) { return t.worst; });
    rows("bias", "gauge", "Mean signed error, in allowances.", [](const Tally& t) { return t.bias; });
    rows("drift", "gauge", "Errors now over errors at first.", [](const Tally& t) { return t.drift(); });
    return text.str();
  }

  // What the kernel calls.

  bool due() {
    ++calls_;
    if (--left_ > 0) return false;
    left_ = wait();
    return true;
  }
  const Reference& reference() const { return reference_; }
  void fail(const std::string& why) {
    ++failed_;
    if (log) log(std::string(instance) + ": the reference of the watch failed: " + why);
  }
  void compare(const std::string& output, DType dtype, const std::vector<unsigned char>& got,
               const std::vector<unsigned char>& wanted) {
    const double roundoff = dtype == DType::f64 ? std::ldexp(1.0, -53)
                            : dtype == DType::f32 ? std::ldexp(1.0, -24)
                            : is_float(dtype)     ? std::ldexp(1.0, -1 - small_form(dtype).second)
                                                  : 0;
    const double usual = std::max(8 * roundoff, std::ldexp(1.0, -16));
    const std::size_t size = size_of(dtype);
    Check check{output, calls_, 0, 0, 0, got.size() / size};
    double squares = 0;
    for (std::size_t i = 0; i < check.elements; ++i) {
      const double value = decode(dtype, &wanted[i * size]);
      if (std::isfinite(value)) squares += value * value;
    }
    const double count = std::max(1.0, static_cast<double>(check.elements));
    const double scale = std::sqrt(squares / count);
    for (std::size_t i = 0; i < check.elements; ++i) {
      const double a = decode(dtype, &got[i * size]), b = decode(dtype, &wanted[i * size]);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      double allowance = (relative < 0 ? usual : relative) * std::fabs(b) + (absolute < 0 ? usual : absolute) * scale;
      if (!is_float(dtype)) allowance = 0;
      double use = (a - b) / (allowance + 1e-300);
      if (std::isnan(use)) use = std::numeric_limits<double>::infinity();
      check.worst = std::max(check.worst, std::fabs(use));
      check.exceeded += std::fabs(use) > 1 ? 1 : 0;
      check.bias += std::max(-1e6, std::min(use, 1e6)) / count;
    }
    outputs_[output].add(check);
    if (check.exceeded > 0 && log) {
      std::ostringstream line;
      line << instance << ": call " << check.call << ": " << output << ": " << check.exceeded << " of " << check.elements
           << " elements beyond their allowance, worst " << check.worst << ", bias " << check.bias;
      log(line.str());
    }
    if (on_check) on_check(check);
  }

 private:
  /// Calls until the next one that is checked: each one is, with probability `rate`.
  std::int64_t wait() {
    if (rate_ == 1) return 1;
    return 1 + static_cast<std::int64_t>(std::geometric_distribution<std::int64_t>(rate_)(random_));
  }

  Reference reference_;
  double rate_;
  std::mt19937_64 random_;
  std::int64_t left_ = 1;
  std::uint64_t calls_ = 0, failed_ = 0;
  std::map<std::string, Tally> outputs_;
};

// The kernel.

/// Refuses extents that the certificate does not cover. Not `strict`: all that the op allows, though nobody tried it.
inline void check_axes(const Axes& axes, bool strict = true) {
  const std::vector<std::int64_t> values = values_of(axes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Axis& axis = axis_table()[i];
    const auto said = [&](const std::string& covered) {
      return std::string(axis.name) + " is " + std::to_string(values[i]) + ", and " + covered;
    };
    if (values[i] < axis.low || values[i] > axis.high)
      throw Refused(said(std::string(instance) + " was vetted for " + std::to_string(axis.low) + " to " +
                         std::to_string(axis.high)),
                    std::string("split the call, or widen ") + axis.name + " in op.json and vet the kernel again");
    if (strict && values[i] > axis.tried())
      throw Refused(said("the judge ran " + std::to_string(axis.tried()) + " at most"),
                    "vet it with more effort (assay check ... --effort thorough), add a workload of that size to the "
                    "op, or take it unseen: strict = false");
  }
  for (const Constraint& constraint : constraints(axes)) {
    if (!constraint.holds)
      throw Refused(std::string("the op asks for ") + constraint.text, "use another shape");
  }
}

/// The limits of the hardware, as the judge holds them.
inline void check_plan(const Plan& plan) {
  for (const Launch& launch : plan.launches) {
    const auto within = [](const std::array<std::int64_t, 3>& extents, std::int64_t low,
                           const std::array<std::int64_t, 3>& limits) {
      for (std::size_t i = 0; i < 3; ++i) {
        if (extents[i] < low || extents[i] > limits[i]) return false;
      }
      return true;
    };
    bool fits = within(launch.grid, 0, {2147483647, 65535, 65535}) && within(launch.block, 1, {1024, 1024, 64}) &&
                within(launch.cluster, 1, {16, 16, 16}) &&
                launch.block[0] * launch.block[1] * launch.block[2] <= 1024 && launch.shared_bytes >= 0 &&
                launch.shared_bytes <= 228 * 1024;
    for (std::size_t i = 0; fits && i < 3; ++i) fits = launch.grid[i] % launch.cluster[i] == 0;
    if (!fits)
      throw Refused(std::string("the launch of ") + launch.symbol + " leaves the limits of the hardware", "split the call");
  }
}

/// One device's copy of the kernel. Made for the context that is current, and called in it. A call puts its work on a
/// stream and does not wait for it; calls may be made by several threads, but for a watched kernel.
///
///   Kernel kernel("vetted/softmax-T=f32-sm_90");
///   kernel({.x = {x, DType::f32, {rows, columns}}, .y = {y, DType::f32, {rows, columns}}}, stream);
class Kernel {
 public:
  /// `folder` holds the vetted kernel. Refuses another chip and changed files.
  explicit Kernel(const std::string& folder) {
    using driver::calls;
    using driver::check;
    context_ = current();
    int device = 0, major = 0, minor = 0;
    check(calls().cuCtxGetDevice(&device), "cuCtxGetDevice");
    check(calls().cuDeviceGetAttribute(&major, 75, device), "cuDeviceGetAttribute");
    check(calls().cuDeviceGetAttribute(&minor, 76, device), "cuDeviceGetAttribute");
    const std::string chip = "sm_" + std::to_string(major) + std::to_string(minor);
    std::string wanted = arch;
    while (wanted.back() >= 'a' && wanted.back() <= 'z') wanted.pop_back();
    if (chip != wanted)
      throw Refused(std::string(instance) + " was vetted for " + arch + ", and this chip is " + chip,
                    "vet it for this chip: assay check ... --arch " + chip + " --emit FOLDER");
    device_ = device;
    const std::string image = read(folder);
    check(calls().cuModuleLoadData(&module_, image.c_str()), "cuModuleLoadData");
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { driver::calls().cuModuleUnload(module_); }

  bool strict = true;            ///< False: all that the op allows, though nobody tried it.
  std::shared_ptr<Watch> watch;  ///< Null: calls are not checked.

  void operator()(const Call& call, void* stream = nullptr) {
    const Axes axes = solve(call);
    check_axes(axes, strict);
    const std::vector<Operand> operands = operands_of(call, axes);
    for (const Operand& operand : operands) check_operand(operand);
    check_overlaps(operands);
    const Plan plan = plan_of(axes);
    check_plan(plan);
    if (current() != context_)
      throw Refused("another context is current than when the kernel was loaded", "load a kernel for each context");
    run(plan, operands, stream);
    // What was changed in place is not there any more to be given to a reference.
    bool gone = false;
    for (const Operand& output : operands) {
      for (const Operand& input : operands)
        gone = gone || (input.tensor != nullptr && output.tensor != nullptr && in_place(output, input));
    }
    if (watch != nullptr && watch->due() && !gone && !captured(stream)) check_call(call, operands, stream);
  }

 private:
  struct Function {
    void* handle = nullptr;
    std::vector<std::size_t> sizes;  ///< Of its parameters.
    std::int64_t shared_bytes = 0;
  };

  static void* current() {
    void* context = nullptr;
    driver::check(driver::calls().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    if (context == nullptr)
      throw Refused("no CUDA context is current on this thread", "call cudaSetDevice or cuCtxSetCurrent first");
    return context;
  }

  /// Into a CUDA graph: then nothing has run that could be looked at, and to look would end the capture.
  static bool captured(void* stream) {
    int status = 0;
    return driver::calls().cuStreamIsCapturing(stream, &status) != 0 || status != 0;
  }

  static std::string read(const std::string& folder) {
    for (const auto& [name, digest] : images()) {
      std::ifstream file(folder + "/" + name, std::ios::binary);
      if (!file) continue;
      const std::string image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      if (sha256(image) != digest)
        throw Refused(folder + "/" + name + " is not the file that was vetted", "restore it from a copy");
      return image;
    }
    throw Refused(folder + " holds no machine code of " + instance, "name the vetted folder");
  }

  static std::size_t bytes_of(const std::vector<std::int64_t>& shape, DType dtype) {
    std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
    for (const std::int64_t extent : shape) {
      if (extent < 0) throw Refused("an extent is negative", "use another shape");
      bytes = multiply(bytes, extent);
    }
    if (bytes > std::int64_t{1} << 40) throw Refused("a tensor of more than a TiB", "split the call");
    return static_cast<std::size_t>(bytes);
  }

  static std::string text(const std::vector<std::int64_t>& shape) {
    std::string words;
    for (const std::int64_t extent : shape) words += (words.empty() ? "" : ", ") + std::to_string(extent);
    return "(" + words + ")";
  }

  void check_operand(const Operand& operand) const {
    if (operand.kind == Operand::Kind::scalar) return check_scalar(operand);
    if (operand.kind == Operand::Kind::axis) return;
    const Tensor& tensor = *operand.tensor;
    if (tensor.dtype != operand.dtype)
      throw Refused(operand.name + " is " + name_of(tensor.dtype) + ", and " + instance + " was vetted for " +
                        name_of(operand.dtype),
                    "convert it, or use a kernel vetted for that dtype");
    if (tensor.shape != operand.shape)
      throw Refused(operand.name + " is " + text(tensor.shape) + ", and must be (" + operand.shape_text + ") = " +
                        text(operand.shape),
                    "give tensors whose extents fit each other");
    std::int64_t packed = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0 && !tensor.strides.empty();) {
      if (tensor.strides.size() != tensor.shape.size() || (tensor.shape[i] != 1 && tensor.strides[i] != packed))
        throw Refused(operand.name + " has the strides " + text(tensor.strides) + ", and only packed tensors were vetted",
                      "make a packed copy");
      packed = multiply(packed, tensor.shape[i]);
    }
    const std::size_t bytes = bytes_of(operand.shape, operand.dtype);
    if (bytes == 0) return;
    const auto address = reinterpret_cast<driver::Address>(tensor.data);
    if (address % operand.align != 0)
      throw Refused(operand.name + " begins at an address that is no multiple of " + std::to_string(operand.align) + " bytes",
                    "make an aligned copy");
    std::uint32_t kind = 0;
    int device = 0;
    constexpr int kMemoryType = 2, kOrdinal = 9;
    constexpr std::uint32_t kDevice = 2;
    if (driver::calls().cuPointerGetAttribute(&kind, kMemoryType, address) != 0 || kind != kDevice)
      throw Refused(operand.name + " does not lie in the memory of a GPU", "copy it there");
    if (driver::calls().cuPointerGetAttribute(&device, kOrdinal, address) == 0 && device != device_)
      throw Refused(operand.name + " lies on GPU " + std::to_string(device) + ", and the kernel on GPU " +
                        std::to_string(device_),
                    "load a kernel for each GPU");
    driver::Address base = 0;
    std::size_t size = 0;
    if (driver::calls().cuMemGetAddressRange_v2(&base, &size, address) == 0 && address - base + bytes > size)
      throw Refused(operand.name + " needs " + std::to_string(bytes) + " bytes, and its memory ends before",
                    "give the shape that the memory has");
  }

  static void check_scalar(const Operand& operand) {
    const bool real = is_float(operand.dtype);
    const double value = real ? operand.number : static_cast<double>(operand.integer);
    const Domain& domain = operand.domain;
    bool fits = value >= domain.low && value <= domain.high;
    if (!domain.choices.empty()) {
      fits = false;
      for (const double choice : domain.choices) {
        Operand other = operand;
        other.number = choice;
        if (!real) other.integer = static_cast<std::int64_t>(choice);
        fits = fits || pack(other) == pack(operand);
      }
    }
    if (std::isnan(value)) fits = domain.allow_nan;
    if (std::isinf(value)) fits = domain.allow_infinity;
    if (!fits) {
      std::ostringstream words;
      words << operand.name << " is " << value << ", and " << instance << " was vetted for";
      for (const double choice : domain.choices) words << ' ' << choice;
      if (domain.choices.empty()) words << ' ' << domain.low << " to " << domain.high;
      throw Refused(words.str(), "use one of those, or widen the domain of " + operand.name + " in op.json and vet it again");
    }
  }

  /// An output that updates an input may lie where it lies.
  static bool in_place(const Operand& output, const Operand& input) {
    return !output.updates.empty() && output.updates == input.name && output.tensor->data == input.tensor->data;
  }

  static void check_overlaps(const std::vector<Operand>& operands) {
    using Kind = Operand::Kind;
    const auto range = [](const Operand& operand) {
      const auto first = reinterpret_cast<std::uintptr_t>(operand.tensor->data);
      return std::pair(first, first + bytes_of(operand.shape, operand.dtype));
    };
    for (const Operand& output : operands) {
      if (output.kind != Kind::output) continue;
      for (const Operand& other : operands) {
        if (&other == &output || other.tensor == nullptr || in_place(output, other)) continue;
        const auto a = range(output), b = range(other);
        if (a.first < b.second && b.first < a.second)
          throw Refused(output.name + " and " + other.name + " overlap", "give the output memory of its own");
      }
    }
  }

  Function& function(const char* symbol) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Function& found = functions_[symbol];
    if (found.handle != nullptr) return found;
    driver::check(driver::calls().cuModuleGetFunction(&found.handle, module_, symbol), "cuModuleGetFunction");
    std::size_t offset = 0, size = 0;
    while (driver::calls().cuFuncGetParamInfo(found.handle, found.sizes.size(), &offset, &size) == 0)
      found.sizes.push_back(size);
    return found;
  }

  void prepare(Function& function, const Launch& launch) {
    constexpr int kMaxDynamicShared = 8, kNonPortableCluster = 14;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (launch.shared_bytes > function.shared_bytes) {
      driver::check(driver::calls().cuFuncSetAttribute(function.handle, kMaxDynamicShared,
                                                       static_cast<int>(launch.shared_bytes)),
                    "cuFuncSetAttribute");
      function.shared_bytes = launch.shared_bytes;
    }
    if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 8)
      driver::check(driver::calls().cuFuncSetAttribute(function.handle, kNonPortableCluster, 1), "cuFuncSetAttribute");
  }

  static driver::MapImage encode(const TensorMap& map, driver::Address address) {
    std::vector<std::uint64_t> shape(map.shape.begin(), map.shape.end()), strides(map.strides.begin(), map.strides.end());
    const std::vector<std::uint32_t> box(map.box.begin(), map.box.end()), ones(map.box.size(), 1);
    std::uint64_t bytes = size_of(map.dtype);
    for (std::size_t d = 0; map.strides.empty() && d + 1 < shape.size(); ++d) strides.push_back(bytes *= shape[d]);
    int type = map.dtype == DType::f16    ? 6
               : map.dtype == DType::bf16 ? 9
               : map.dtype == DType::f32  ? 7
               : map.dtype == DType::f64  ? 8
               : map.dtype == DType::i32  ? 3
               : map.dtype == DType::i64  ? 5
               : size_of(map.dtype) == 1  ? 0
               : size_of(map.dtype) == 2  ? 1
               : size_of(map.dtype) == 4  ? 2
                                          : 4;
    driver::MapImage image;
    driver::check(driver::calls().cuTensorMapEncodeTiled(
                      &image, type, static_cast<std::uint32_t>(shape.size()), reinterpret_cast<void*>(address),
                      shape.data(), strides.data(), box.data(), ones.data(), 0, map.swizzle, 0, map.fill_nan ? 1 : 0),
                  "cuTensorMapEncodeTiled");
    return image;
  }

  void run(const Plan& plan, const std::vector<Operand>& operands, void* stream) {
    std::vector<std::unique_ptr<driver::Memory>> memories;
    std::map<std::string, driver::Address> addresses;
    for (const Operand& operand : operands) {
      if (operand.tensor != nullptr) addresses[operand.name] = reinterpret_cast<driver::Address>(operand.tensor->data);
    }
    for (const Operand& output : operands) {
      if (output.updates.empty()) continue;
      const driver::Address from = addresses.at(output.updates), to = addresses.at(output.name);
      const std::size_t bytes = bytes_of(output.shape, output.dtype);
      if (from != to && bytes > 0)
        driver::check(driver::calls().cuMemcpyDtoDAsync_v2(to, from, bytes, stream), "cuMemcpyDtoDAsync");
      addresses[output.updates] = to;
    }
    for (const Workspace& buffer : plan.workspace) {
      const std::size_t bytes = bytes_of(buffer.shape, buffer.dtype);
      memories.push_back(std::make_unique<driver::Memory>(bytes, stream));
      addresses[buffer.name] = memories.back()->address();
      if (buffer.zero && bytes > 0)
        driver::check(driver::calls().cuMemsetD8Async(memories.back()->address(), 0, bytes, stream), "cuMemsetD8Async");
    }
    for (const Launch& each : plan.launches) {
      // An empty grid is how a plan says that a kernel has nothing to do.
      if (each.grid[0] != 0 && each.grid[1] != 0 && each.grid[2] != 0) launch(each, plan, operands, addresses, stream);
    }
  }

  void launch(const Launch& launch, const Plan& plan, const std::vector<Operand>& operands,
              const std::map<std::string, driver::Address>& addresses, void* stream) {
    Function& called = function(launch.symbol);
    if (called.sizes.size() != launch.args.size())
      throw std::runtime_error(std::string(launch.symbol) + " takes another number of arguments");
    prepare(called, launch);
    std::vector<std::vector<unsigned char>> values(launch.args.size());
    std::vector<driver::MapImage> maps(launch.args.size());
    std::vector<void*> parameters;
    for (std::size_t i = 0; i < launch.args.size(); ++i) {
      const std::string& name = launch.args[i];
      const auto address = addresses.find(name);
      const auto operand = std::find_if(operands.begin(), operands.end(), [&](const Operand& o) { return o.name == name; });
      const auto map = std::find_if(plan.tensor_maps.begin(), plan.tensor_maps.end(),
                                    [&](const TensorMap& m) { return m.name == name; });
      if (address != addresses.end()) {
        values[i].resize(sizeof address->second);
        std::memcpy(values[i].data(), &address->second, sizeof address->second);
      } else if (operand != operands.end()) {
        values[i] = fit_scalar(*operand, called.sizes[i]);
      } else {
        maps[i] = encode(*map, addresses.at(map->tensor));
      }
      parameters.push_back(values[i].empty() ? static_cast<void*>(&maps[i]) : static_cast<void*>(values[i].data()));
    }
    driver::Config config;
    for (std::size_t i = 0; i < 3; ++i) {
      config.grid[i] = static_cast<std::uint32_t>(launch.grid[i]);
      config.block[i] = static_cast<std::uint32_t>(launch.block[i]);
    }
    config.shared_bytes = static_cast<std::uint32_t>(launch.shared_bytes);
    config.stream = stream;
    std::vector<driver::Attribute> attributes;
    if (launch.cooperative) {
      attributes.emplace_back();
      attributes.back().id = driver::Attribute::cooperative;
      attributes.back().value[0] = 1;
    }
    if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1) {
      attributes.emplace_back();
      attributes.back().id = driver::Attribute::cluster;
      for (std::size_t i = 0; i < 3; ++i) attributes.back().value[i] = static_cast<std::uint32_t>(launch.cluster[i]);
    }
    config.attributes = attributes.data();
    config.attribute_count = static_cast<std::uint32_t>(attributes.size());
    driver::check(driver::calls().cuLaunchKernelEx(&config, called.handle, parameters.data(), nullptr), "cuLaunchKernelEx");
  }

  void check_call(const Call& call, const std::vector<Operand>& operands, void* stream) {
    try {
      Call other = call;
      std::vector<std::unique_ptr<driver::Memory>> memories;
      std::map<std::string, std::pair<std::vector<unsigned char>, std::vector<unsigned char>>> both;
      for (const auto& [name, tensor] : outputs_of(other)) {
        const auto bytes = bytes_of(tensor->shape, tensor->dtype);
        both[name].first.resize(bytes);
        copy(both[name].first, reinterpret_cast<driver::Address>(tensor->data), stream);
        memories.push_back(std::make_unique<driver::Memory>(bytes, stream));
        tensor->data = reinterpret_cast<void*>(memories.back()->address());
      }
      watch->reference()(other, stream);
      for (const auto& [name, tensor] : outputs_of(other)) {
        both[name].second.resize(both[name].first.size());
        copy(both[name].second, reinterpret_cast<driver::Address>(tensor->data), stream);
      }
      driver::check(driver::calls().cuStreamSynchronize(stream), "cuStreamSynchronize");
      for (const Operand& operand : operands) {
        if (operand.kind == Operand::Kind::output)
          watch->compare(operand.name, operand.dtype, both[operand.name].first, both[operand.name].second);
      }
    } catch (const std::exception& error) {
      watch->fail(error.what());
    }
  }

  static void copy(std::vector<unsigned char>& to, driver::Address from, void* stream) {
    if (to.empty()) return;
    driver::check(driver::calls().cuMemcpyDtoHAsync_v2(to.data(), from, to.size(), stream), "cuMemcpyDtoHAsync");
  }

  void* context_ = nullptr;
  int device_ = 0;
  void* module_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, Function> functions_;
};

}  // namespace assay_kernels::scatter_add_T_bf16_sm_90

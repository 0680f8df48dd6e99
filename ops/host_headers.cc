#include "ops/host_headers.h"

namespace assay::ops {
namespace {

// The toolkit's headers, and many kernels, define macros of these names in words of their own (#47:
// incompatible redefinition): theirs count from there on, and that is no matter of the kernel's.
constexpr std::string_view kNames = R"(#pragma once
#pragma nv_diag_suppress 47
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed long long intptr_t;
typedef unsigned long long uintptr_t;
typedef unsigned int uint;
#define INT_MAX 0x7fffffff
#define UINT_MAX 0xffffffff
#define INT8_MAX 0x7f
#define INT16_MAX 0x7fff
#define INT32_MAX 0x7fffffff
#define INT64_MAX 0x7fffffffffffffffll
#define INT_MIN (-INT_MAX - 1)
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT8_MAX 0xff
#define UINT16_MAX 0xffff
#define UINT32_MAX 0xffffffffu
#define UINT64_MAX 0xffffffffffffffffull
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#define HUGE_VALF INFINITY
#define HUGE_VAL ((double)INFINITY)
#define M_PI 3.14159265358979323846
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
)";

// The toolkit's names where it has them: its headers define the same macros.
constexpr std::string_view kLimits = R"(#pragma once
#include <cuda/std/climits>
)";

// cuda/std/cfloat leaves these to the compiler, and NVRTC has none.
constexpr std::string_view kFloat = R"(#pragma once
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define FLT_MANT_DIG 24
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
)";

constexpr std::string_view kMath = R"(#pragma once
namespace std {
using ::abs;
using ::ceil;
using ::cos;
using ::erf;
using ::exp;
using ::exp2;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log2;
using ::max;
using ::min;
using ::pow;
using ::round;
using ::sin;
using ::sqrt;
using ::tanh;
using ::trunc;
}  // namespace std
)";

constexpr std::string_view kIntegers = R"(#pragma once
namespace std {
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
}  // namespace std
)";

std::string Forward(std::string_view name) {
  return "#pragma once\n#include <cuda/std/" + std::string(name) +
         ">\nnamespace std {\nusing namespace cuda::std;\n}\n";
}

}  // namespace

const std::map<std::string, std::string>& HostHeaders() {
  static const std::map<std::string, std::string> headers = [] {
    // Names of <float.h> and <limits.h> come by themselves, as nvcc has them.
    std::map<std::string, std::string> texts = {
        {std::string(kHostNames), std::string(kNames) + std::string(kFloat)}};
    for (const char* name : {"stdint.h", "cstdint"}) texts.emplace(name, kIntegers);
    for (const char* name : {"stddef.h", "cstddef"}) texts.emplace(name, "");
    for (const char* name : {"float.h", "cfloat"}) texts.emplace(name, kFloat);
    for (const char* name : {"limits.h", "climits"}) texts.emplace(name, kLimits);
    for (const char* name : {"math.h", "cmath"}) texts.emplace(name, kMath);
    for (const char* name : {"limits", "type_traits", "utility", "array"})
      texts.emplace(name, Forward(name));
    return texts;
  }();
  return headers;
}

}  // namespace assay::ops

// Coefficients of the special function unit (mufu.h), recovered from recordings of an H200.
//
// Each row is one segment of a function: value(x) = c0 + c1 * x + c2 * TruncatedSquare(x) for the
// segment's 17-bit offset x, in exact arithmetic. The chip holds them as fixed-point numbers of
// about 26, 16 and 10 bits; here they are doubles, and every sum is exact in double as well (no
// value needs more than 47 bits). mufu_rows.inc holds the integers, mufu_tables.cc their units.
#pragma once

namespace assay::emu {

struct alignas(32) Quadratic {
  double c0 = 0.0;
  double c1 = 0.0;
  double c2 = 0.0;
};

/// 128 rows, by the leading 7 bits of the mantissa.
extern const Quadratic* const kRcpTable;
/// 64 rows for [1, 2), then 64 for [2, 4), by the leading 6 bits of the mantissa.
extern const Quadratic* const kRsqrtTable;
extern const Quadratic* const kSqrtTable;
/// 64 rows, by the leading 6 bits of the fraction (ex2) or mantissa (lg2).
extern const Quadratic* const kExp2Table;
extern const Quadratic* const kLog2Table;
/// 64 rows, by the leading 6 bits of the fraction of a quarter turn.
extern const Quadratic* const kSinTable;
/// 16 rows for each of the 11 binades from [2^-8, 2^-7) to [4, 8), by the leading 4 bits of the
/// mantissa.
extern const Quadratic* const kTanhTable;

}  // namespace assay::emu

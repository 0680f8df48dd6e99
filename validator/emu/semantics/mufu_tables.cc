#include "validator/emu/semantics/mufu_tables.h"

namespace assay::emu {
namespace {

/// As recovered: integers, in the units of the function.
struct Row {
  int c0;
  int c1;
  int c2;
};
#include "validator/emu/semantics/mufu_rows.inc"

/// What one of the integers stands for. `rounding` is added to every c0: it makes truncation of
/// the sum round it.
struct Units {
  double c0;
  double rounding;
  double c1;
  double c2;
};
constexpr Units kRcpUnits{0x1p-26, 4046 * 0x1p-40, 0x1p-40, 0x1p-39};
constexpr Units kRsqrtUnits{0x1p-26, 16383 * 0x1p-40, 0x1p-40, 0x1p-38};
constexpr Units kSqrtUnits{0x1p-25, 32767 * 0x1p-40, 0x1p-40, 0x1p-39};
constexpr Units kExp2Units{0x1p-25, 12228 * 0x1p-39, 0x1p-38, 0x1p-38};
constexpr Units kLog2Units{0x1p-26, 837 * 0x1p-38, 0x1p-38, 0x1p-37};
constexpr Units kSinUnits{0x1p-25, 0.0, 0x1p-37, 0x1p-37};
constexpr Units kTanhUnits{0x1p-24, 0.0, 0x1p-39, 0x1p-38};

template <int kCount>
struct Rows {
  Quadratic rows[kCount];
};
template <int kCount>
constexpr Rows<kCount> InUnits(const Row (&integers)[kCount], const Units& units) {
  Rows<kCount> result{};
  for (int i = 0; i < kCount; ++i) {
    result.rows[i].c0 = integers[i].c0 * units.c0 + units.rounding;
    result.rows[i].c1 = integers[i].c1 * units.c1;
    result.rows[i].c2 = integers[i].c2 * units.c2;
  }
  return result;
}

constexpr Rows<128> kRcp = InUnits(kRcpRows, kRcpUnits);
constexpr Rows<128> kRsqrt = InUnits(kRsqrtRows, kRsqrtUnits);
constexpr Rows<128> kSqrt = InUnits(kSqrtRows, kSqrtUnits);
constexpr Rows<64> kExp2 = InUnits(kExp2Rows, kExp2Units);
constexpr Rows<64> kLog2 = InUnits(kLog2Rows, kLog2Units);
constexpr Rows<64> kSin = InUnits(kSinRows, kSinUnits);

/// A binade of tanh has 1 to 16 segments; the table repeats them to 16.
constexpr int kTanhSegments[11] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 16, 8};
constexpr Rows<176> RepeatedTanh() {
  const Rows<51> segments = InUnits(kTanhRows, kTanhUnits);
  Rows<176> result{};
  int first = 0;
  for (int binade = 0; binade < 11; ++binade) {
    const int count = kTanhSegments[binade];
    for (int i = 0; i < 16; ++i)
      result.rows[16 * binade + i] = segments.rows[first + i * count / 16];
    first += count;
  }
  return result;
}
constexpr Rows<176> kTanh = RepeatedTanh();

}  // namespace

const Quadratic* const kRcpTable = kRcp.rows;
const Quadratic* const kRsqrtTable = kRsqrt.rows;
const Quadratic* const kSqrtTable = kSqrt.rows;
const Quadratic* const kExp2Table = kExp2.rows;
const Quadratic* const kLog2Table = kLog2.rows;
const Quadratic* const kSinTable = kSin.rows;
const Quadratic* const kTanhTable = kTanh.rows;

}  // namespace assay::emu

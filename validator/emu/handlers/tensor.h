// The levelled part of TensorMultiply: everything but f16 accumulators.
#pragma once

#include "validator/emu/semantics/level.h"
#include "validator/emu/semantics/matrix.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

/// c and d are f32 values.
void TensorMultiplyLevel(const TensorProduct& product, const u32* a, const u32* b, const float* c,
                         float* d);

/// TensorMultiplyInteger, for elements of 8 bits or fewer.
void TensorMultiplyIntegerLevel(int m, int n, int k, bool saturate, const s32* a, const s32* b,
                                const s32* c, s32* d);
/// TensorMultiplyF64, rounding to nearest.
void TensorMultiplyF64Level(int m, int n, int k, const double* a, const double* b, const double* c,
                            double* d);

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL

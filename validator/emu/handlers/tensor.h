// The levelled part of TensorMultiply: everything but f16 accumulators.
#pragma once

#include "validator/emu/semantics/level.h"
#include "validator/emu/semantics/matrix.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

/// c and d are f32 values.
void TensorMultiplyLevel(const TensorProduct& product, const u32* a, const u32* b, const float* c,
                         float* d);

/// fma.rn.f64.
double FmaF64Level(double a, double b, double c);

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL

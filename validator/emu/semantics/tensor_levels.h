// The levelled functions that matrix.cc uses, of the best level that this processor has. Defined in
// rows.cc.
#pragma once

#include <cstdint>

#include "validator/emu/semantics/matrix.h"

namespace assay::emu {

void TensorMultiplyBest(const TensorProduct& product, const std::uint32_t* a,
                        const std::uint32_t* b, const float* c, float* d);
void TensorMultiplyIntegerBest(int m, int n, int k, bool saturate, const std::int32_t* a,
                               const std::int32_t* b, const std::int32_t* c, std::int32_t* d);
void TensorMultiplyF64Best(int m, int n, int k, const double* a, const double* b, const double* c,
                           double* d);

}  // namespace assay::emu

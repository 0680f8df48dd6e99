// The levelled functions that matrix.cc uses, of the best level that this processor has. Defined in
// rows.cc.
#pragma once

#include <cstdint>

#include "validator/emu/semantics/matrix.h"

namespace assay::emu {

void TensorMultiplyBest(const TensorProduct& product, const std::uint32_t* a,
                        const std::uint32_t* b, const float* c, float* d);
double FmaF64Best(double a, double b, double c);

}  // namespace assay::emu

#include "validator/engine/compiler.h"

#include "validator/ptx/facts/module_ids.h"

namespace assay::engine {

bool SameProgram(const CompiledKernel& a, const CompiledKernel& b) {
  return a.digest == b.digest || facts::WithoutModuleIds(a.ptx) == facts::WithoutModuleIds(b.ptx);
}

}  // namespace assay::engine

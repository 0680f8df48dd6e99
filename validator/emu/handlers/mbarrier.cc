// mbarrier (PTX ISA 9.7.13.15).
#include "validator/emu/handlers/rows.h"

namespace assay::emu {

std::span<const ResolverRow> MbarrierRows() { return {}; }

}  // namespace assay::emu

// The skeleton of a program: what of it decides where in global memory it writes, without what it writes there.
//
// A backward slice (Weiser 1981) from the addresses of stores, by data and by control (control.h): a loop that only adds
// up what is stored is gone, and a block that took millions of instructions takes a few hundred. It is a program like any
// other. Registers that are not needed have no definition left, so that what is stored from them is undefined, and an
// emulator that watches definedness sees whether some address or branch hangs on what was left out. Where it sees none,
// the stores are those of the whole program, provided that this ends and has no defect on the way: nothing is said
// of races, of accesses that were left out, or of waits for other blocks.
//
// Memory of the block is kept with all that is stored to it where an address or branch comes from it, object by object
// (origins.h); so are barriers then, and asynchronous copies. Values in global memory are kept where the
// same program reads them back to decide something. That is a choice by what is likely: where it was wrong, something
// is undefined.
//
// Cost: linear, but for deep nests of branches. Thread-safety: a pure function.
#pragma once

#include "validator/ptx/facts/facts.h"
#include "validator/ptx/module.h"

namespace assay::facts {

/// Of a verified module.
Skeleton SkeletonOf(const ptx::Module& module);

}  // namespace assay::facts

// Processor seconds that this process and all below it have taken, those that ended among them: what
// perf stat says at the end, at any time before it, and as true on a busy machine. Of a worker that was killed it knows
// once somebody has waited for it.
//
// Cost: a file of /proc for each process of the machine.
#pragma once

#include <sys/types.h>

namespace assay {

double ProcessorSecondsOfAll();

}  // namespace assay

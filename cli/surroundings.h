// The limits that this program was started under, and what it does about them.
//
// A shell, a container or a batch system may leave so little (open files, stack, threads, memory, file sizes) that work fails at any
// point. What may be raised is raised; what is then too low is refused before anything starts, by name and with the cure; and where
// something still runs out, on whichever thread, the program ends with a message and the exit code of the environment, never with a
// signal.
#pragma once

#include <exception>

#include "base/error.h"

namespace assay::cli {

/// At the beginning of main, before any thread: raises soft limits to what the hard ones allow, gives threads a stack of their own
/// size, and says why the program ends where nobody catches an exception.
void PrepareProcess();

/// Whether the stack is enough for any command.
Status CheckStack();

/// Whether what is limited leaves enough to judge kernels. Names every limit that does not.
Status CheckLimits();

/// What an exception means: memory or threads that ran out are the environment's fault, the rest is ours.
Error FromException(const std::exception& exception);

}  // namespace assay::cli

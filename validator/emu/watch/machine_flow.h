// Where what the machine chooses is used for more than its purpose: found when a module is loaded.
//
// Addresses and some special registers are chosen by the machine (machine.h). Marking every such
// register as undefined would send each address computation the slow way; so a static flow over the
// registers of a function, which looks at no order, says instead which of them may hold an address:
// what names a variable, what a pointer parameter or a load of a pointer gives, and what those moves,
// sums and selections give that keep an address an address. An instruction that uses such a register
// in any other way, or reads a special register that the machine chooses, is a *boundary*: its
// monitored handler is replaced by one that marks the chosen bits of its sources while it runs.
// All other instructions are as they were, so that kernels without boundaries pay nothing.
//
// Parameters and loads of 64 bits count as pointers only where they are used as addresses, or
// compared with what is; of all others, what they hold is marked in memory (PrepareLaunch, stores).
#pragma once

#include "validator/emu/program.h"

namespace assay::emu {

/// Finds the boundaries of all functions, once their handlers are known.
void MarkBoundaries(Program::Impl& impl);

/// Is the register's value the machine's choice, and none that a kernel may rely on?
bool IsChosenByMachine(ptx::SpecialRegister special);

}  // namespace assay::emu

#include "validator/emu/emulator.h"

#include <gtest/gtest.h>

TEST(Emu, Nothing) {}

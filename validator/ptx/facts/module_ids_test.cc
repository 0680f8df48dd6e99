#include "validator/ptx/facts/module_ids.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::facts {
namespace {

/// A module that names a variable of internal linkage, as NVRTC 13 does.
std::string Module(const std::string& hash, const std::string& number, const std::string& value) {
  const std::string id = "00000000_9_kernel_cu_" + hash + "_" + number;
  const std::string name = "_ZN" + std::to_string(10 + id.size()) + "_INTERNAL_" + id +
                           std::to_string(12 + id.size()) + "_GLOBAL__N__" + id + "5otherE";
  std::string bytes;
  for (const char c : name) bytes += std::to_string(int{c}) + ",";
  return ".global .align 4 .b8 " + name + "[16];\n.visible .entry f() { st.global.u32 [" + name +
         "], " + value + "; }\n\t.section\t.debug_str\n\t{\n.b8 " + bytes + "0\n\t}\n";
}

TEST(ModuleIds, ModulesThatDifferInThemAloneAreAlike) {
  const std::string one = Module("d2b035da", "585", "1");
  EXPECT_NE(one, Module("55c85e24", "5894", "1"));
  EXPECT_EQ(WithoutModuleIds(one), WithoutModuleIds(Module("55c85e24", "5894", "1")));
  EXPECT_NE(WithoutModuleIds(one), WithoutModuleIds(Module("d2b035da", "585", "2")));
}

TEST(ModuleIds, NothingElseIsTakenOff) {
  for (const std::string text :
       {"", "\n", ".section .text\n{\nabc\n}\n", "_INTERNAL_",
        "x_INTERNAL_0000000_1_a_deadbeef_1\n", "_GLOBAL__N__00000000_99_a_deadbeef_1",
        "_ZN3foo12_INTERNALS_E", "a\n\nb", "_INTERNAL_00000000_99999999999999999999_a_deadbeef_1"})
    EXPECT_EQ(WithoutModuleIds(text), text);
  EXPECT_EQ(WithoutModuleIds("a\n.section .debug_str {\nb\n"), "a\n");
}

}  // namespace
}  // namespace assay::facts

// How tests ask for the facts of a few instructions: they are put into an entry with a pointer and a
// number as its parameters, parsed, and what is known travels as JSON once.
//
//   const Facts facts = Kernel("ld.global.u32 %r2, [%d1];\nsetp.eq.s32 %p1, %r2, %r1;");
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "validator/ptx/facts/compute.h"
#include "validator/ptx/facts/facts.h"
#include "validator/ptx/parser.h"

namespace assay::facts {

inline constexpr std::string_view kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";
inline constexpr std::string_view kRegisters =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %d<19>; .reg .f32 %f<9>;\n";

/// Of a whole module.
inline Facts Of(const std::string& text) {
  const auto module = ptx::Parse(text, "test.ptx");
  if (!module) {
    ADD_FAILURE() << ToString(module.error()) << "\n" << text;
    return {};
  }
  Facts facts = FactsOf(*module, {});
  EXPECT_EQ(facts.fault, "") << text;
  // What travels is what was computed.
  const auto read = FactsFromJson(*ParseJson(CompactJson(ToJson(facts)), "facts"), "facts");
  if (!read)
    ADD_FAILURE() << ToString(read.error());
  else
    EXPECT_TRUE(*read == facts);
  return facts;
}

/// An entry k(x, n) with `body`, behind `globals`. x is in %d1, n in %r1.
inline Facts Kernel(const std::string& body, const std::string& globals = "",
                    const std::string& attributes = "") {
  return Of(std::string(kHead) + globals +
            ".visible .entry k(.param .u64 .ptr .align 1 k_x, .param .u32 k_n)" + attributes +
            "\n{\n" + std::string(kRegisters) +
            "ld.param.u64 %d1, [k_x];\nld.param.u32 %r1, [k_n];\n" + body + "\nret;\n}\n");
}

}  // namespace assay::facts

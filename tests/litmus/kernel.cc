#include "tests/litmus/kernel.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::litmus {
namespace {

using Kind = Instruction::Kind;

std::string_view NameOf(Order order) {
  constexpr std::string_view kNames[] = {"weak",    "volatile", "relaxed", "acquire",
                                         "release", "acq_rel",  "sc"};
  return kNames[static_cast<std::size_t>(order)];
}
std::string_view NameOf(Scope scope) {
  constexpr std::string_view kNames[] = {"cta", "gpu", "sys"};
  return kNames[static_cast<std::size_t>(scope)];
}

/// ".relaxed.gpu", ".volatile".
std::string Suffix(const Instruction& in) {
  if (in.order == Order::kWeak || in.order == Order::kVolatile)
    return fmt::format(".{}", NameOf(in.order));
  return fmt::format(".{}.{}", NameOf(in.order), NameOf(in.scope));
}

std::string Lowered(const Test& test, const Instruction& in) {
  const std::string space = test.shared ? "shared" : "global";
  const std::string address = fmt::format("[%l{}]", in.location);
  const std::string value =
      in.operand >= 0 ? fmt::format("%r{}", in.operand) : fmt::format("{}", in.value);
  switch (in.kind) {
    case Kind::kStore:
      return fmt::format("st{}.{}.u32 {}, {};", Suffix(in), space, address, value);
    case Kind::kLoad:
      return fmt::format("ld{}.{}.u32 %r{}, {};", Suffix(in), space, in.result, address);
    case Kind::kAdd:
      return fmt::format("atom{}.{}.add.u32 %r{}, {}, {};", Suffix(in), space, in.result, address,
                         value);
    case Kind::kExchange:
      return fmt::format("atom{}.{}.exch.b32 %r{}, {}, {};", Suffix(in), space, in.result, address,
                         value);
    case Kind::kReduce:
      return fmt::format("red{}.{}.add.u32 {}, {};", Suffix(in), space, address, value);
    case Kind::kFence:
      return fmt::format("fence.{}.{};", NameOf(in.order), NameOf(in.scope));
    case Kind::kBarrier:
      return "barrier.sync 0;";
  }
  return {};
}

std::size_t Barriers(const Test& test, std::uint32_t block) {
  std::size_t most = 0;
  for (const Thread& thread : test.threads) {
    if (thread.block != block) continue;
    most = std::max(most, static_cast<std::size_t>(
                              std::ranges::count(thread.code, Kind::kBarrier, &Instruction::kind)));
  }
  return most;
}

constexpr std::string_view kHead = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry litmus(
  .param .u64 memory, .param .u64 results, .param .u64 gate, .param .u64 scratch,
  .param .u32 instances, .param .u32 stride, .param .u32 spread, .param .u32 rounds)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b32 %w<16>;
  .reg .b64 %d<8>;
)";

constexpr std::string_view kTraffic = R"(TRAFFIC:
  ld.param.u64 %d1, [scratch];
  ld.param.u32 %w6, [rounds];
  mad.lo.u32 %w7, %w1, 7919, %w2;
MORE:
  setp.eq.u32 %p0, %w6, 0;
  @%p0 ret;
  mad.lo.u32 %w7, %w7, 1664525, 1013904223;
  and.b32 %w8, %w7, 0xffffc;
  cvt.u64.u32 %d2, %w8;
  add.u64 %d2, %d1, %d2;
  atom.relaxed.gpu.global.add.u32 %w9, [%d2], 1;
  ld.volatile.global.u32 %w9, [%d2+0];
  st.volatile.global.u32 [%d2], %w7;
  sub.u32 %w6, %w6, 1;
  bra MORE;
}
)";

}  // namespace

std::uint32_t RegisterCount(const Test& test) {
  int count = 0;
  for (const Thread& thread : test.threads) count += thread.registers;
  return static_cast<std::uint32_t>(count);
}

std::string KernelOf(const Test& test) {
  std::string text(kHead);
  const std::size_t locations = test.locations.size();
  text += fmt::format("  .reg .b64 %l<{}>;\n  .reg .b64 %g<{}>;\n", locations, locations);
  if (test.shared) text += fmt::format("  .shared .align 128 .b8 words[{}];\n", 128 * locations);
  text +=
      "  mov.u32 %w1, %ctaid.x;\n  mov.u32 %w2, %tid.x;\n  ld.param.u32 %w3, [instances];\n"
      "  div.u32 %w4, %w1, %w3;\n"  // The block's part, and its instance.
      "  rem.u32 %w5, %w1, %w3;\n";
  text += fmt::format("  setp.ge.u32 %p0, %w4, {};\n  @%p0 bra TRAFFIC;\n", test.blocks());
  text +=
      "  ld.param.u64 %d1, [memory];\n  ld.param.u32 %w6, [stride];\n"
      "  mul.wide.u32 %d2, %w5, %w6;\n  add.u64 %d1, %d1, %d2;\n  ld.param.u32 %w6, [spread];\n";
  for (std::size_t k = 0; k < locations; ++k) {
    text += fmt::format("  mul.wide.u32 %d2, %w6, {};\n  add.u64 %g{}, %d1, %d2;\n", k, k);
    text += test.shared
                ? fmt::format("  mov.u64 %d2, words;\n  add.u64 %l{}, %d2, {};\n", k, 128 * k)
                : fmt::format("  mov.u64 %l{}, %g{};\n", k, k);
  }
  if (test.shared) {
    text += "  setp.ne.u32 %p0, %w2, 0;\n  @%p0 bra READY;\n";
    for (std::size_t k = 0; k < locations; ++k)
      text += fmt::format("  st.shared.u32 [%l{}], 0;\n", k);
    text += "READY:\n  barrier.sync 0;\n";
  }
  text += fmt::format(
      "  ld.param.u64 %d3, [results];\n  mul.lo.u32 %w6, %w5, {};\n  mul.wide.u32 %d4, %w6, 4;\n"
      "  add.u64 %d3, %d3, %d4;\n",
      RegisterCount(test));
  for (std::size_t t = 0; t < test.threads.size(); ++t) {
    text += fmt::format(
        "  setp.eq.u32 %p0, %w4, {};\n  setp.eq.and.u32 %p1, %w2, {}, %p0;\n  @%p1 bra THREAD{};\n",
        test.threads[t].block, test.threads[t].thread, t);
  }
  // All others keep the test's threads company at barriers.
  for (std::uint32_t block = 0; block < test.blocks(); ++block) {
    if (Barriers(test, block) == 0) continue;
    text += fmt::format("  setp.ne.u32 %p0, %w4, {};\n  @%p0 bra AFTER{};\n", block, block);
    for (std::size_t i = 0; i < Barriers(test, block); ++i) text += "  barrier.sync 0;\n";
    text += fmt::format("AFTER{}:\n", block);
  }
  text += "  bra DONE;\n";

  std::size_t first = 0;
  for (std::size_t t = 0; t < test.threads.size(); ++t) {
    const Thread& thread = test.threads[t];
    text += fmt::format(
        "THREAD{0}:\n  ld.param.u64 %d5, [gate];\n  setp.eq.u64 %p0, %d5, 0;\n"
        "  @%p0 bra START{0};\n  mul.wide.u32 %d6, %w5, 4;\n  add.u64 %d5, %d5, %d6;\n"
        "  red.relaxed.gpu.global.add.u32 [%d5], 1;\n  mov.u32 %w6, 0;\nWAIT{0}:\n"
        "  ld.relaxed.gpu.global.u32 %w7, [%d5];\n  add.u32 %w6, %w6, 1;\n"
        "  setp.lt.u32 %p0, %w7, {1};\n  setp.lt.and.u32 %p0, %w6, 4096, %p0;\n"
        "  @%p0 bra WAIT{0};\nSTART{0}:\n",
        t, test.threads.size());
    for (const Instruction& in : thread.code) text += "  " + Lowered(test, in) + "\n";
    for (int r = 0; r < thread.registers; ++r) {
      text += fmt::format("  st.global.u32 [%d3+{}], %r{};\n",
                          4 * (first + static_cast<std::size_t>(r)), r);
    }
    text += "  bra DONE;\n";
    first += static_cast<std::size_t>(thread.registers);
  }
  text += "DONE:\n";
  if (test.shared) {
    text += "  barrier.sync 0;\n  setp.ne.u32 %p0, %w2, 0;\n  @%p0 ret;\n";
    for (std::size_t k = 0; k < locations; ++k)
      text += fmt::format("  ld.shared.u32 %w6, [%l{}];\n  st.global.u32 [%g{}], %w6;\n", k, k);
  }
  return text + "  ret;\n" + std::string(kTraffic);
}

Outcome OutcomeOf(const Test& test, std::span<const std::uint32_t> registers,
                  std::span<const std::uint32_t> memory, std::uint32_t spread) {
  Outcome outcome;
  std::size_t next = 0;
  for (std::size_t t = 0; t < test.threads.size(); ++t) {
    for (int r = 0; r < test.threads[t].registers; ++r)
      outcome[fmt::format("{}:r{}", t, r)] = registers[next++];
  }
  for (std::size_t k = 0; k < test.locations.size(); ++k)
    outcome[test.locations[k]] = memory[k * spread / 4];
  return outcome;
}

}  // namespace assay::litmus

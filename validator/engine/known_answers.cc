#include "validator/engine/known_answers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "base/rng.h"

namespace assay::engine {
namespace {

constexpr std::int64_t kElements = 40;  // More than a warp, and not a multiple of one.

// y[i] = 3 x[i] for 40 elements by 64 threads; the wrong ones differ in one place.
constexpr std::string_view kProgram = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry right(.param .u64 x, .param .u64 y)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 40; @%p1 bra DONE;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4]; mul.lo.u32 %r3, %r2, 3; st.global.u32 [%rd5], %r3;
DONE: ret;
}
.visible .entry beyond(.param .u64 x, .param .u64 y)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 40; @%p1 bra DONE;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4]; mul.lo.u32 %r3, %r2, 3; st.global.u32 [%rd5], %r3;
DONE: ret;
}
.visible .entry racing(.param .u64 x, .param .u64 y)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 40; @%p1 bra DONE;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4]; mul.lo.u32 %r3, %r2, 3; st.global.u32 [%rd5], %r3;
  st.global.u32 [%rd2], %r3;
DONE: ret;
}
.visible .entry short(.param .u64 x, .param .u64 y)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 39; @%p1 bra DONE;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4]; mul.lo.u32 %r3, %r2, 3; st.global.u32 [%rd5], %r3;
DONE: ret;
}
)";

struct Answer {
  std::string_view entry;
  /// What must be found; one of several words for it. None: nothing may be found.
  std::array<FindingKind, 2> any_of;
  bool clean = false;
};
constexpr std::array kAnswers = {
    Answer{"right", {}, true},
    Answer{"beyond", {FindingKind::kOutOfBounds, FindingKind::kOutOfBounds}},
    Answer{"racing", {FindingKind::kDataRace, FindingKind::kSameValueRace}},
    Answer{"short", {FindingKind::kUnwrittenOutput, FindingKind::kUnwrittenOutput}},
};

Execution ExecutionOf(std::string_view entry) {
  Execution execution;
  execution.ptx = std::string(kProgram);
  execution.buffers = {{.name = "x", .dtype = DType::kI32, .elements = kElements},
                       {.name = "y",
                        .dtype = DType::kI32,
                        .elements = kElements,
                        .role = BufferRole::kOutput,
                        .fill = BufferFill::kUninitialised}};
  Launch launch;
  launch.entry = std::string(entry);
  launch.block = {64, 1, 1};
  for (std::uint32_t buffer = 0; buffer < 2; ++buffer) {
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.name = execution.buffers[buffer].name;
    argument.buffer = buffer;
    launch.args.push_back(std::move(argument));
  }
  execution.launches = {std::move(launch)};
  execution.limits.max_steps = 1'000'000;
  return execution;
}

std::unexpected<Error> Wrong(std::string_view entry, std::string what) {
  return Fail(ErrorKind::kInternal,
              "the engine gave a wrong answer to a known question (" + std::string(entry) +
                  "): " + std::move(what) + "; nothing that it says can be believed",
              "known answers", "reinstall assay; if it comes again, report it");
}

Status Ask(Engine& engine, const Answer& answer, Trust trust,
           std::span<const std::uint32_t> values) {
  const Execution execution = ExecutionOf(answer.entry);
  ASSAY_TRY(SharedMemory x, SharedMemory::Create(kElements * sizeof(std::uint32_t)));
  ASSAY_TRY(SharedMemory y, SharedMemory::Create(kElements * sizeof(std::uint32_t)));
  std::memcpy(x.bytes().data(), values.data(), x.size());
  const std::array<SharedMemory*, 2> buffers = {&x, &y};
  ASSAY_TRY(const Report report, engine.Run(execution, buffers, trust));
  const auto found = [&](FindingKind kind) {
    if (kind == FindingKind::kUnwrittenOutput && report.stop == Stop::kCompleted &&
        report.unwritten_bytes.size() == 2 && report.unwritten_bytes[1] == 4)
      return true;
    return std::ranges::any_of(report.findings,
                               [&](const Finding& finding) { return finding.kind == kind; });
  };
  if (!answer.clean) {
    if (std::ranges::any_of(answer.any_of, found)) return {};
    return Wrong(answer.entry, report.findings.empty()
                                   ? "it found nothing (" + std::string(Name(report.stop)) + ")"
                                   : "it found something else: " + report.findings[0].message);
  }
  if (report.stop != Stop::kCompleted) return Wrong(answer.entry, "it stopped: " + report.reason);
  if (!report.findings.empty()) return Wrong(answer.entry, report.findings[0].message);
  if (report.counters.steps == 0) return Wrong(answer.entry, "it counted no instruction");
  if (report.unwritten_bytes != std::vector<std::uint64_t>{0, 0})
    return Wrong(answer.entry, "it says that the output is not written");
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t got = 0;
    std::memcpy(&got, y.bytes().data() + i * sizeof got, sizeof got);
    if (got != 3 * values[i]) return Wrong(answer.entry, "a result is wrong");
  }
  return {};
}

}  // namespace

Status CheckKnownAnswers(Engine& engine, std::uint64_t seed) {
  Rng rng(DeriveSeed(seed, "known answers"));
  std::array<std::uint32_t, kElements> values;
  for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(rng.Next());
  for (const Answer& answer : kAnswers)
    ASSAY_TRY_VOID(Ask(engine, answer, Trust::kCandidate, values));
  // Truths come from other processes.
  return Ask(engine, kAnswers[0], Trust::kReference, values);
}

}  // namespace assay::engine

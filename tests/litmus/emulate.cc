#include "tests/litmus/emulate.h"

#include <cstring>

#include "tests/litmus/kernel.h"

namespace assay::litmus {
namespace {

constexpr std::uint32_t kSpread = 512;

Argument Scalar(const std::string& name, DType dtype, std::uint64_t value, std::size_t bytes) {
  Argument argument;
  argument.name = name;
  argument.dtype = dtype;
  argument.bytes.resize(bytes);
  std::memcpy(argument.bytes.data(), &value, bytes);
  return argument;
}

Argument Pointer(const std::string& name, std::uint32_t buffer) {
  Argument argument;
  argument.kind = Argument::Kind::kBuffer;
  argument.name = name;
  argument.buffer = buffer;
  return argument;
}

BufferSpec Words(const std::string& name, std::size_t words) {
  BufferSpec spec;
  spec.name = name;
  spec.dtype = DType::kI32;
  spec.elements = static_cast<std::int64_t>(words);
  spec.role = BufferRole::kWorkspace;
  spec.fill = BufferFill::kZero;
  return spec;
}

}  // namespace

Emulated Emulate(const Test& test, int seeds, const Outcome* until) {
  Emulated result;
  auto program = emu::Program::Load(KernelOf(test));
  if (!program) {
    result.failure = ToString(program.error());
    return result;
  }
  std::vector<std::uint32_t> memory(test.locations.size() * kSpread / 4);
  std::vector<std::uint32_t> registers(std::max<std::size_t>(1, RegisterCount(test)));
  Execution execution;
  execution.buffers = {Words("memory", memory.size()), Words("results", registers.size())};
  Launch launch;
  launch.entry = "litmus";
  launch.grid = {test.blocks(), 1, 1};
  launch.block = {test.block_threads(), 1, 1};
  launch.args = {Pointer("memory", 0),
                 Pointer("results", 1),
                 Scalar("gate", DType::kI64, 0, 8),
                 Scalar("scratch", DType::kI64, 0, 8),
                 Scalar("instances", DType::kI32, 1, 4),
                 Scalar("stride", DType::kI32, 4 * memory.size(), 4),
                 Scalar("spread", DType::kI32, kSpread, 4),
                 Scalar("rounds", DType::kI32, 0, 4)};
  execution.launches = {launch};
  constexpr Schedule::Policy kPolicies[] = {
      Schedule::Policy::kPermuted, Schedule::Policy::kPriorities, Schedule::Policy::kReversed,
      Schedule::Policy::kSequential};
  constexpr std::uint32_t kStale[] = {50, 100, 25};
  for (int seed = 0; seed < seeds; ++seed) {
    const auto n = static_cast<std::size_t>(seed);
    execution.schedule = {.policy = kPolicies[n % std::size(kPolicies)],
                          .seed = n,
                          .stale = kStale[n / std::size(kPolicies) % std::size(kStale)]};
    const std::vector<std::span<std::byte>> spans = {std::as_writable_bytes(std::span(memory)),
                                                     std::as_writable_bytes(std::span(registers))};
    const Report report = emu::Run(**program, execution, spans);
    ++result.runs;
    for (const Finding& finding : report.findings) {
      result.raced = result.raced || FamilyOf(finding.kind) == "race";
      if (FamilyOf(finding.kind) != "race") result.failure = finding.message;
    }
    if (report.stop != Stop::kCompleted) {
      result.failure = std::string(Name(report.stop)) + " " + report.reason;
      return result;
    }
    result.outcomes.insert(OutcomeOf(test, registers, memory, kSpread));
    if (until != nullptr && Matches(OutcomeOf(test, registers, memory, kSpread), *until)) break;
  }
  return result;
}

}  // namespace assay::litmus

// The emulator under anything: any text as PTX, and programs that were changed a little under launches of all kinds.
#include <algorithm>
#include <array>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "fuzz/target.h"
#include "validator/emu/emulator.h"
#include "validator/execution/execution.h"
#include "validator/ptx/facts/compute.h"
#include "validator/ptx/facts/skeleton.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier.h"

namespace assay::fuzz {
namespace {

constexpr std::string_view kPlace = "fuzz.ptx:";

/// Inputs without a header get one, so that most mutations reach past it. Of a golden file the input is taken.
std::string Prepared(std::string_view text) {
  constexpr std::string_view kInput = ";;; input\n";
  constexpr std::string_view kOutput = ";;; output\n";
  if (const std::size_t start = text.find(kInput); start != std::string_view::npos) {
    text.remove_prefix(start + kInput.size());
    text = text.substr(0, text.find(kOutput));
  }
  if (text.starts_with('.') || text.starts_with('/')) return std::string(text);
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + std::string(text);
}

/// Choices made from an input's bytes, in order; zeros when they are used up.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t Below(std::uint64_t bound) {
    if (bound <= 1) return 0;
    std::uint64_t value = 0;
    for (std::uint64_t most = bound - 1; most > 0; most >>= 8) value = value << 8 | Byte();
    return value % bound;
  }
  bool OneIn(std::uint64_t n) {
    return Below(n) == 1;
  }  // not 0: inputs that have ended choose the plain way
  std::uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  template <class T, std::size_t n>
  T Of(const std::array<T, n>& values) {
    return values[Below(n)];
  }

 private:
  std::string_view bytes_;
};

struct Module {
  std::vector<std::string> lines;
  std::vector<std::size_t> instructions;  ///< Lines that end in a semicolon and stand in a body.
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>>
      entries;  ///< With the sizes of their parameters.
};

Module ReadModule(const Path& file) {
  const auto text = ReadFile(file);
  ASSAY_CHECK(text.has_value(), file.string());
  const auto parsed = ptx::Parse(*text, file.string());
  ASSAY_CHECK(parsed.has_value(), file.string());
  Module module;
  for (const ptx::Function& function : parsed->functions) {
    if (!function.is_entry) continue;
    auto& entry = module.entries.emplace_back(function.name, std::vector<std::uint64_t>{});
    for (const ptx::Variable& parameter : function.params) entry.second.push_back(parameter.bytes);
  }
  for (const std::string_view line : SplitLines(*text)) {
    const std::string_view stripped = Strip(line);
    if (line.starts_with('\t') && stripped.ends_with(';') && !stripped.starts_with('.'))
      module.instructions.push_back(module.lines.size());
    module.lines.emplace_back(line);
  }
  return module;
}

const std::vector<Module>& Modules() {
  static const std::vector<Module> modules = [] {
    std::vector<Path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(Path(ASSAY_SOURCE_DIR) / "validator/emu/testdata")) {
      if (entry.path().extension() == ".ptx") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    std::vector<Module> read;
    for (const Path& file : files) read.push_back(ReadModule(file));
    return read;
  }();
  return modules;
}

/// Another number in place of one of the line's.
void ChangeNumber(std::string& line, Choices& choices) {
  constexpr std::array<std::string_view, 12> kNumbers{
      "0", "1", "2", "3", "4", "7", "31", "32", "64", "-1", "65536", "2147483647"};
  const std::size_t from = choices.Below(line.size());
  const std::size_t at = line.find_first_of("0123456789", from);
  if (at == std::string::npos) return;
  const std::size_t end = std::min(line.find_first_not_of("0123456789", at), line.size());
  line.replace(at, end - at, choices.Of(kNumbers));
}

/// The module's text with a few instructions changed: repeated, moved, dropped, or with another register or number.
std::string Changed(const Module& module, Choices& choices) {
  std::vector<std::string> lines = module.lines;
  const std::size_t changes = module.instructions.empty() ? 0 : choices.Below(5);
  for (std::size_t i = 0; i < changes; ++i) {
    const auto any = [&] { return module.instructions[choices.Below(module.instructions.size())]; };
    std::string& line = lines[any()];
    switch (choices.Below(4)) {
      case 0:
        line += "\n" + lines[any()];
        break;
      case 1:
        std::swap(line, lines[any()]);
        break;
      case 2:
        line.clear();
        break;
      default:
        ChangeNumber(line, choices);
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Dim3 Extents(Choices& choices, bool block) {
  constexpr std::array<std::uint32_t, 12> kGrid{1,  2, 3,     4,     7,          8,
                                                33, 0, 65535, 65536, 2147483647, 4294967295};
  constexpr std::array<std::uint32_t, 12> kBlock{32,  64,  1,    2,    31, 33,
                                                 128, 256, 1024, 1025, 0,  65536};
  const auto one = [&] { return choices.OneIn(4) ? choices.Of(block ? kBlock : kGrid) : 1; };
  const std::uint32_t x = choices.Of(block ? kBlock : kGrid);
  const std::uint32_t y = one();
  return Dim3{x, y, one()};
}

std::uint64_t SharedBytes(Choices& choices) {
  constexpr std::array<std::uint64_t, 9> kBytes{
      0, 16, 1024, 4096, 48u << 10, 227u << 10, (227u << 10) + 1, 1ull << 40, UINT64_MAX};
  return choices.Of(kBytes);
}

Argument AnArgument(Choices& choices, std::uint64_t bytes, std::uint64_t buffers) {
  Argument argument;
  argument.name = "a";
  const std::uint64_t kind = choices.OneIn(8) ? choices.Below(3)
                             : bytes == 8     ? 0
                             : bytes == 128   ? 2
                                              : 1;
  argument.buffer =
      static_cast<std::uint32_t>(choices.OneIn(16) ? choices.Byte() : choices.Below(buffers));
  if (kind == 0) {
    argument.kind = Argument::Kind::kBuffer;
  } else if (kind == 1) {
    constexpr std::array<std::int64_t, 8> kValues{7, 1, 0, 32, 1000, -1, INT32_MAX, INT64_MIN};
    const std::int64_t value = choices.Of(kValues);
    argument.dtype = bytes == 8 ? DType::kI64 : DType::kI32;
    argument.bytes.resize(choices.OneIn(16) ? choices.Below(16) : SizeOf(argument.dtype));
    for (std::size_t i = 0; i < std::min<std::size_t>(argument.bytes.size(), sizeof value); ++i)
      argument.bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  } else {
    argument.kind = Argument::Kind::kTensorMap;
    constexpr std::array<std::uint64_t, 6> kExtents{16, 1, 8, 1024, 0, 1ull << 40};
    const std::size_t rank = choices.Below(7);
    for (std::size_t i = 0; i < rank; ++i) {
      argument.map.shape.push_back(choices.Of(kExtents));
      argument.map.box.push_back(static_cast<std::uint32_t>(choices.Of(kExtents)));
      if (i > 0) argument.map.strides.push_back(16 * choices.Of(kExtents));
    }
    argument.map.swizzle = static_cast<std::uint8_t>(choices.Below(5));
  }
  return argument;
}

Launch ALaunch(Choices& choices, const Module& module, std::uint64_t buffers) {
  Launch launch;
  const auto& [name, sizes] = module.entries[choices.Below(module.entries.size())];
  launch.entry = choices.OneIn(32) ? "nobody" : name;
  launch.grid = Extents(choices, false);
  launch.block = Extents(choices, true);
  if (choices.OneIn(4)) {
    constexpr std::array<std::uint32_t, 6> kCluster{2, 1, 4, 8, 16, 0};
    launch.cluster = {choices.Of(kCluster), choices.OneIn(4) ? choices.Of(kCluster) : 1, 1};
  }
  launch.shared_bytes = SharedBytes(choices);
  launch.cooperative = choices.OneIn(6);
  for (const std::uint64_t bytes : sizes) {
    if (!choices.OneIn(32)) launch.args.push_back(AnArgument(choices, bytes, buffers));
  }
  for (std::uint64_t i = choices.OneIn(3) ? choices.Below(4) : 0; i > 0; --i) {
    constexpr std::array<std::uint64_t, 7> kBlocks{0, 1, 2, 32, 65535, 1ull << 31, UINT64_MAX};
    launch.only.push_back({choices.Of(kBlocks), choices.Of(kBlocks)});
  }
  if (choices.OneIn(6))
    launch.fresh.push_back(static_cast<std::uint32_t>(choices.Below(buffers + 1)));
  return launch;
}

BufferSpec ABuffer(Choices& choices, std::size_t index) {
  constexpr std::array<DType, 8> kTypes{DType::kF32, DType::kI32, DType::kF16, DType::kBF16,
                                        DType::kF64, DType::kI64, DType::kU8,  DType::kBool};
  constexpr std::array<std::int64_t, 8> kElements{256, 64, 1, 0, 7, 1000, 4096, 33};
  BufferSpec buffer;
  buffer.name = "b" + std::to_string(index);
  buffer.dtype = choices.OneIn(3) ? choices.Of(kTypes) : DType::kF32;
  buffer.elements = choices.Of(kElements);
  buffer.role = static_cast<BufferRole>(choices.OneIn(3) ? choices.Below(3) : 1);
  buffer.fill = static_cast<BufferFill>(choices.Below(3));
  buffer.poison = choices.Byte();
  buffer.misalign = static_cast<std::uint32_t>(choices.OneIn(8) ? choices.Byte() : 0);
  if (index > 0 && choices.OneIn(8))
    buffer.reuse = BufferReuse{static_cast<std::uint32_t>(choices.Below(index + 1)),
                               static_cast<std::uint32_t>(choices.Below(4))};
  return buffer;
}

Execution AnExecution(Choices& choices, const Module& module) {
  constexpr std::array<std::string_view, 4> kTargets{"sm_90", "sm_80", "sm_100", "sm_1"};
  Execution execution;
  const std::uint64_t buffers = 1 + choices.Below(6);
  for (std::size_t i = 0; i < buffers; ++i) execution.buffers.push_back(ABuffer(choices, i));
  for (std::uint64_t i = choices.OneIn(4) ? 1 + choices.Below(3) : 1; i > 0; --i)
    execution.launches.push_back(ALaunch(choices, module, buffers));
  execution.checks = {.initialisation = !choices.OneIn(4),
                      .race = !choices.OneIn(4),
                      .barrier = !choices.OneIn(4),
                      .coverage = choices.OneIn(4),
                      .order = choices.OneIn(4),
                      .shadow_values = choices.OneIn(6)};
  execution.focus = {static_cast<std::uint32_t>(choices.Below(buffers)), 0,
                     static_cast<std::int64_t>(choices.Below(64)), choices.OneIn(2)};
  execution.schedule.policy = static_cast<Schedule::Policy>(choices.Below(4));
  execution.schedule.seed = choices.Byte();
  execution.schedule.stale = static_cast<std::uint32_t>(choices.OneIn(4) ? choices.Below(101) : 0);
  if (choices.OneIn(6))
    execution.schedule.hold =
        OrderPair{0, choices.Byte(), choices.Byte(), choices.Byte(), choices.Byte()};
  execution.perturbation_seed = choices.OneIn(4) ? choices.Byte() : 0;
  execution.target_sm = choices.Of(kTargets);
  execution.limits.max_steps = 20'000;
  execution.limits.max_memory_bytes = 64u << 20;
  execution.limits.max_findings = 8;
  return execution;
}

}  // namespace

/// Parsing and verification give a module or an error that names its line; what is accepted is printed and parsed again to the same
/// module, facts are found of it, and the emulator decodes it or refuses it with a line.
void Ptx(std::string_view input) {
  const std::string text = Prepared(input);
  const auto module = ptx::Parse(text, "fuzz.ptx");
  if (!module) {
    ASSAY_CHECK(module.error().place.starts_with(kPlace), module.error().place);
    ASSAY_CHECK(!module.error().message.empty());
    return;
  }
  const facts::Facts facts = facts::FactsOf(*module, {});
  CheckRoundTrip(facts, facts::FactsFromJson);
  const Status verified = ptx::Verify(*module, "fuzz.ptx");
  if (!verified) {
    ASSAY_CHECK(verified.error().place.starts_with(kPlace), verified.error().place);
    return;
  }
  if (const std::string skeleton = facts::SkeletonOf(*module).ptx; !skeleton.empty()) {
    const auto cut = ptx::Parse(skeleton, "skeleton.ptx");
    ASSAY_CHECK(cut && ptx::Verify(*cut), skeleton);
  }
  const std::string printed = ptx::Print(*module);
  const auto again = ptx::Parse(printed, "printed.ptx");
  ASSAY_CHECK(again.has_value(), again ? std::string() : ToString(again.error()) + "\n" + printed);
  ASSAY_CHECK(*again == *module, "printed as:\n" + printed);
  ASSAY_CHECK(ptx::Verify(*again).has_value(), printed);
  const auto program = emu::Program::Load(text);
  ASSAY_CHECK(program || program.error().place.find(".ptx:") != std::string::npos,
              program ? std::string() : ToString(program.error()));
}

/// As the emulate worker serves a request: read, loaded, run, reported.
void Requests(std::string_view input) {
  Choices choices(input);
  const Module& module = Modules()[choices.Below(Modules().size())];
  const Execution made = AnExecution(choices, module);
  const auto program = emu::Program::Load(Changed(module, choices));
  if (!program) {
    ASSAY_CHECK(!program.error().message.empty());
    return;
  }
  const auto execution = ExecutionFromJson(ToJson(made));
  if (!execution) {
    ASSAY_CHECK(!execution.error().message.empty());
    return;
  }
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::span<std::byte>> buffers;
  for (const BufferSpec& buffer : execution->buffers)
    storage.emplace_back(SizeOf(buffer.dtype) * static_cast<std::size_t>(buffer.elements),
                         std::byte{1});
  for (std::vector<std::byte>& memory : storage) buffers.emplace_back(memory);
  const ::assay::Report report = emu::Run(**program, *execution, buffers);
  // A round of all warps of a cluster is counted before the limit is looked at.
  ASSAY_CHECK(report.counters.steps <= 200'000, std::to_string(report.counters.steps));
  ASSAY_CHECK(report.stop != Stop::kFault || !report.findings.empty() || !report.reason.empty());
  ASSAY_CHECK(report.findings.size() <= 8);
  if (report.stop == Stop::kCompleted)
    ASSAY_CHECK(report.unwritten_bytes.size() == buffers.size() &&
                report.first_unwritten.size() == buffers.size());
  const auto read = ReportFromJson(ToJson(report));
  ASSAY_CHECK(read.has_value(), read ? std::string() : ToString(read.error()));
  // The same request gives the same answer.
  for (std::vector<std::byte>& memory : storage) std::ranges::fill(memory, std::byte{1});
  ASSAY_CHECK(CompactJson(ToJson(emu::Run(**program, *execution, buffers))) ==
              CompactJson(ToJson(report)));
}

}  // namespace assay::fuzz

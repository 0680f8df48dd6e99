#include "validator/campaign/parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "base/rng.h"
#include "validator/cases/profiles.h"

namespace assay::campaign {
bool NeedsZerosBetween(const ops::OpSpec& op) { return op.generator.has_value() || Overwrites(op); }

bool Overwrites(const ops::OpSpec& op) {
  return std::ranges::any_of(op.outputs,
                             [](const ops::TensorSpec& output) { return !output.updates.empty(); });
}

std::vector<std::string> InputsMadeInFull(const ops::Instance& instance, const cases::Case& value) {
  std::vector<std::string> names;
  const auto complete = ops::ResolveAxes(instance.op, value.axes);
  if (!complete) return names;
  for (const auto& [name, profile] : value.profiles) {
    const ops::TensorSpec* spec = instance.op.FindInput(name);
    if (spec == nullptr || profile.kind == "zero" || profile.kind == "literal" ||
        cases::IsWithoutPlace(profile.kind))
      continue;
    const auto bytes = static_cast<std::int64_t>(SizeOf(instance.TypeOf(*spec)));
    const auto shape = ops::ResolveShape(*spec, *complete);
    const auto elements = shape ? ElementCount(*shape) : 0;
    if (elements && *elements > cases::kWholeBytes / bytes) names.push_back(name);
  }
  return names;
}

Finding PlanFinding(const Error& error) {
  Finding finding;
  finding.kind = FindingKind::kMalformedPlan;
  finding.message = (error.place.empty() ? "" : error.place + ": ") + error.message;
  finding.cause = error.cure;
  return finding;
}

void RefuseUnwatched(const Checks& asked, std::string_view engine, Report& report) {
  const std::string missing = NotWatched(asked, report.watched);
  if (missing.empty() || report.stop != Stop::kCompleted || !report.findings.empty()) return;
  report.stop = Stop::kEngineFailure;
  report.reason = fmt::format("the engine '{}' did not watch: {}", engine, missing);
}

bool UsesUndefined(const Report& report) {
  return std::ranges::any_of(report.findings, [](const Finding& finding) {
    return finding.kind == FindingKind::kUninitialisedUse;
  });
}

bool IsTooLong(const Report& report, bool others_may_help) {
  // Another block might give what they wait for; a loop that waits for nothing never ends.
  const bool waits =
      others_may_help && std::ranges::any_of(report.findings, [](const Finding& finding) {
        return (finding.kind == FindingKind::kLivelock && !finding.missing.empty()) ||
               finding.kind == FindingKind::kDeadlock;
      });
  return waits || ((report.stop == Stop::kStepLimit || report.stop == Stop::kResourceLimit) &&
                   report.findings.empty());
}

std::string ReasonOfALimit(const Report& report, std::string_view otherwise) {
  return std::string(report.stop == Stop::kResourceLimit && !report.reason.empty()
                         ? std::string_view(report.reason)
                         : otherwise);
}

namespace {

/// Adds the elements of bytes [begin, end) that are not all poison.
template <class Word>
void AddWritten(std::span<const std::byte> bytes, std::int64_t begin, std::int64_t end,
                std::uint8_t poison, std::vector<std::int64_t>& written) {
  Word poisoned;
  std::memset(&poisoned, poison, sizeof(Word));
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Word));
  const std::byte* at = bytes.data() + begin / kSize * kSize;
  for (std::int64_t i = begin / kSize; i * kSize < end; ++i, at += kSize) {
    Word word;
    std::memcpy(&word, at, sizeof(Word));
    if (word != poisoned) written.push_back(i);
  }
}

/// Of the pages that there are, as far as they are looked at.
std::int64_t BytesOfPages(const SharedMemory& memory) {
  constexpr std::int64_t kBlock = 512;
  struct stat info{};
  if (::fstat(memory.fd(), &info) != 0) return 0;
  return std::min(static_cast<std::int64_t>(info.st_blocks) * kBlock, kMostScanned);
}

}  // namespace

// The emulator fills a page with poison when a kernel first gets there, so that a zero beside anything else was written;
// a page of nothing but zeros may never have been touched, unless the emulator says so (Report::disguised).
std::vector<std::int64_t> WrittenElements(const SharedMemory& memory, std::size_t size,
                                          std::uint8_t poison, const Report& report,
                                          std::size_t buffer) {
  constexpr std::int64_t kPage = 4096;
  const auto bytes = static_cast<std::int64_t>(memory.size());
  const auto add = size == 1   ? &AddWritten<std::uint8_t>
                   : size == 2 ? &AddWritten<std::uint16_t>
                   : size == 4 ? &AddWritten<std::uint32_t>
                               : &AddWritten<std::uint64_t>;
  std::vector<std::int64_t> written;
  // Its room at once: growing it would fill three times its pages.
  written.reserve(static_cast<std::size_t>(BytesOfPages(memory)) / size);
  std::int64_t scanned = 0;
  for (std::int64_t at = 0; at < bytes && scanned < kMostScanned;) {
    const off_t data = ::lseek(memory.fd(), at, SEEK_DATA);
    if (data < 0) break;  // ENXIO: only a hole is left
    const off_t hole = ::lseek(memory.fd(), data, SEEK_HOLE);
    const std::int64_t end = hole < 0 ? bytes : std::min<std::int64_t>(hole, bytes);
    for (std::int64_t page = data / kPage * kPage; page < end && scanned < kMostScanned;
         page += kPage) {
      const std::int64_t last = std::min(page + kPage, bytes);
      scanned += kPage;
      const std::byte* first = memory.bytes().data() + page;
      if (std::all_of(first, first + (last - page), [](std::byte b) { return b == std::byte{0}; }))
        continue;
      add(memory.bytes(), page, last, poison, written);
    }
    at = std::max<std::int64_t>(end, at + 1);
  }
  const auto seen = static_cast<std::ptrdiff_t>(written.size());
  for (const BufferRange& range : report.disguised) {
    if (range.buffer != buffer) continue;
    for (std::uint64_t i = range.first / size; i < (range.first + range.bytes) / size; ++i)
      written.push_back(static_cast<std::int64_t>(i));
  }
  std::ranges::inplace_merge(written, written.begin() + seen);
  return written;
}

std::int64_t RunFromTheFront(const std::vector<std::int64_t>& written) {
  std::int64_t count = 0;
  while (count < static_cast<std::int64_t>(written.size()) &&
         written[static_cast<std::size_t>(count)] == count)
    ++count;
  return count;
}

Unwritten CountUnwritten(const engine::BoundCall& call, const std::string& output,
                         std::uint8_t poison, const Report& report) {
  constexpr std::int64_t kPage = 4096;
  const Tensor& tensor = call.outputs.find(output)->second;
  const std::size_t buffer = call.buffer_of.find(output)->second;
  const auto size = static_cast<std::int64_t>(SizeOf(tensor.dtype));
  std::vector<BufferRange> disguised;
  std::ranges::copy_if(report.disguised, std::back_inserter(disguised),
                       [&](const BufferRange& range) { return range.buffer == buffer; });
  auto hidden = disguised.begin();
  Unwritten unwritten;
  std::int64_t one_of = 1;
  const auto add = [&](std::int64_t element) {
    const auto at = static_cast<std::uint64_t>(element * size);
    while (hidden != disguised.end() && hidden->first + hidden->bytes <= at) ++hidden;
    if (hidden != disguised.end() && hidden->first <= at) return;
    if (unwritten.count++ == 0) unwritten.first = element;
    if (unwritten.count % one_of != 0 && unwritten.count != 1) return;
    unwritten.some.push_back(element);
    if (unwritten.some.size() <= kMostUnwritten) return;
    // Every other one goes, and from here on half as many come.
    one_of *= 2;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < unwritten.some.size(); i += 2)
      unwritten.some[kept++] = unwritten.some[i];
    unwritten.some.resize(kept);
  };
  const std::span<const std::byte> bytes = tensor.memory.bytes();
  const auto all = tensor.elements * size;
  for (std::int64_t page = 0; page < all; page += kPage) {
    const std::int64_t end = std::min(page + kPage, all);
    const auto is_all = [&](std::int64_t from, std::int64_t to, std::byte value) {
      return std::all_of(bytes.begin() + from, bytes.begin() + to,
                         [value](std::byte byte) { return byte == value; });
    };
    // A page of zeros is one that nobody came to, unless the emulator says otherwise.
    const bool untouched = is_all(page, end, std::byte{0});
    for (std::int64_t at = page; at < end; at += size) {
      if (untouched || is_all(at, at + size, std::byte{poison})) add(at / size);
    }
  }
  return unwritten;
}

std::vector<std::int64_t> WrittenElements(const engine::BoundCall& call, const std::string& output,
                                          std::uint8_t poison, const Report& report) {
  const Tensor& tensor = call.outputs.find(output)->second;
  return WrittenElements(tensor.memory, SizeOf(tensor.dtype), poison, report,
                         call.buffer_of.find(output)->second);
}

std::vector<std::int64_t> ChangedElements(const Tensor& tensor, const Tensor& before) {
  constexpr std::int64_t kTogether = 1024;
  const std::size_t size = SizeOf(tensor.dtype);
  std::vector<std::int64_t> changed;
  for (std::int64_t first = 0; first < tensor.elements; first += kTogether) {
    const std::int64_t last = std::min(first + kTogether, tensor.elements);
    const auto bytes = static_cast<std::size_t>(last - first) * size;
    if (std::memcmp(tensor.Element(first), before.Element(first), bytes) == 0) continue;
    for (std::int64_t i = first; i < last; ++i) {
      if (std::memcmp(tensor.Element(i), before.Element(i), size) != 0) changed.push_back(i);
    }
  }
  return changed;
}

std::vector<std::int64_t> Everywhere(std::int64_t elements, std::uint64_t seed) {
  constexpr std::int64_t kAbout = 32;
  constexpr int kDrawn = 16;
  std::set<std::int64_t> places = {0, elements};
  for (std::int64_t power = kAbout; power < elements; power *= 2) places.insert(power);
  Rng rng(DeriveSeed(seed, "everywhere"));
  for (int i = 0; i < kDrawn && elements > 0; ++i)
    places.insert(static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(elements))));
  std::set<std::int64_t> some;
  for (const std::int64_t place : places) {
    for (std::int64_t i = place - kAbout; i < place + kAbout; ++i) {
      if (i >= 0 && i < elements) some.insert(i);
    }
  }
  return {some.begin(), some.end()};
}

std::vector<std::int64_t> Spread(std::vector<std::int64_t> elements, std::size_t most) {
  if (elements.size() <= most) return elements;
  std::vector<std::int64_t> some;
  for (std::size_t i = 0; i < most; ++i)
    some.push_back(elements[i * (elements.size() - 1) / (most - 1)]);
  return some;
}

void KeepEqual(const Tensor& tensor, const Tensor& other, std::vector<std::int64_t>& elements) {
  const std::size_t size = SizeOf(tensor.dtype);
  std::erase_if(elements, [&](std::int64_t i) {
    return std::memcmp(tensor.Element(i), other.Element(i), size) != 0;
  });
}

namespace {

/// Has nobody ever come to the page of that byte? Large buffers are filled page by page, as a kernel gets there.
bool IsHole(const SharedMemory& memory, std::size_t byte) {
  constexpr off_t kPage = 4096;
  const off_t page = static_cast<off_t>(byte) / kPage * kPage;
  const off_t data = ::lseek(memory.fd(), page, SEEK_DATA);
  return data < 0 ? errno == ENXIO : data >= page + kPage;
}

}  // namespace

bool EndIsUnwritten(const Tensor& tensor, std::uint8_t poison) {
  const std::size_t size = SizeOf(tensor.dtype);
  if (tensor.elements > 0 &&
      IsHole(tensor.memory, static_cast<std::size_t>(tensor.elements - 1) * size))
    return true;
  std::array<std::byte, 8> poisoned;
  poisoned.fill(static_cast<std::byte>(poison));
  return tensor.elements > 0 &&
         std::memcmp(tensor.Element(tensor.elements - 1), poisoned.data(), size) == 0;
}

bool EndIsTheSame(const Tensor& tensor, const Tensor& before) {
  return tensor.elements > 0 &&
         std::memcmp(tensor.Element(tensor.elements - 1), before.Element(tensor.elements - 1),
                     SizeOf(tensor.dtype)) == 0;
}

}  // namespace assay::campaign

#include "validator/execution/execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "validator/execution/json_fields.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 3> kRoles = {"input", "output", "workspace"};
constexpr std::array<std::string_view, 3> kFills = {"provided", "zero", "uninitialised"};
constexpr std::array<std::string_view, 3> kArgumentKinds = {"buffer", "scalar", "tensor_map"};

struct DTypeName {
  static Json Write(DType dtype) { return Name(dtype); }
  static Result<DType> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const std::string name, ReadJson<std::string>(json, place));
    if (const auto dtype = ParseDType(name)) return *dtype;
    return Fail(ErrorKind::kMalformedInput, "unknown dtype '" + name + "'", place);
  }
};

/// [first, count, first, count, ...]
struct FlatRanges {
  static Json Write(const std::vector<BlockRange>& ranges) {
    Json json = Json::array();
    for (const BlockRange& range : ranges) {
      json.push_back(range.first);
      json.push_back(range.count);
    }
    return json;
  }
  static Result<std::vector<BlockRange>> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const auto numbers, ReadJson<std::vector<std::uint64_t>>(json, place));
    if (numbers.size() % 2 != 0)
      return Fail(ErrorKind::kMalformedInput, "must hold pairs of a first number and a count",
                  place);
    std::vector<BlockRange> ranges;
    for (std::size_t i = 0; i < numbers.size(); i += 2)
      ranges.push_back({numbers[i], numbers[i + 1]});
    return ranges;
  }
};

}  // namespace

static constexpr std::span<const std::string_view> JsonWords(const BufferRole*) { return kRoles; }
static constexpr std::span<const std::string_view> JsonWords(const BufferFill*) { return kFills; }
static constexpr std::span<const std::string_view> JsonWords(const Argument::Kind*) {
  return kArgumentKinds;
}
static constexpr auto JsonFields(const BufferReuse*) {
  using B = BufferReuse;
  return std::tuple(Required("buffer", &B::buffer), Required("launch", &B::launch));
}
static constexpr auto JsonFields(const BufferSpec*) {
  using B = BufferSpec;
  return std::tuple(
      Required("name", &B::name), Required<DTypeName>("dtype", &B::dtype),
      Required<Between<std::int64_t, 0, std::int64_t{1} << 38>>("elements", &B::elements),
      Required("role", &B::role), Required("fill", &B::fill), Required("poison", &B::poison),
      Required<Between<std::uint32_t, 0, 255>>("misalign", &B::misalign),
      Sparse("reuse", &B::reuse));
}
static constexpr auto JsonFields(const TensorMapSpec*) {
  using T = TensorMapSpec;
  return std::tuple(Required<DTypeName>("dtype", &T::dtype), Required("shape", &T::shape),
                    Required("strides", &T::strides), Required("box", &T::box),
                    Required<Between<std::uint8_t, 0, 3>>("swizzle", &T::swizzle),
                    Required("fill_nan", &T::fill_nan));
}
static Status JsonCheck(const TensorMapSpec& map, const ObjectReader& reader) {
  const std::size_t rank = map.shape.size();
  if (rank >= 1 && rank <= 5 && map.box.size() == rank && map.strides.size() + 1 == rank) return {};
  return Fail(ErrorKind::kMalformedInput,
              "needs 1 to 5 dimensions, a box of as many and strides of one fewer",
              reader.PlaceOf("shape"));
}
/// What another kind of argument has stays away.
static constexpr auto JsonFields(const Argument*) {
  using A = Argument;
  return std::tuple(Required("kind", &A::kind), Required("name", &A::name),
                    Sparse("buffer", &A::buffer), Sparse("map", &A::map),
                    Sparse<DTypeName>("dtype", &A::dtype), Sparse("bytes", &A::bytes));
}
static Status JsonCheck(const Argument& argument, const ObjectReader& reader) {
  const bool mapped = argument.kind == Argument::Kind::kTensorMap;
  if (mapped == reader.Has("map")) return {};
  return Fail(ErrorKind::kMalformedInput,
              mapped ? "a tensor map needs one" : "belongs to a tensor map alone",
              reader.PlaceOf("map"));
}
static constexpr auto JsonFields(const Launch*) {
  using L = Launch;
  return std::tuple(Required("entry", &L::entry), Required<FlatRanges>("only", &L::only),
                    Required("grid", &L::grid), Required("block", &L::block),
                    Required("cluster", &L::cluster), Required("shared_bytes", &L::shared_bytes),
                    Required("cooperative", &L::cooperative), Required("args", &L::args),
                    Sparse<FlatRanges>("threads", &L::threads), Sparse("fresh", &L::fresh));
}
static Status JsonCheck(const Launch& launch, const ObjectReader& reader) {
  for (const auto& [key, dim] : {std::pair("grid", launch.grid), std::pair("block", launch.block),
                                 std::pair("cluster", launch.cluster)}) {
    if (std::ranges::all_of(dim, [](std::uint32_t extent) { return extent <= INT32_MAX; }))
      continue;
    return Fail(ErrorKind::kMalformedInput, "must lie between 0 and 2^31 - 1", reader.PlaceOf(key));
  }
  return {};
}
static constexpr auto JsonFields(const ShadowFocus*) {
  using S = ShadowFocus;
  return std::tuple(
      Required("buffer", &S::buffer),
      Required<Between<std::int64_t, 0, INT64_MAX>>("first", &S::first),
      Required<Between<std::int64_t, 0, kMostFocusElements>>("elements", &S::elements),
      Required("common_sign", &S::common_sign));
}
static constexpr auto JsonFields(const Limits*) {
  using L = Limits;
  return std::tuple(Required("max_steps", &L::max_steps),
                    Required("max_memory_bytes", &L::max_memory_bytes),
                    Required("max_findings", &L::max_findings),
                    Required("max_milliseconds", &L::max_milliseconds));
}
static constexpr auto JsonFields(const Tickets*) {
  return std::tuple(Required("word", &Tickets::word), Required("held", &Tickets::held));
}
static constexpr auto JsonFields(const Execution*) {
  using E = Execution;
  return std::tuple(
      Schema("assay.execution/1"), Required("buffers", &E::buffers),
      Required("launches", &E::launches), Required("checks", &E::checks),
      Required("focus", &E::focus), Required("schedule", &E::schedule),
      Required("limits", &E::limits), Required("perturbation_seed", &E::perturbation_seed),
      Sparse("follow_undefined", &E::follow_undefined), Sparse("note_missing", &E::note_missing),
      Sparse("whose", &E::whose), Sparse("drop_stores", &E::drop_stores),
      Sparse("tickets", &E::tickets), Sparse("note_drawn", &E::note_drawn),
      Sparse("note_disguised", &E::note_disguised),
      Sparse("ends_at_meetings", &E::ends_at_meetings), Required("target_sm", &E::target_sm));
}
static Status JsonCheck(const Execution& execution, const ObjectReader& reader) {
  for (std::size_t l = 0; l < execution.launches.size(); ++l) {
    for (const Argument& argument : execution.launches[l].args) {
      if (argument.kind != Argument::Kind::kScalar && argument.buffer >= execution.buffers.size()) {
        return Fail(ErrorKind::kMalformedInput,
                    fmt::format("argument '{}' names a buffer that does not exist", argument.name),
                    fmt::format("{}/{}/args", reader.PlaceOf("launches"), l));
      }
    }
  }
  if (execution.tickets) {
    const BufferRange& word = execution.tickets->word;
    const bool is_one = (word.bytes == 4 || word.bytes == 8) && word.first % word.bytes == 0;
    if (!is_one || word.buffer >= execution.buffers.size())
      return Fail(ErrorKind::kMalformedInput, "needs a word of four or eight bytes of a buffer",
                  reader.PlaceOf("tickets"));
  }
  std::uint64_t asked = 0;
  const BufferRange* before = nullptr;
  for (const BufferRange& range : execution.whose) {
    const bool behind = before == nullptr || before->buffer < range.buffer ||
                        (before->buffer == range.buffer && range.first > before->first &&
                         range.first - before->first > before->bytes);
    asked = range.bytes > kMostWhose ? kMostWhose + 1 : asked + range.bytes;
    if (!behind || asked > kMostWhose)
      return Fail(
          ErrorKind::kMalformedInput,
          "must be ranges of at most 2^21 bytes together, by buffer, that ascend and do not touch",
          reader.PlaceOf("whose"));
    before = &range;
  }
  if (execution.drop_stores && execution.whose.empty())
    return Fail(ErrorKind::kMalformedInput, "needs 'whose', or stores leave nothing behind",
                reader.PlaceOf("drop_stores"));
  return CheckBuffers(execution);
}

Json ToJson(const Execution& execution) { return WriteJson(execution); }
Result<Execution> ExecutionFromJson(const Json& json) {
  return ReadJson<Execution>(json, "execution");
}

}  // namespace assay

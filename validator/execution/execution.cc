#include "validator/execution/execution.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "validator/execution/json_fields.h"

namespace assay {
namespace {

using execution_detail::Bytes;
using execution_detail::EnumFromJson;
using execution_detail::List;
using execution_detail::Narrow;
using execution_detail::UnsignedList;

constexpr std::array<std::string_view, 3> kRoles = {"input", "output", "workspace"};
constexpr std::array<std::string_view, 3> kFills = {"provided", "zero", "uninitialised"};
constexpr std::array<std::string_view, 3> kArgumentKinds = {"buffer", "scalar", "tensor_map"};
constexpr std::array<std::string_view, 4> kPolicies = {"sequential", "permuted", "reversed",
                                                       "priorities"};

Json ToJson(const BufferSpec& buffer) {
  Json json = {{"name", buffer.name},
               {"dtype", Name(buffer.dtype)},
               {"elements", buffer.elements},
               {"role", kRoles[static_cast<std::size_t>(buffer.role)]},
               {"fill", kFills[static_cast<std::size_t>(buffer.fill)]},
               {"poison", buffer.poison},
               {"misalign", buffer.misalign}};
  if (buffer.reuse) {
    json["reuse"] = {{"buffer", buffer.reuse->buffer}, {"launch", buffer.reuse->launch}};
  }
  return json;
}

Result<BufferReuse> ReuseFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  BufferReuse reuse;
  ASSAY_TRY(reuse.buffer, Narrow<std::uint32_t>(reader, "buffer"));
  ASSAY_TRY(reuse.launch, Narrow<std::uint32_t>(reader, "launch"));
  ASSAY_TRY_VOID(reader.Finish());
  return reuse;
}

Result<DType> ReadDType(ObjectReader& reader) {
  ASSAY_TRY(const std::string name, reader.Required<std::string>("dtype"));
  const auto dtype = ParseDType(name);
  if (!dtype)
    return Fail(ErrorKind::kMalformedInput, "unknown dtype '" + name + "'",
                reader.PlaceOf("dtype"));
  return *dtype;
}

Result<BufferSpec> BufferFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  BufferSpec buffer;
  ASSAY_TRY(buffer.name, reader.Required<std::string>("name"));
  ASSAY_TRY(buffer.dtype, ReadDType(reader));
  ASSAY_TRY(buffer.elements, reader.Required<std::int64_t>("elements"));
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 36;
  if (buffer.elements < 0 || buffer.elements > kMaxElements) {
    return Fail(ErrorKind::kMalformedInput, "must be between 0 and 2^36",
                reader.PlaceOf("elements"));
  }
  ASSAY_TRY(buffer.role, EnumFromJson<BufferRole>(reader, "role", kRoles));
  ASSAY_TRY(buffer.fill, EnumFromJson<BufferFill>(reader, "fill", kFills));
  ASSAY_TRY(buffer.poison, Narrow<std::uint8_t>(reader, "poison"));
  ASSAY_TRY(buffer.misalign, Narrow<std::uint32_t>(reader, "misalign"));
  if (buffer.misalign >= 256) {
    return Fail(ErrorKind::kMalformedInput, "must be below 256", reader.PlaceOf("misalign"));
  }
  if (json.contains("reuse")) {
    ASSAY_TRY(const Json reuse, reader.Required<Json>("reuse"));
    ASSAY_TRY(buffer.reuse, ReuseFromJson(reuse, reader.PlaceOf("reuse")));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return buffer;
}

Json ToJson(const TensorMapSpec& map) {
  return {{"dtype", Name(map.dtype)}, {"shape", map.shape},     {"strides", map.strides},
          {"box", map.box},           {"swizzle", map.swizzle}, {"fill_nan", map.fill_nan}};
}

Result<TensorMapSpec> TensorMapFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  TensorMapSpec map;
  ASSAY_TRY(map.dtype, ReadDType(reader));
  ASSAY_TRY(map.shape, UnsignedList<std::uint64_t>(reader, "shape"));
  ASSAY_TRY(map.strides, UnsignedList<std::uint64_t>(reader, "strides"));
  ASSAY_TRY(map.box, UnsignedList<std::uint32_t>(reader, "box"));
  ASSAY_TRY(map.swizzle, Narrow<std::uint8_t>(reader, "swizzle"));
  ASSAY_TRY(map.fill_nan, reader.Required<bool>("fill_nan"));
  if (map.shape.empty() || map.shape.size() > 5 || map.box.size() != map.shape.size() ||
      map.strides.size() + 1 != map.shape.size()) {
    return Fail(ErrorKind::kMalformedInput,
                "needs 1 to 5 dimensions, a box of as many and strides of one fewer",
                reader.PlaceOf("shape"));
  }
  if (map.swizzle > 3)
    return Fail(ErrorKind::kMalformedInput, "must be 0 to 3", reader.PlaceOf("swizzle"));
  ASSAY_TRY_VOID(reader.Finish());
  return map;
}

Json ToJson(const Argument& argument) {
  Json json = {{"kind", kArgumentKinds[static_cast<std::size_t>(argument.kind)]},
               {"name", argument.name}};
  if (argument.kind != Argument::Kind::kScalar) {
    json["buffer"] = argument.buffer;
    if (argument.kind == Argument::Kind::kTensorMap) json["map"] = ToJson(argument.map);
  } else {
    json["dtype"] = Name(argument.dtype);
    json["bytes"] = argument.bytes;
  }
  return json;
}

Result<Argument> ArgumentFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Argument argument;
  ASSAY_TRY(argument.kind, EnumFromJson<Argument::Kind>(reader, "kind", kArgumentKinds));
  ASSAY_TRY(argument.name, reader.Required<std::string>("name"));
  if (argument.kind != Argument::Kind::kScalar) {
    ASSAY_TRY(argument.buffer, Narrow<std::uint32_t>(reader, "buffer"));
    if (argument.kind == Argument::Kind::kTensorMap) {
      ASSAY_TRY(const Json map, reader.Required<Json>("map"));
      ASSAY_TRY(argument.map, TensorMapFromJson(map, reader.PlaceOf("map")));
    }
  } else {
    ASSAY_TRY(argument.dtype, ReadDType(reader));
    ASSAY_TRY(argument.bytes, Bytes(reader, "bytes"));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return argument;
}

Json Dim3ToJson(const Dim3& dim) { return Json::array({dim[0], dim[1], dim[2]}); }

Result<Dim3> ReadDim3(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(const std::vector<std::int64_t> values,
            reader.Required<std::vector<std::int64_t>>(key));
  Dim3 dim{};
  if (values.size() != 3)
    return Fail(ErrorKind::kMalformedInput, "must be three integers", reader.PlaceOf(key));
  for (std::size_t i = 0; i < 3; ++i) {
    if (values[i] < 0 || values[i] > 0x7fffffff) {
      return Fail(ErrorKind::kMalformedInput, "must lie between 0 and 2^31 - 1",
                  reader.PlaceOf(key));
    }
    dim[i] = static_cast<std::uint32_t>(values[i]);
  }
  return dim;
}

Json ToJson(const Launch& launch) {
  Json args = Json::array();
  for (const Argument& argument : launch.args) args.push_back(ToJson(argument));
  Json only = Json::array();
  for (const BlockRange& range : launch.only) {
    only.push_back(range.first);
    only.push_back(range.count);
  }
  Json json = {{"entry", launch.entry},
               {"only", std::move(only)},
               {"grid", Dim3ToJson(launch.grid)},
               {"block", Dim3ToJson(launch.block)},
               {"cluster", Dim3ToJson(launch.cluster)},
               {"shared_bytes", launch.shared_bytes},
               {"cooperative", launch.cooperative},
               {"args", std::move(args)}};
  if (!launch.fresh.empty()) json["fresh"] = launch.fresh;
  return json;
}

Result<Launch> LaunchFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Launch launch;
  ASSAY_TRY(launch.entry, reader.Required<std::string>("entry"));
  ASSAY_TRY(launch.grid, ReadDim3(reader, "grid"));
  ASSAY_TRY(launch.block, ReadDim3(reader, "block"));
  ASSAY_TRY(launch.cluster, ReadDim3(reader, "cluster"));
  ASSAY_TRY(launch.shared_bytes, reader.Required<std::uint64_t>("shared_bytes"));
  ASSAY_TRY(launch.cooperative, reader.Required<bool>("cooperative"));
  ASSAY_TRY(launch.args, List<Argument>(reader, "args", ArgumentFromJson));
  ASSAY_TRY(const std::vector<std::int64_t> only,
            reader.Required<std::vector<std::int64_t>>("only"));
  for (std::size_t i = 0; i + 1 < only.size(); i += 2) {
    if (only[i] < 0 || only[i + 1] < 0) {
      return Fail(ErrorKind::kMalformedInput, "must hold pairs of a first block and a count",
                  reader.PlaceOf("only"));
    }
    launch.only.push_back(
        {static_cast<std::uint64_t>(only[i]), static_cast<std::uint64_t>(only[i + 1])});
  }
  if (json.contains("fresh")) {
    ASSAY_TRY(launch.fresh, UnsignedList<std::uint32_t>(reader, "fresh"));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return launch;
}

Json ToJson(const ShadowFocus& focus) {
  return {{"buffer", focus.buffer},
          {"first", focus.first},
          {"elements", focus.elements},
          {"common_sign", focus.common_sign}};
}

Result<ShadowFocus> FocusFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ShadowFocus focus;
  ASSAY_TRY(focus.buffer, Narrow<std::uint32_t>(reader, "buffer"));
  ASSAY_TRY(focus.first, reader.Required<std::int64_t>("first"));
  ASSAY_TRY(focus.elements, reader.Required<std::int64_t>("elements"));
  ASSAY_TRY(focus.common_sign, reader.Required<bool>("common_sign"));
  if (focus.first < 0 || focus.elements < 0 || focus.elements > kMostFocusElements) {
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("must be at most {} elements from 0 on", kMostFocusElements),
                reader.PlaceOf("elements"));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return focus;
}

Json ToJson(const Limits& limits) {
  return {{"max_steps", limits.max_steps},
          {"max_memory_bytes", limits.max_memory_bytes},
          {"max_findings", limits.max_findings},
          {"max_milliseconds", limits.max_milliseconds}};
}

Result<Limits> LimitsFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Limits limits;
  ASSAY_TRY(limits.max_steps, reader.Required<std::uint64_t>("max_steps"));
  ASSAY_TRY(limits.max_memory_bytes, reader.Required<std::uint64_t>("max_memory_bytes"));
  ASSAY_TRY(limits.max_findings, Narrow<std::uint32_t>(reader, "max_findings"));
  ASSAY_TRY(limits.max_milliseconds, Narrow<std::uint32_t>(reader, "max_milliseconds"));
  ASSAY_TRY_VOID(reader.Finish());
  return limits;
}

}  // namespace

Json ToJson(const OrderPair& pair) {
  return {{"launch", pair.launch},
          {"first_warp", pair.first_warp},
          {"first_access", pair.first_access},
          {"second_warp", pair.second_warp},
          {"second_access", pair.second_access}};
}

Result<OrderPair> OrderPairFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  OrderPair pair;
  ASSAY_TRY(pair.launch, Narrow<std::uint32_t>(reader, "launch"));
  ASSAY_TRY(pair.first_warp, Narrow<std::uint32_t>(reader, "first_warp"));
  ASSAY_TRY(pair.first_access, Narrow<std::uint32_t>(reader, "first_access"));
  ASSAY_TRY(pair.second_warp, Narrow<std::uint32_t>(reader, "second_warp"));
  ASSAY_TRY(pair.second_access, Narrow<std::uint32_t>(reader, "second_access"));
  ASSAY_TRY_VOID(reader.Finish());
  return pair;
}

Json ToJson(const Schedule& schedule) {
  Json json = {{"policy", kPolicies[static_cast<std::size_t>(schedule.policy)]},
               {"seed", schedule.seed}};
  if (schedule.stale != 0) json["stale"] = schedule.stale;
  if (schedule.hold) json["hold"] = ToJson(*schedule.hold);
  return json;
}

Result<Schedule> ScheduleFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Schedule schedule;
  ASSAY_TRY(schedule.policy, EnumFromJson<Schedule::Policy>(reader, "policy", kPolicies));
  ASSAY_TRY(schedule.seed, reader.Required<std::uint64_t>("seed"));
  if (reader.Has("stale")) {
    ASSAY_TRY(schedule.stale, Narrow<std::uint32_t>(reader, "stale"));
    if (schedule.stale > 100)
      return Fail(ErrorKind::kMalformedInput, "must be a percentage", reader.PlaceOf("stale"));
  }
  if (reader.Has("hold")) {
    ASSAY_TRY(const Json hold, reader.Required<Json>("hold"));
    ASSAY_TRY(schedule.hold, OrderPairFromJson(hold, reader.PlaceOf("hold")));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return schedule;
}

Json ToJson(const Execution& execution) {
  Json buffers = Json::array();
  for (const BufferSpec& buffer : execution.buffers) buffers.push_back(ToJson(buffer));
  Json launches = Json::array();
  for (const Launch& launch : execution.launches) launches.push_back(ToJson(launch));
  return {{"schema", "assay.execution/1"},      {"buffers", std::move(buffers)},
          {"launches", std::move(launches)},    {"checks", ToJson(execution.checks)},
          {"focus", ToJson(execution.focus)},   {"schedule", ToJson(execution.schedule)},
          {"limits", ToJson(execution.limits)}, {"perturbation_seed", execution.perturbation_seed},
          {"target_sm", execution.target_sm}};
}

Result<Execution> ExecutionFromJson(const Json& json) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, "execution"));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.execution/1") {
    return Fail(ErrorKind::kMalformedInput, "unknown schema '" + schema + "'",
                reader.PlaceOf("schema"));
  }
  Execution execution;
  ASSAY_TRY(execution.buffers, List<BufferSpec>(reader, "buffers", BufferFromJson));
  ASSAY_TRY(execution.launches, List<Launch>(reader, "launches", LaunchFromJson));
  ASSAY_TRY(const Json checks, reader.Required<Json>("checks"));
  ASSAY_TRY(execution.checks, ChecksFromJson(checks, reader.PlaceOf("checks")));
  ASSAY_TRY(const Json focus, reader.Required<Json>("focus"));
  ASSAY_TRY(execution.focus, FocusFromJson(focus, reader.PlaceOf("focus")));
  ASSAY_TRY(const Json schedule, reader.Required<Json>("schedule"));
  ASSAY_TRY(execution.schedule, ScheduleFromJson(schedule, reader.PlaceOf("schedule")));
  ASSAY_TRY(const Json limits, reader.Required<Json>("limits"));
  ASSAY_TRY(execution.limits, LimitsFromJson(limits, reader.PlaceOf("limits")));
  ASSAY_TRY(execution.perturbation_seed, reader.Required<std::uint64_t>("perturbation_seed"));
  ASSAY_TRY(execution.target_sm, reader.Required<std::string>("target_sm"));
  ASSAY_TRY_VOID(reader.Finish());
  for (std::size_t l = 0; l < execution.launches.size(); ++l) {
    for (const Argument& argument : execution.launches[l].args) {
      if (argument.kind != Argument::Kind::kScalar && argument.buffer >= execution.buffers.size()) {
        return Fail(ErrorKind::kMalformedInput,
                    fmt::format("argument '{}' names a buffer that does not exist", argument.name),
                    fmt::format("execution: /launches/{}/args", l));
      }
    }
  }
  ASSAY_TRY_VOID(CheckBuffers(execution));
  return execution;
}

}  // namespace assay

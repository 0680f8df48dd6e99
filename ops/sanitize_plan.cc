#include "ops/sanitize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "ops/names.h"

namespace assay::ops {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 37;

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

struct KindRow {
  std::string_view name;
  BufferInit::Kind kind;
};
constexpr std::array kKinds = {
    KindRow{"zero", BufferInit::Kind::kZero},
    KindRow{"constant", BufferInit::Kind::kConstant},
    KindRow{"iota", BufferInit::Kind::kIota},
    KindRow{"uniform", BufferInit::Kind::kUniform},
    KindRow{"normal", BufferInit::Kind::kNormal},
    KindRow{"file", BufferInit::Kind::kFile},
    KindRow{"uninitialised", BufferInit::Kind::kUninitialised},
    KindRow{"uninitialized", BufferInit::Kind::kUninitialised},
};

struct RoleRow {
  std::string_view name;
  SanitizeBuffer::Role role;
};
constexpr std::array kRoles = {
    RoleRow{"input", SanitizeBuffer::Role::kInput},
    RoleRow{"output", SanitizeBuffer::Role::kOutput},
    RoleRow{"workspace", SanitizeBuffer::Role::kWorkspace},
};

/// The row that `word` names; an error that lists the names otherwise.
template <class Table>
auto Lookup(const Table& table, std::string_view what, const std::string& word, std::string place)
    -> Result<typename Table::value_type> {
  const auto row = std::ranges::find(table, word, &Table::value_type::name);
  if (row != table.end()) return *row;
  std::vector<std::string> known;
  for (const auto& each : table) known.emplace_back(each.name);
  return UnknownName(what, word, std::move(known), std::move(place));
}

Result<DType> ReadDType(ObjectReader& reader) {
  ASSAY_TRY(const std::string name, reader.Required<std::string>("dtype"));
  ASSAY_TRY_VOID(CheckDType(OpSpec{}, name, reader.PlaceOf("dtype")));
  return *ParseDType(name);
}

Result<BufferInit> ReadInit(const Json& document, const std::string& place, const Path& folder) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, place));
  ASSAY_TRY(const std::string kind, reader.Required<std::string>("kind"));
  ASSAY_TRY(const KindRow row, Lookup(kKinds, "init kind", kind, reader.PlaceOf("kind")));
  BufferInit init;
  init.kind = row.kind;
  switch (init.kind) {
    case BufferInit::Kind::kConstant: {
      ASSAY_TRY(init.value, reader.Required<double>("value"));
      break;
    }
    case BufferInit::Kind::kUniform: {
      ASSAY_TRY(init.low, reader.Optional<double>("low", 0));
      ASSAY_TRY(init.high, reader.Optional<double>("high", 1));
      if (!(init.low <= init.high)) return Bad("the range is empty", reader.PlaceOf("low"));
      break;
    }
    case BufferInit::Kind::kNormal: {
      ASSAY_TRY(init.mean, reader.Optional<double>("mean", 0));
      ASSAY_TRY(init.scale, reader.Optional<double>("scale", 1));
      break;
    }
    case BufferInit::Kind::kFile: {
      ASSAY_TRY(const std::string path, reader.Required<std::string>("path"));
      init.path = folder / path;
      break;
    }
    default:
      break;
  }
  if (init.kind == BufferInit::Kind::kUniform || init.kind == BufferInit::Kind::kNormal) {
    ASSAY_TRY(init.seed, reader.Optional<std::uint64_t>("seed", 0));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return init;
}

Result<SanitizeBuffer> ReadBuffer(const std::string& name, const Json& document,
                                  const std::string& place, const Path& folder) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, place));
  SanitizeBuffer buffer;
  buffer.name = name;
  ASSAY_TRY(buffer.dtype, ReadDType(reader));
  ASSAY_TRY(buffer.elements, reader.Required<std::int64_t>("elements"));
  std::int64_t bytes = 0;
  if (buffer.elements < 0 ||
      __builtin_mul_overflow(buffer.elements, static_cast<std::int64_t>(SizeOf(buffer.dtype)),
                             &bytes) ||
      bytes > kMaxBytes) {
    return Bad(fmt::format("is negative, or more than {} GiB", kMaxBytes >> 30),
               reader.PlaceOf("elements"));
  }
  ASSAY_TRY(const Json init, reader.Optional<Json>("init", Json{{"kind", "uninitialised"}}));
  ASSAY_TRY(buffer.init, ReadInit(init, reader.PlaceOf("init"), folder));
  ASSAY_TRY(const std::string role, reader.Optional<std::string>("role", ""));
  if (reader.Has("role")) {
    ASSAY_TRY(const RoleRow row, Lookup(kRoles, "role", role, reader.PlaceOf("role")));
    buffer.role = row.role;
  }
  ASSAY_TRY(buffer.may_differ, reader.Optional<bool>("may_differ", false));
  ASSAY_TRY(const std::string save, reader.Optional<std::string>("save", ""));
  if (!save.empty()) {
    buffer.save = folder / save;
    // Who keeps a buffer wants what is in it.
    if (!reader.Has("role")) buffer.role = SanitizeBuffer::Role::kOutput;
  }
  ASSAY_TRY_VOID(reader.Finish());
  return buffer;
}

Result<SanitizeScalar> ReadScalar(const std::string& name, const Json& document,
                                  const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, place));
  SanitizeScalar scalar;
  scalar.name = name;
  ASSAY_TRY(scalar.dtype, ReadDType(reader));
  if (IsFloat(scalar.dtype)) {
    ASSAY_TRY(scalar.value, reader.Required<double>("value"));
  } else if (scalar.dtype == DType::kU64) {
    ASSAY_TRY(const std::uint64_t value, reader.Required<std::uint64_t>("value"));
    scalar.integer = static_cast<std::int64_t>(value);
  } else {
    ASSAY_TRY(scalar.integer, reader.Required<std::int64_t>("value"));
    std::array<std::byte, 8> bytes{};
    StoreFromInt64(scalar.dtype, scalar.integer, bytes.data());
    if (LoadAsInt64(scalar.dtype, bytes.data()) != scalar.integer) {
      return Bad(fmt::format("{} does not fit {}", scalar.integer, Name(scalar.dtype)),
                 reader.PlaceOf("value"));
    }
  }
  ASSAY_TRY_VOID(reader.Finish());
  return scalar;
}

Result<Json> ObjectAt(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(Json object, reader.Optional<Json>(key, Json::object()));
  if (!object.is_object()) {
    return Bad(fmt::format("must be an object, not {}", object.type_name()), reader.PlaceOf(key));
  }
  return object;
}

Status ClaimName(const std::string& name, std::vector<std::string>& names,
                 const std::string& place) {
  if (!IsIdentifier(name)) return Bad(fmt::format("'{}' is not a name", name), place);
  if (std::ranges::find(names, name) != names.end()) {
    return Bad(fmt::format("the name '{}' is taken", name), place,
               "buffers and scalars need names of their own");
  }
  names.push_back(name);
  return {};
}

}  // namespace

std::vector<std::uint8_t> SanitizeScalar::Bytes() const {
  std::array<std::byte, 8> raw{};
  if (IsFloat(dtype)) {
    StoreFromDouble(dtype, value, raw.data());
  } else {
    StoreFromInt64(dtype, integer, raw.data());
  }
  std::vector<std::uint8_t> bytes(SizeOf(dtype));
  std::memcpy(bytes.data(), raw.data(), bytes.size());
  return bytes;
}

Result<SanitizePlan> ParseSanitizePlan(const Json& document, const std::string& file,
                                       const Path& folder) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, file));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.launch/1") {
    return Bad(fmt::format("unknown schema '{}'", schema), reader.PlaceOf("schema"),
               "this version reads assay.launch/1");
  }
  SanitizePlan plan;
  using Strings = std::vector<std::string>;
  ASSAY_TRY(plan.options, reader.Optional<Strings>("options", {}));

  Strings names;
  ASSAY_TRY(const Json buffers, ObjectAt(reader, "buffers"));
  for (const auto& [name, value] : buffers.items()) {
    const std::string place = reader.PlaceOf("buffers") + "/" + name;
    ASSAY_TRY_VOID(ClaimName(name, names, place));
    ASSAY_TRY(SanitizeBuffer buffer, ReadBuffer(name, value, place, folder));
    plan.buffers.push_back(std::move(buffer));
  }
  const Strings buffer_names = names;
  Instance instance;
  AxisValues integers;
  Strings integer_names;
  ASSAY_TRY(const Json scalars, ObjectAt(reader, "scalars"));
  for (const auto& [name, value] : scalars.items()) {
    const std::string place = reader.PlaceOf("scalars") + "/" + name;
    ASSAY_TRY_VOID(ClaimName(name, names, place));
    ASSAY_TRY(SanitizeScalar scalar, ReadScalar(name, value, place));
    if (!IsFloat(scalar.dtype)) {
      integers[name] = scalar.integer;
      integer_names.push_back(name);
    }
    plan.scalars.push_back(std::move(scalar));
  }

  ASSAY_TRY(const Json kernels, reader.Required<Json>("kernels"));
  if (!kernels.is_array() || kernels.empty() || kernels.size() > 4096) {
    return Bad("must be an array of 1 to 4096 launches", reader.PlaceOf("kernels"));
  }
  LaunchPlan launches;
  ASSAY_TRY(launches.tensor_maps, ReadTensorMaps(reader, integer_names, buffer_names, names));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    ASSAY_TRY(KernelPlan kernel,
              ReadKernelPlan(kernels[i], fmt::format("{}/{}", reader.PlaceOf("kernels"), i),
                             integer_names, names));
    launches.kernels.push_back(std::move(kernel));
  }
  ASSAY_TRY_VOID(reader.Finish());
  ASSAY_TRY(ResolvedPlan resolved, Resolve(launches, instance, integers));
  plan.kernels = std::move(resolved.kernels);
  plan.tensor_maps = std::move(resolved.tensor_maps);
  return plan;
}

Status FillBuffer(const SanitizeBuffer& buffer, std::span<std::byte> bytes) {
  const std::size_t size = SizeOf(buffer.dtype);
  ASSAY_CHECK(bytes.size() == static_cast<std::size_t>(buffer.elements) * size);
  const BufferInit& init = buffer.init;
  Rng rng(DeriveSeed(init.seed, buffer.name));
  const bool integer = !IsFloat(buffer.dtype);
  const auto fill = [&](auto&& value_at) {
    for (std::int64_t i = 0; i < buffer.elements; ++i) {
      StoreFromDouble(buffer.dtype, value_at(i), bytes.data() + static_cast<std::size_t>(i) * size);
    }
  };
  switch (init.kind) {
    case BufferInit::Kind::kZero:
    case BufferInit::Kind::kUninitialised:
      break;
    case BufferInit::Kind::kConstant:
      fill([&](std::int64_t) { return init.value; });
      break;
    case BufferInit::Kind::kIota:
      for (std::int64_t i = 0; i < buffer.elements; ++i) {
        StoreFromInt64(buffer.dtype, i, bytes.data() + static_cast<std::size_t>(i) * size);
      }
      break;
    case BufferInit::Kind::kUniform:
      fill([&](std::int64_t) {
        const double high = integer ? std::floor(init.high) + 1 : init.high;
        const double value = init.low + (high - init.low) * rng.Unit();
        return integer ? std::min(std::floor(value), std::floor(init.high)) : value;
      });
      break;
    case BufferInit::Kind::kNormal:
      fill([&](std::int64_t) { return init.mean + init.scale * rng.Normal(); });
      break;
    case BufferInit::Kind::kFile: {
      ASSAY_TRY(const std::string content, ReadFile(init.path, bytes.size() + 1));
      if (content.size() != bytes.size()) {
        return Bad(fmt::format("the file has {} bytes, but '{}' needs {}", content.size(),
                               buffer.name, bytes.size()),
                   init.path.string(), "write elements * size of the dtype, little-endian");
      }
      std::memcpy(bytes.data(), content.data(), content.size());
      break;
    }
  }
  return {};
}

}  // namespace assay::ops

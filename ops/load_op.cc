// LoadOp: op.json, strictly, with every cross-check that can be made without running anything.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>

#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "ops/load_contract.h"
#include "ops/load_workloads.h"
#include "ops/names.h"
#include "ops/op.h"

namespace assay::ops {
namespace {

constexpr std::string_view kSchema = "assay.op/1";
constexpr std::size_t kMaxRank = 8;

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

Result<Json> ObjectAt(ObjectReader& reader, std::string_view key, bool required) {
  Json object = Json::object();
  if (required) {
    ASSAY_TRY(object, reader.Required<Json>(key));
  } else {
    ASSAY_TRY(object, reader.Optional<Json>(key, Json::object()));
  }
  if (!object.is_object()) {
    return Bad(fmt::format("must be an object, not {}", object.type_name()), reader.PlaceOf(key));
  }
  return object;
}

/// Reads op.json part by part into one OpSpec.
class OpReader {
 public:
  OpReader(Path folder, std::string file) : file_(std::move(file)) {
    op_.folder = std::move(folder);
  }

  Result<OpSpec> Read(const std::string& text) {
    ASSAY_TRY(const Json document, ParseJson(text, file_));
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, file_));
    ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
    if (schema != kSchema) {
      return Bad(fmt::format("unknown schema '{}'", schema), reader.PlaceOf("schema"),
                 fmt::format("this version reads {}", kSchema));
    }
    ASSAY_TRY(op_.name, reader.Required<std::string>("name"));
    if (!IsIdentifier(op_.name)) {
      return Bad(fmt::format("'{}' cannot name an op", op_.name), reader.PlaceOf("name"),
                 "use letters, digits and underscores");
    }
    // Definitions in flashinfer-trace's format say `description`.
    ASSAY_TRY(op_.summary, reader.Optional<std::string>("summary", ""));
    ASSAY_TRY(const std::string description, reader.Optional<std::string>("description", ""));
    if (op_.summary.empty()) op_.summary = description;
    reader.Ignore("op_type");
    reader.Ignore("tags");
    ASSAY_TRY_VOID(ReadDTypes(reader));
    ASSAY_TRY_VOID(ReadAxes(reader));
    ASSAY_TRY_VOID(ReadTensors(reader, "inputs", true, op_.inputs));
    ASSAY_TRY_VOID(ReadTensors(reader, "outputs", false, op_.outputs));
    if (op_.outputs.empty())
      return Bad("the op has no outputs", reader.PlaceOf("outputs"), "name one");
    ASSAY_TRY_VOID(ReadConstraints(reader));
    ASSAY_TRY(op_.contract, ReadContract(reader, op_));
    ASSAY_TRY(op_.properties, ReadProperties(reader, op_));
    ASSAY_TRY_VOID(ReadSources(reader));
    ASSAY_TRY_VOID(reader.Finish());
    ASSAY_TRY_VOID(CheckSatisfiable());
    ASSAY_TRY_VOID(Digest(text));
    ASSAY_TRY(op_.workloads, LoadWorkloads(op_));
    return std::move(op_);
  }

 private:
  Status ReadDTypes(ObjectReader& reader) {
    ASSAY_TRY(const Json dtypes, ObjectAt(reader, "dtypes", false));
    for (const std::string& variable : KeysOf(dtypes)) {
      const std::string place = reader.PlaceOf("dtypes") + "/" + variable;
      if (!IsIdentifier(variable) || ParseDType(variable)) {
        return Bad(fmt::format("'{}' cannot name a dtype variable", variable), place, "call it T");
      }
      ASSAY_TRY(const auto names,
                json_detail::Convert<std::vector<std::string>>(dtypes.at(variable), place));
      if (names.empty()) return Bad("needs at least one dtype", place);
      std::vector<DType>& choices = op_.dtypes[variable];
      for (const std::string& name : names) {
        const auto type = ParseDType(name);
        if (!type) return CheckDType(OpSpec{}, name, place);
        if (std::ranges::find(choices, *type) != choices.end()) {
          return Bad(fmt::format("'{}' is listed twice", name), place);
        }
        choices.push_back(*type);
      }
    }
    return {};
  }

  Status ReadAxes(ObjectReader& reader) {
    ASSAY_TRY(const Json axes, ObjectAt(reader, "axes", false));
    const std::vector<std::string> names = KeysOf(axes);
    for (const std::string& name : names) {
      const std::string place = reader.PlaceOf("axes") + "/" + name;
      ASSAY_TRY_VOID(Claim(name, place));
      ASSAY_TRY(ObjectReader axis_reader, ObjectReader::Of(axes.at(name), place));
      ASSAY_TRY(Axis axis, ReadAxis(axis_reader, name, names));
      ASSAY_TRY_VOID(axis_reader.Finish());
      op_.axes.push_back(std::move(axis));
    }
    return OrderDerivedAxes();
  }

  static Result<Axis> ReadAxis(ObjectReader& reader, const std::string& name,
                               const std::vector<std::string>& known) {
    Axis axis;
    axis.name = name;
    ASSAY_TRY(const std::string type, reader.Required<std::string>("type"));
    ASSAY_TRY(axis.description, reader.Optional<std::string>("description", ""));
    if (type == "var") {
      ASSAY_TRY(axis.min, reader.Optional<std::int64_t>("min", 1));
      ASSAY_TRY(axis.max, reader.Optional<std::int64_t>("max", std::int64_t{1} << 31));
      if (axis.min < 0 || axis.max < axis.min) {
        return Bad(fmt::format("the range [{}, {}] is empty or negative", axis.min, axis.max),
                   reader.PlaceOf("min"));
      }
    } else if (type == "const") {
      axis.kind = Axis::Kind::kConstant;
      ASSAY_TRY(axis.value, reader.Required<std::int64_t>("value"));
      if (axis.value < 0) return Bad("an extent is at least 0", reader.PlaceOf("value"));
    } else if (type == "expr") {
      axis.kind = Axis::Kind::kExpression;
      ASSAY_TRY(const Json text, reader.Required<Json>("expression"));
      ASSAY_TRY(axis.expression, ReadExpression(text, reader.PlaceOf("expression"), known));
    } else {
      return Bad(fmt::format("unknown kind of axis '{}'", type), reader.PlaceOf("type"),
                 "kinds are var, const and expr");
    }
    return axis;
  }

  // Sorts derived axes behind what they depend on, so that one pass evaluates them.
  Status OrderDerivedAxes() {
    std::vector<Axis> ordered;
    std::set<std::string, std::less<>> known;
    std::vector<Axis> waiting = std::move(op_.axes);
    while (!waiting.empty()) {
      const auto ready = std::ranges::find_if(waiting, [&](const Axis& axis) {
        return !axis.expression ||
               std::ranges::all_of(axis.expression->names(),
                                   [&](const auto& name) { return known.contains(name); });
      });
      if (ready == waiting.end()) {
        return Bad(fmt::format("the axis '{}' depends on itself", waiting.front().name),
                   fmt::format("{}: /axes/{}", file_, waiting.front().name));
      }
      known.insert(ready->name);
      ordered.push_back(std::move(*ready));
      waiting.erase(ready);
    }
    op_.axes = std::move(ordered);
    return {};
  }

  Status ReadTensors(ObjectReader& reader, const std::string& key, bool inputs,
                     std::vector<TensorSpec>& out) {
    ASSAY_TRY(const Json tensors, ObjectAt(reader, key, true));
    for (const std::string& name : KeysOf(tensors)) {
      const std::string place = reader.PlaceOf(key) + "/" + name;
      ASSAY_TRY_VOID(Claim(name, place));
      ASSAY_TRY(ObjectReader tensor_reader, ObjectReader::Of(tensors.at(name), place));
      TensorSpec tensor;
      tensor.name = name;
      ASSAY_TRY(const Json shape, tensor_reader.Required<Json>("shape"));
      tensor.is_scalar = shape.is_null();
      if (tensor.is_scalar && !inputs) {
        return Bad("an output has a shape", tensor_reader.PlaceOf("shape"),
                   "write [1] for a single number");
      }
      if (!tensor.is_scalar) {
        ASSAY_TRY(tensor.shape,
                  ReadExpressions(shape, tensor_reader.PlaceOf("shape"), AxisNames(op_), kMaxRank));
      }
      ASSAY_TRY(tensor.dtype_name, tensor_reader.Required<std::string>("dtype"));
      ASSAY_TRY_VOID(CheckDType(op_, tensor.dtype_name, tensor_reader.PlaceOf("dtype")));
      ASSAY_TRY(tensor.description, tensor_reader.Optional<std::string>("description", ""));
      if (inputs && tensor_reader.Has("domain")) {
        ASSAY_TRY(const Json domain, tensor_reader.Required<Json>("domain"));
        ASSAY_TRY(ObjectReader domain_reader,
                  ObjectReader::Of(domain, tensor_reader.PlaceOf("domain")));
        ASSAY_TRY(tensor.domain, ReadDomain(domain_reader, tensor));
        ASSAY_TRY_VOID(domain_reader.Finish());
      }
      ASSAY_TRY_VOID(tensor_reader.Finish());
      out.push_back(std::move(tensor));
    }
    return {};
  }

  // All dtypes a tensor may have, over the bindings.
  std::vector<DType> TypesOf(const TensorSpec& tensor) const {
    if (const auto bound = op_.dtypes.find(tensor.dtype_name); bound != op_.dtypes.end())
      return bound->second;
    return {*ParseDType(tensor.dtype_name)};
  }

  Result<Domain> ReadDomain(ObjectReader& reader, const TensorSpec& tensor) const {
    Domain domain;
    ASSAY_TRY(const std::string kind, reader.Optional<std::string>("kind", "any"));
    if (kind == "range") {
      domain.kind = Domain::Kind::kRange;
      ASSAY_TRY(domain.low, reader.Required<double>("low"));
      ASSAY_TRY(domain.high, reader.Required<double>("high"));
      if (!(domain.low <= domain.high)) return Bad("the range is empty", reader.PlaceOf("low"));
    } else if (kind == "index") {
      domain.kind = Domain::Kind::kIndex;
      ASSAY_TRY(domain.of, reader.Required<std::string>("of"));
      if (op_.FindAxis(domain.of) == nullptr) {
        return UnknownName("axis", domain.of, AxisNames(op_), reader.PlaceOf("of"));
      }
      if (std::ranges::any_of(TypesOf(tensor), IsFloat)) {
        return Bad("an index has an integer dtype", reader.PlaceOf("kind"),
                   "make its dtype i32 or i64");
      }
    } else if (kind == "choice") {
      domain.kind = Domain::Kind::kChoice;
      ASSAY_TRY(const Json values, reader.Required<Json>("values"));
      if (!values.is_array() || values.empty()) {
        return Bad("must be an array of at least one number", reader.PlaceOf("values"));
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSAY_TRY(const double value,
                  json_detail::Convert<double>(values[i],
                                               fmt::format("{}/{}", reader.PlaceOf("values"), i)));
        domain.values.push_back(value);
      }
    } else if (kind == "generated") {
      domain.kind = Domain::Kind::kGenerated;
      if (tensor.is_scalar) {
        return Bad("a scalar cannot be generated", reader.PlaceOf("kind"),
                   "give it the shape [1], so that it is a tensor");
      }
    } else if (kind != "any") {
      return Bad(fmt::format("unknown kind of domain '{}'", kind), reader.PlaceOf("kind"),
                 "kinds are any, range, index, choice and generated");
    }
    ASSAY_TRY(domain.allow_nan, reader.Optional<bool>("allow_nan", false));
    ASSAY_TRY(domain.allow_infinity, reader.Optional<bool>("allow_infinity", false));
    ASSAY_TRY(domain.typical_scale, reader.Optional<double>("typical_scale", 1.0));
    ASSAY_TRY(domain.typical_mean, reader.Optional<double>("typical_mean", 0.0));
    if (!std::isfinite(domain.typical_scale) || domain.typical_scale < 0) {
      return Bad("must be at least 0", reader.PlaceOf("typical_scale"));
    }
    return domain;
  }

  Status ReadConstraints(ObjectReader& reader) {
    ASSAY_TRY(const Json constraints, reader.Optional<Json>("constraints", Json::array()));
    ASSAY_TRY(op_.constraints,
              ReadExpressions(constraints, reader.PlaceOf("constraints"), AxisNames(op_), 64));
    return {};
  }

  Status ReadSources(ObjectReader& reader) {
    ASSAY_TRY(const Json reference, ObjectAt(reader, "reference", true));
    ASSAY_TRY(op_.reference, ReadSource(reference, reader.PlaceOf("reference")));
    if (reader.Has("generator")) {
      ASSAY_TRY(const Json generator, ObjectAt(reader, "generator", true));
      ASSAY_TRY(op_.generator, ReadSource(generator, reader.PlaceOf("generator")));
    }
    const bool generated = std::ranges::any_of(op_.inputs, &TensorSpec::IsGenerated);
    if (generated && !op_.generator) {
      return Bad("an input is generated, but there is no generator", file_, "add /generator");
    }
    if (!generated && op_.generator) {
      return Bad("there is a generator, but no input is generated", reader.PlaceOf("generator"),
                 R"(give an input the domain {"kind": "generated"}, or remove it)");
    }
    ASSAY_TRY(const std::string naive, reader.Optional<std::string>("naive", ""));
    ASSAY_TRY(op_.naive, Companion(naive, "naive", reader.PlaceOf("naive")));
    ASSAY_TRY(const std::string transcript, reader.Optional<std::string>("transcript", ""));
    ASSAY_TRY(op_.transcript,
              Companion(transcript, "transcript.jsonl", reader.PlaceOf("transcript")));
    return {};
  }

  Result<SourceRef> ReadSource(const Json& object, const std::string& place) const {
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(object, place));
    ASSAY_TRY(const std::string source, reader.Required<std::string>("source"));
    ASSAY_TRY(const std::string launch, reader.Required<std::string>("launch"));
    ASSAY_TRY_VOID(reader.Finish());
    SourceRef ref;
    ASSAY_TRY(ref.source, Inside(source, reader.PlaceOf("source")));
    ASSAY_TRY(ref.launch, Inside(launch, reader.PlaceOf("launch")));
    return ref;
  }

  // A path that must exist and stay inside the op's folder.
  Result<Path> Inside(const std::string& relative, const std::string& place) const {
    const Path path = Path(relative).lexically_normal();
    if (relative.empty() || path.is_absolute() || *path.begin() == "..") {
      return Bad(fmt::format("'{}' leaves the op's folder", relative), place,
                 "give a relative path inside it");
    }
    std::error_code ignored;
    if (!std::filesystem::exists(op_.folder / path, ignored)) {
      return Bad(fmt::format("there is no '{}' in the op's folder", relative), place,
                 "add the file");
    }
    return op_.folder / path;
  }

  // What is named must exist; what is not named is taken when it is there.
  Result<std::optional<Path>> Companion(const std::string& named, const std::string& usual,
                                        const std::string& place) const {
    std::error_code ignored;
    if (named.empty() && !std::filesystem::exists(op_.folder / usual, ignored)) return std::nullopt;
    ASSAY_TRY(const Path path, Inside(named.empty() ? usual : named, place));
    return path;
  }

  // Axes, inputs and outputs share one space of names: a launch plan's arguments name them all
  // alike.
  Status Claim(const std::string& name, const std::string& place) {
    if (!IsIdentifier(name)) {
      return Bad(fmt::format("'{}' is not a name", name), place,
                 "use letters, digits and underscores");
    }
    if (!claimed_.insert(name).second) {
      return Bad(fmt::format("the name '{}' is taken", name), place,
                 "axes, inputs and outputs need names of their own");
    }
    return {};
  }

  // Looks for one shape that satisfies the constraints: small values, powers of two, ends of
  // ranges, then random ones.
  Status CheckSatisfiable() const {
    std::vector<const Axis*> variables;
    for (const Axis& axis : op_.axes) {
      if (axis.kind == Axis::Kind::kVariable) variables.push_back(&axis);
    }
    Error last;
    for (std::uint64_t attempt = 0; attempt < 4096; ++attempt) {
      Rng rng(DeriveSeed(attempt, "satisfiable"));
      AxisValues values;
      for (const Axis* axis : variables) {
        const std::int64_t power = std::int64_t{1} << rng.Below(14);
        const std::int64_t drawn = attempt == 0        ? axis->min
                                   : attempt == 1      ? axis->max
                                   : rng.Below(2) == 0 ? power
                                   : rng.Below(2) == 0 ? axis->min + rng.Between(0, 16)
                                                       : rng.Between(axis->min, axis->max);
        values[axis->name] = std::clamp(drawn, axis->min, axis->max);
      }
      auto resolved = ResolveAxes(op_, values);
      if (resolved) return {};
      last = std::move(resolved).error();
    }
    return Bad(
        "no shape was found that satisfies the constraints; at the last one tried: " + last.message,
        last.place.empty() ? file_ : last.place, "widen the axes or relax the constraints");
  }

  Status Digest(const std::string& text) {
    std::string all = Sha256Hex(text);
    std::vector<Path> files{op_.reference.source, op_.reference.launch};
    if (op_.generator) {
      files.push_back(op_.generator->source);
      files.push_back(op_.generator->launch);
    }
    for (const Path& file : files) {
      ASSAY_TRY(const std::string content, ReadFile(file, 4u << 20));
      all += Sha256Hex(content);
    }
    op_.digest = Sha256Hex(all);
    return {};
  }

  OpSpec op_;
  std::string file_;
  std::set<std::string, std::less<>> claimed_;
};

}  // namespace

Result<OpSpec> LoadOp(const Path& folder) {
  const Path file = folder / "op.json";
  ASSAY_TRY(const std::string text, ReadFile(file, 1u << 20));
  return OpReader(folder, file.string()).Read(text);
}

}  // namespace assay::ops

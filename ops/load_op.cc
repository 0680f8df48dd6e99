// LoadOp: op.json, strictly, with every cross-check that can be made without running anything.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "ops/load_contract.h"
#include "ops/load_relation.h"
#include "ops/load_sources.h"
#include "ops/load_tensors.h"
#include "ops/load_workloads.h"
#include "ops/names.h"
#include "ops/op.h"
#include "ops/speed.h"

namespace assay::ops {
namespace {

constexpr std::string_view kSchema = "assay.op/1";

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
    ASSAY_TRY_VOID(ReadInputs(reader));
    ASSAY_TRY_VOID(ReadOutputs(reader));
    if (op_.outputs.empty())
      return Bad("the op has no outputs", reader.PlaceOf("outputs"), "name one");
    ASSAY_TRY_VOID(CheckRelations(op_, file_));
    ASSAY_TRY_VOID(ReadConstraints(reader));
    ASSAY_TRY(op_.contract, ReadContract(reader, op_));
    ASSAY_TRY(op_.properties, ReadProperties(reader, op_));
    ASSAY_TRY_VOID(ReadSources(reader, op_));
    ASSAY_TRY(const Json speed, ObjectAt(reader, "speed", false));
    ASSAY_TRY_VOID(ReadSpeed(speed, reader.PlaceOf("speed"), op_));
    ASSAY_TRY_VOID(reader.Finish());
    ASSAY_TRY_VOID(CheckPlans(op_));
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
      if (names.empty()) return Bad("needs at least one dtype", place, R"(for example ["bf16"])");
      std::vector<DType>& choices = op_.dtypes[variable];
      for (const std::string& name : names) {
        const auto type = ParseDType(name);
        if (!type) return CheckDType(OpSpec{}, name, place);
        if (std::ranges::find(choices, *type) != choices.end()) {
          return Bad(fmt::format("'{}' is listed twice", name), place, "remove one");
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
                   reader.PlaceOf("min"), "give 0 <= min <= max");
      }
    } else if (type == "const") {
      axis.kind = Axis::Kind::kConstant;
      ASSAY_TRY(axis.value, reader.Required<std::int64_t>("value"));
      if (axis.value < 0) {
        return Bad("an extent is at least 0", reader.PlaceOf("value"), "give a larger value");
      }
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

  Result<TensorSpec> ReadOne(ObjectReader& reader, const std::string& name, TensorRole role) {
    ASSAY_TRY(TensorSpec tensor, ReadTensor(reader, name, role, op_));
    ASSAY_TRY_VOID(reader.Finish());
    return tensor;
  }

  Status ReadInputs(ObjectReader& reader) {
    ASSAY_TRY(const Json tensors, ObjectAt(reader, "inputs", true));
    for (const std::string& name : KeysOf(tensors)) {
      const std::string place = reader.PlaceOf("inputs") + "/" + name;
      ASSAY_TRY_VOID(Claim(name, place));
      ASSAY_TRY(ObjectReader tensor, ObjectReader::Of(tensors.at(name), place));
      ASSAY_TRY(TensorSpec input, ReadOne(tensor, name, TensorRole::kInput));
      op_.inputs.push_back(std::move(input));
    }
    return {};
  }

  Status ReadOutputs(ObjectReader& reader) {
    ASSAY_TRY(const Json tensors, ObjectAt(reader, "outputs", true));
    for (const std::string& name : KeysOf(tensors)) {
      const std::string place = reader.PlaceOf("outputs") + "/" + name;
      ASSAY_TRY_VOID(Claim(name, place));
      ASSAY_TRY(ObjectReader tensor, ObjectReader::Of(tensors.at(name), place));
      ASSAY_TRY(const bool hidden, tensor.Optional<bool>("hidden", false));
      ASSAY_TRY(TensorSpec output,
                ReadOne(tensor, name, hidden ? TensorRole::kHidden : TensorRole::kOutput));
      (hidden ? op_.hidden : op_.outputs).push_back(std::move(output));
    }
    return {};
  }

  Status ReadConstraints(ObjectReader& reader) {
    ASSAY_TRY(const Json constraints, reader.Optional<Json>("constraints", Json::array()));
    ASSAY_TRY(op_.constraints,
              ReadExpressions(constraints, reader.PlaceOf("constraints"), AxisNames(op_), 64));
    return {};
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
    if (op_.parts) {
      files.push_back(op_.parts->launch);
      if (op_.parts->source != op_.reference.source) files.push_back(op_.parts->source);
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

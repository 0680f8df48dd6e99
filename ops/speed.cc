#include "ops/speed.h"

#include <fmt/format.h>

#include "base/file.h"
#include "ops/names.h"

namespace assay::ops {

Result<SpeedContract> ReadSpeed(const Json& object, const std::string& place, const OpSpec& op) {
  SpeedContract speed;
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(object, place));
  const std::vector<std::string> axes = AxisNames(op);
  if (reader.Has("operations")) {
    ASSAY_TRY(const Json text, reader.Required<Json>("operations"));
    ASSAY_TRY(speed.operations, ReadExpression(text, reader.PlaceOf("operations"), axes));
  }
  ASSAY_TRY(const std::string unit, reader.Optional<std::string>("unit", "scalar"));
  if (unit != "scalar" && unit != "matrix")
    return UnknownName("unit", unit, {"scalar", "matrix"}, reader.PlaceOf("unit"));
  if (unit == "matrix") speed.unit = SpeedContract::Unit::kMatrix;
  ASSAY_TRY(const Json moved, reader.Optional<Json>("moved", Json::object()));
  const std::string moved_place = reader.PlaceOf("moved");
  if (!moved.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object of expressions", moved_place);
  for (const auto& [name, text] : moved.items()) {
    if (op.FindInput(name) == nullptr && op.FindOutput(name) == nullptr)
      return Fail(ErrorKind::kMalformedInput, fmt::format("the op has no tensor '{}'", name),
                  moved_place, "name an input or an output");
    ASSAY_TRY(speed.moved[name], ReadExpression(text, moved_place + "/" + name, axes));
  }
  if (reader.Has("library")) {
    ASSAY_TRY(const Json library, reader.Required<Json>("library"));
    ASSAY_TRY(ObjectReader extents, ObjectReader::Of(library, reader.PlaceOf("library")));
    const auto read = [&](std::string_view name) -> Result<Expression> {
      ASSAY_TRY(const Json text, extents.Required<Json>(name));
      return ReadExpression(text, extents.PlaceOf(name), axes);
    };
    if (extents.Has("of")) {
      SpeedContract::Rows rows;
      ASSAY_TRY(rows.operation, extents.Required<std::string>("of"));
      if (rows.operation != "softmax" && rows.operation != "sum")
        return UnknownName("operation", rows.operation, {"softmax", "sum"}, extents.PlaceOf("of"));
      ASSAY_TRY(rows.rows, read("rows"));
      ASSAY_TRY(rows.columns, read("columns"));
      speed.rows = std::move(rows);
    } else {
      std::array<Expression, 3> product;
      constexpr std::array<std::string_view, 3> kNames = {"m", "n", "k"};
      for (std::size_t i = 0; i < kNames.size(); ++i) {
        ASSAY_TRY(product[i], read(kNames[i]));
      }
      speed.product = std::move(product);
    }
    ASSAY_TRY_VOID(extents.Finish());
  }
  ASSAY_TRY(speed.bar, reader.Optional<double>("bar", 0.0));
  if (!(speed.bar >= 0 && speed.bar <= 1))
    return Fail(ErrorKind::kMalformedInput, "a share lies between 0 and 1", reader.PlaceOf("bar"));
  ASSAY_TRY_VOID(reader.Finish());
  return speed;
}

Result<SpeedContract> SpeedOf(const OpSpec& op) {
  // One that was made in memory says nothing.
  if (op.folder.empty()) return SpeedContract{};
  const Path file = op.folder / "op.json";
  ASSAY_TRY(const Json document, ReadJsonFile(file.string()));
  const auto found = document.is_object() ? document.find("speed") : document.end();
  if (found == document.end()) return SpeedContract{};
  return ReadSpeed(*found, file.string() + ": /speed", op);
}

Result<LeastWork> LeastWorkOf(const Instance& instance, const SpeedContract& speed,
                              const AxisValues& axes) {
  LeastWork work;
  for (const auto* tensors : {&instance.op.inputs, &instance.op.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      if (tensor.is_scalar) continue;
      std::int64_t elements = 0;
      if (const auto stated = speed.moved.find(tensor.name); stated != speed.moved.end()) {
        ASSAY_TRY(elements, stated->second.Evaluate(axes));
      } else {
        ASSAY_TRY(const Shape shape, ResolveShape(tensor, axes));
        ASSAY_TRY(elements, ElementCount(shape));
      }
      work.bytes +=
          static_cast<double>(elements) * static_cast<double>(SizeOf(instance.TypeOf(tensor)));
    }
  }
  ASSAY_TRY(const std::int64_t operations, speed.operations.Evaluate(axes));
  work.operations = static_cast<double>(operations);
  return work;
}

}  // namespace assay::ops

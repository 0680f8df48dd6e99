#include "assay/ops.h"

#include "api/outward.h"
#include "ops/properties.h"

namespace assay::api {
namespace {

std::vector<Tensor> Outward(const std::vector<ops::TensorSpec>& tensors) {
  std::vector<Tensor> shown;
  for (const ops::TensorSpec& tensor : tensors) {
    shown.push_back({tensor.name, {}, tensor.dtype_name, tensor.description});
    for (const ops::Expression& extent : tensor.shape) shown.back().shape.push_back(extent.text());
  }
  return shown;
}

Op Outward(const ops::OpSpec& op) {
  Op shown{.name = op.name,
           .summary = op.summary,
           .folder = op.folder,
           .digest = op.digest,
           .dtypes = {},
           .axes = {},
           .inputs = Outward(op.inputs),
           .outputs = Outward(op.outputs),
           .properties = {}};
  for (const auto& [variable, choices] : op.dtypes) {
    for (const DType choice : choices) shown.dtypes[variable].emplace_back(assay::Name(choice));
  }
  for (const ops::Axis& axis : op.axes) {
    const bool constant = axis.kind == ops::Axis::Kind::kConstant;
    shown.axes.push_back({.name = axis.name,
                          .least = constant ? axis.value : axis.min,
                          .most = constant ? axis.value : axis.max,
                          .expression = axis.expression ? axis.expression->text() : "",
                          .description = axis.description});
  }
  for (const ops::Property& property : op.properties)
    shown.properties.push_back(ops::PropertyText(property));
  return shown;
}

}  // namespace

Result<Op> FindOp(const Environment& environment, std::string_view name_or_folder) {
  return AtBorder([&]() -> assay::Result<Op> {
    ASSAY_TRY(const ops::OpSpec op, ops::Library(environment.ops).Find(name_or_folder));
    return Outward(op);
  });
}

std::vector<OpEntry> ListOps(const Environment& environment) {
  std::vector<OpEntry> entries;
  for (const ops::Library::Entry& entry : ops::Library(environment.ops).List())
    entries.push_back({entry.name, entry.folder, entry.error ? ToString(*entry.error) : ""});
  return entries;
}

assay::Result<ops::Instance> InstanceOf(const Environment& environment, const Question& question) {
  ASSAY_TRY(ops::OpSpec op, ops::Library(environment.ops).Find(question.op));
  return ops::MakeInstance(std::move(op), question.binding, question.arch);
}

}  // namespace assay::api

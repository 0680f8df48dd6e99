// assay ops list | show: the library.
#include "cli/ops.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "ops/op.h"
#include "ops/properties.h"

namespace assay::cli {
namespace {

using ops::OpSpec;

std::string ShapeText(const ops::TensorSpec& tensor) {
  if (tensor.is_scalar) return "scalar";
  std::string text;
  for (const auto& extent : tensor.shape) text += (text.empty() ? "[" : ", ") + extent.text();
  return text + "]";
}

std::string DTypesText(const OpSpec& op) {
  std::string text;
  for (const auto& [variable, choices] : op.dtypes) {
    text += (text.empty() ? "" : "; ") + variable + " = ";
    for (std::size_t i = 0; i < choices.size(); ++i)
      text += (i ? ", " : "") + std::string(Name(choices[i]));
  }
  return text;
}

Json TensorsJson(const std::vector<ops::TensorSpec>& tensors) {
  Json array = Json::array();
  for (const auto& tensor : tensors) {
    Json row = {{"name", tensor.name}, {"shape", ShapeText(tensor)}, {"dtype", tensor.dtype_name}};
    if (!tensor.updates.empty()) row["updates"] = tensor.updates;
    if (const std::string relation = ops::RelationText(tensor.relation); !relation.empty())
      row["relation"] = relation;
    array.push_back(std::move(row));
  }
  return array;
}

}  // namespace

Result<OpsListed> ListOps(const ops::Library& library) {
  Json array = Json::array();
  std::string text;
  for (const auto& entry : library.List()) {
    Json row = {{"name", entry.name}, {"folder", entry.folder.string()}};
    if (entry.error) {
      row["error"] = ToString(*entry.error);
      text += fmt::format("{:32} broken: {}\n", entry.name, ToString(*entry.error));
    } else {
      ASSAY_TRY(const OpSpec op, ops::LoadOp(entry.folder));
      row["summary"] = op.summary;
      row["dtypes"] = DTypesText(op);
      text += fmt::format("{:32} {}\n{:32}   {}\n", op.name, op.summary, "", DTypesText(op));
    }
    array.push_back(std::move(row));
  }
  if (array.empty()) {
    return Fail(ErrorKind::kEnvironment, "no ops were found", "ops/",
                "set ASSAY_OPS to a folder of ops, or run assay from its source tree");
  }
  return OpsListed{.text = std::move(text), .json = {{"ops", std::move(array)}}};
}

Json OpToJson(const OpSpec& op) {
  return {{"name", op.name},
          {"summary", op.summary},
          {"folder", op.folder.string()},
          {"digest", op.digest},
          {"dtypes", DTypesText(op)},
          {"inputs", TensorsJson(op.inputs)},
          {"outputs", TensorsJson(op.outputs)},
          {"accumulate", Name(op.contract.accumulate)},
          {"transcript", op.transcript.has_value()}};
}

std::string OpToText(const OpSpec& op) {
  std::string text = op.name + ": " + op.summary + "\n  folder   " + op.folder.string() +
                     "\n  dtypes   " + DTypesText(op) + "\n  axes    ";
  for (const auto& axis : op.axes) {
    text += " " + axis.name;
    if (axis.kind == ops::Axis::Kind::kVariable)
      text += fmt::format("({}..{})", axis.min, axis.max);
    if (axis.expression) text += "=" + axis.expression->text();
  }
  for (const auto& constraint : op.constraints) text += "\n  where    " + constraint.text();
  const auto tensors = [&](const char* title, const std::vector<ops::TensorSpec>& list) {
    for (const auto& tensor : list) {
      text += fmt::format("\n  {:8} {:14} {:24} {:6} {}", title, tensor.name, ShapeText(tensor),
                          tensor.dtype_name, tensor.description);
      if (!tensor.updates.empty()) text += "; overwrites " + tensor.updates;
      if (const std::string relation = ops::RelationText(tensor.relation); !relation.empty())
        text += "; " + relation;
    }
  };
  tensors("input", op.inputs);
  tensors("output", op.outputs);
  text += fmt::format("\n  contract accumulate in {} or better{}", Name(op.contract.accumulate),
                      op.contract.approximate_functions ? ", approximate functions allowed" : "");
  for (const auto& property : op.properties) text += "\n  property " + ops::PropertyText(property);
  return text;
}

namespace {

Result<int> List(bool json) {
  ASSAY_TRY(const OpsListed listed, ListOps(ops::Library::Default()));
  if (json)
    ASSAY_TRY_VOID(PrintJson(listed.json));
  else
    Say(listed.text);
  return kExitDone;
}

Result<int> Show(const std::string& name, bool json) {
  ASSAY_TRY(const OpSpec op, ops::Library::Default().Find(name));
  if (json)
    ASSAY_TRY_VOID(PrintJson(OpToJson(op)));
  else
    Say(OpToText(op));
  return kExitDone;
}

}  // namespace

void AddOps(CLI::App& app, Session& session) {
  CLI::App* ops = app.add_subcommand("ops", "List or show the ops that kernels can be asked for.");
  ops->require_subcommand(1);
  ops->footer(
      "Examples:\n"
      "  assay ops list\n"
      "  assay ops show rms_norm");

  CLI::App* list = ops->add_subcommand("list", "Names, summaries and dtypes of all ops.");
  list->add_flag("--json", session.json, "Print one JSON document on stdout.");
  list->footer(
      "Example:\n"
      "  assay ops list --json\n"
      "Ops are looked for in ops/ beside the program and in $ASSAY_OPS.");
  list->callback([&session] { session.run = [&session] { return List(session.json); }; });

  CLI::App* show = ops->add_subcommand("show", "One op: axes, tensors, contract.");
  auto name = std::make_shared<std::string>();
  show->add_option("op", *name, "Name of an op, or a folder that holds op.json.")->required();
  show->add_flag("--json", session.json, "Print one JSON document on stdout.");
  show->footer(
      "Example:\n"
      "  assay ops show rms_norm");
  show->callback(
      [&session, name] { session.run = [&session, name] { return Show(*name, session.json); }; });
}

}  // namespace assay::cli

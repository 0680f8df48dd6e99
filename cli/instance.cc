#include "cli/instance.h"

#include <map>

namespace assay::cli {

void AddInstanceOptions(CLI::App& command, InstanceOptions& options, OpArgument how) {
  constexpr const char* kHelp = "Name of an op (assay ops list), or a folder that holds op.json.";
  if (how == OpArgument::kOption)
    command.add_option("--op", options.op, kHelp)->required();
  else
    command.add_option("op", options.op, kHelp);
  command
      .add_option("--dtype", options.dtypes,
                  "Dtype of a type variable, e.g. T=bf16. Default: the op's first.")
      ->default_str("");
}

Result<ops::Instance> MakeInstance(const InstanceOptions& options, const std::string& arch) {
  ASSAY_TRY(ops::OpSpec op, ops::Library::Default().Find(options.op));
  std::map<std::string, std::string> choices;
  for (const std::string& text : options.dtypes) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Fail(ErrorKind::kUsage, "'" + text + "' is not NAME=DTYPE", "--dtype",
                  "write e.g. --dtype T=bf16");
    }
    if (!choices.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return Fail(ErrorKind::kUsage, "'" + text.substr(0, equals) + "' is given twice", "--dtype",
                  "choose one: an instance has one dtype a variable");
    }
  }
  return ops::MakeInstance(std::move(op), choices, arch);
}

void AddEffortOption(CLI::App& command, std::string& effort) {
  command.add_option("--effort", effort, "quick, standard or thorough: how many cases.")
      ->check(CLI::IsMember({"quick", "standard", "thorough"}));
}

campaign::Effort ParseEffort(const std::string& effort) {
  if (effort == "quick") return campaign::Effort::kQuick;
  if (effort == "thorough") return campaign::Effort::kThorough;
  return campaign::Effort::kStandard;
}

}  // namespace assay::cli

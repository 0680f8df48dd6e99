#include "ops/load_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "ops/launch_plan.h"
#include "ops/names.h"

namespace assay::ops {
namespace {

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

// A path that must exist and stay inside the op's folder.
Result<Path> Inside(const OpSpec& op, const std::string& relative, const std::string& place) {
  const Path path = Path(relative).lexically_normal();
  if (relative.empty() || path.is_absolute() || *path.begin() == "..") {
    return Bad(fmt::format("'{}' leaves the op's folder", relative), place,
               "give a relative path inside it");
  }
  std::error_code ignored;
  if (!std::filesystem::exists(op.folder / path, ignored)) {
    return Bad(fmt::format("there is no '{}' in the op's folder", relative), place, "add the file");
  }
  return op.folder / path;
}

// `kind` may be stated where it is not null.
Result<SourceRef> ReadSource(const OpSpec& op, const Json& object, const std::string& place,
                             std::string* kind) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(object, place));
  if (kind != nullptr) {
    ASSAY_TRY(*kind, reader.Optional<std::string>("kind", *kind));
    if (std::ranges::find(TruthKinds(), *kind) == TruthKinds().end()) {
      return UnknownName("kind of reference", *kind, {TruthKinds().begin(), TruthKinds().end()},
                         reader.PlaceOf("kind"));
    }
  }
  ASSAY_TRY(const std::string source, reader.Required<std::string>("source"));
  ASSAY_TRY(const std::string launch, reader.Required<std::string>("launch"));
  ASSAY_TRY_VOID(reader.Finish());
  SourceRef ref;
  ASSAY_TRY(ref.source, Inside(op, source, reader.PlaceOf("source")));
  ASSAY_TRY(ref.launch, Inside(op, launch, reader.PlaceOf("launch")));
  return ref;
}

// What is named must exist; what is not named is taken when it is there.
Result<std::optional<Path>> Companion(const OpSpec& op, const std::string& named,
                                      const std::string& usual, const std::string& place) {
  std::error_code ignored;
  if (named.empty() && !std::filesystem::exists(op.folder / usual, ignored)) return std::nullopt;
  ASSAY_TRY(const Path path, Inside(op, named.empty() ? usual : named, place));
  return path;
}

Status CheckPlan(OpSpec op, const Path& launch) {
  // What runs bind to their number type.
  op.dtypes["Real"] = {DType::kF64};
  const std::string file = launch.string();
  ASSAY_TRY(const Json document, ReadJsonFile(file));
  ASSAY_TRY(const LaunchPlan plan, ParseLaunchPlan(document, file, op));
  static_cast<void>(plan);
  return {};
}

}  // namespace

Status ReadSources(ObjectReader& reader, OpSpec& op) {
  ASSAY_TRY(const Json reference, reader.Required<Json>("reference"));
  ASSAY_TRY(op.reference, ReadSource(op, reference, reader.PlaceOf("reference"), &op.truth));
  std::error_code ignored;
  if (const Path parts = op.folder / kPartsFile; std::filesystem::exists(parts, ignored)) {
    const Path source = op.folder / kPartsSource;
    op.parts = {.source = std::filesystem::exists(source, ignored) ? source : op.reference.source,
                .launch = parts};
  }
  if (reader.Has("generator")) {
    ASSAY_TRY(const Json generator, reader.Required<Json>("generator"));
    ASSAY_TRY(op.generator, ReadSource(op, generator, reader.PlaceOf("generator"), nullptr));
  }
  const bool generated = std::ranges::any_of(op.inputs, &TensorSpec::IsGenerated);
  if (generated && !op.generator) {
    return Bad("an input is generated, but there is no generator", reader.PlaceOf("generator"),
               R"(add /generator, as {"source": "generator.cu", "launch": "generator.json"})");
  }
  if (!generated && op.generator) {
    return Bad("there is a generator, but no input is generated", reader.PlaceOf("generator"),
               R"(give an input the domain {"kind": "generated"}, or remove it)");
  }
  ASSAY_TRY(const std::string naive, reader.Optional<std::string>("naive", ""));
  ASSAY_TRY(op.naive, Companion(op, naive, "naive", reader.PlaceOf("naive")));
  ASSAY_TRY(const std::string transcript, reader.Optional<std::string>("transcript", ""));
  ASSAY_TRY(op.transcript,
            Companion(op, transcript, "transcript.jsonl", reader.PlaceOf("transcript")));
  return {};
}

Status CheckPlans(const OpSpec& op) {
  // What other kinds of references have in its place is their source's to read.
  if (op.truth == TruthKinds().front()) {
    ASSAY_TRY_VOID(CheckPlan(ReferenceOf(op), op.reference.launch));
    if (op.parts) ASSAY_TRY_VOID(CheckPlan(ReferenceOf(op), op.parts->launch));
  }
  if (!op.generator) return {};
  const OpSpec generator = GeneratorOf(op);
  return CheckPlan(generator, generator.reference.launch);
}

}  // namespace assay::ops

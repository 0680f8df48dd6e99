#include "agent/prompts/task_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"
#include "ops/properties.h"

namespace assay::prompts {
namespace {

constexpr std::size_t kMaxReferenceBytes = 32 * 1024;
constexpr std::size_t kMaxListBytes = 8 * 1024;
constexpr std::size_t kMaxWorkloads = 12;

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
struct TargetLimits {
  std::string_view arch;
  int shared_kib;  // dynamic shared memory a block may opt in to
  int threads_per_sm;
  std::string_view note;
};
constexpr std::array<TargetLimits, 11> kTargets = {{
    {"sm_75", 64, 1024, "Turing: no bf16 arithmetic, no cp.async"},
    {"sm_80", 163, 2048, "Ampere (A100): cp.async, bf16 and tf32 tensor cores"},
    {"sm_86", 99, 1536, "Ampere: cp.async, bf16 and tf32 tensor cores"},
    {"sm_87", 163, 1536, "Ampere (Orin)"},
    {"sm_89", 99, 1536, "Ada: fp8 tensor cores"},
    {"sm_90", 227, 2048, "Hopper: clusters, TMA, mbarrier, wgmma (with sm_90a)"},
    {"sm_100", 227, 2048, "Blackwell (B200)"},
    {"sm_103", 227, 2048, "Blackwell Ultra"},
    {"sm_110", 227, 1536, "Blackwell (Thor)"},
    {"sm_120", 99, 1536, "Blackwell (RTX)"},
    {"sm_121", 99, 1536, "Blackwell (Spark)"},
}};

constexpr std::string_view kLimitsApply =
    "\nA launch beyond them is refuted at any shape of the domain: registers of a block are those "
    "of a thread times its threads, and "
    "static\nand dynamic shared memory count together. So is a kernel that spills more than 1024 "
    "bytes of registers.";

std::string Number(double value) { return fmt::format("{:g}", value); }

std::string DescribeAxis(const ops::Axis& axis) {
  std::string text = "- `" + axis.name + "`";
  switch (axis.kind) {
    case ops::Axis::Kind::kVariable:
      text += axis.max == INT64_MAX ? fmt::format(": at least {}", axis.min)
                                    : fmt::format(": {} to {}", axis.min, axis.max);
      break;
    case ops::Axis::Kind::kConstant:
      text += fmt::format(" = {}", axis.value);
      break;
    case ops::Axis::Kind::kExpression:
      text += " = `" + (axis.expression ? axis.expression->text() : "") + "`";
      break;
  }
  return axis.description.empty() ? text : text + ". " + axis.description;
}

std::string DescribeDomain(const ops::Domain& domain) {
  std::string text;
  switch (domain.kind) {
    case ops::Domain::Kind::kAny:
      text = fmt::format("any finite value; typically of mean {} and standard deviation {}",
                         Number(domain.typical_mean), Number(domain.typical_scale));
      break;
    case ops::Domain::Kind::kRange:
      text = fmt::format("values from {} to {}", Number(domain.low), Number(domain.high));
      break;
    case ops::Domain::Kind::kIndex:
      text = "indices from 0 to " + domain.of + " - 1, in any order; they may repeat";
      break;
    case ops::Domain::Kind::kChoice:
      for (const double value : domain.values)
        text += (text.empty() ? "one of " : ", ") + Number(value);
      break;
    case ops::Domain::Kind::kGenerated:
      text = "values that follow from the other inputs";
      break;
  }
  if (domain.allow_nan) text += "; NaN may occur";
  if (domain.allow_infinity) text += "; infinities may occur";
  return text;
}

std::string DescribeShape(const ops::TensorSpec& tensor) {
  if (tensor.is_scalar) return "scalar";
  std::string text;
  for (const ops::Expression& extent : tensor.shape)
    text += (text.empty() ? "" : ", ") + extent.text();
  return "(" + text + ")";
}

std::string DescribeTensors(const ops::Instance& instance,
                            const std::vector<ops::TensorSpec>& tensors, bool inputs) {
  std::string text;
  for (const ops::TensorSpec& tensor : tensors) {
    text += fmt::format("- `{}`: {}, {}", tensor.name, Name(instance.TypeOf(tensor)),
                        DescribeShape(tensor));
    if (inputs) text += "; " + DescribeDomain(tensor.domain);
    if (!tensor.updates.empty()) {
      text += fmt::format("; overwrites `{}`: one piece of memory, which holds `{}` before",
                          tensor.updates, tensor.updates);
    }
    if (const std::string relation = ops::RelationText(tensor.relation); !relation.empty())
      text += "; " + relation;
    if (!tensor.description.empty()) text += ". " + tensor.description;
    text += "\n";
  }
  return text.empty() ? "none\n" : text;
}

// Where the bound leaves room for the way in which tensor cores add, and where it does not.
std::string DescribeTensorCores(const ops::Instance& instance) {
  const bool wide = std::ranges::any_of(instance.op.inputs, [&](const ops::TensorSpec& input) {
    const DType type = instance.TypeOf(input);
    return !input.is_scalar && IsFloat(type) && Precision(type) > 11;
  });
  if (instance.op.contract.tensor_cores && !wide) {
    return "Tensor cores (mma, wgmma) may multiply the 16-bit inputs, with f32 accumulators. "
           "Intermediate results that are "
           "rounded to 16 bits\nfor them count as errors of yours.\n";
  }
  if (instance.op.contract.tensor_cores) {
    return "Tensor cores are not allowed for these dtypes: TF32 and 16-bit operands drop bits of "
           "f32 inputs.\n";
  }
  return "Tensor cores are not provided for: the allowed error has no room for TF32, for operands "
         "of 16 bits, or for sums "
         "that truncate.\n";
}

std::string DescribeContract(const ops::Instance& instance) {
  const ops::Contract& contract = instance.op.contract;
  std::string text = fmt::format(
      "Accumulate in {} (or wider), round once when storing. The allowed error of an element is "
      "what an honest implementation\n"
      "with that accumulator may have, plus the rounding of the output; it is checked per element, "
      "per row, and for bias.\n",
      Name(contract.accumulate));
  text += contract.approximate_functions
              ? "The hardware's approximate functions (rsqrt, exp, division) are allowed.\n"
              : "Approximate functions are not allowed: use the correctly rounded ones.\n";
  text += DescribeTensorCores(instance);
  text += contract.reassociation ? "Sums may be reordered.\n"
                                 : "Sums must be added in the reference's order.\n";
  for (const auto& [output, exact] : contract.exact_outputs) {
    if (exact) text += "`" + output + "` must agree bit for bit.\n";
  }
  text += contract.nan_policy == "propagate" ? "NaN in, NaN out, as in the reference.\n"
                                             : "NaN policy: " + contract.nan_policy + ".\n";
  if (!contract.why.empty()) text += contract.why + "\n";
  return text;
}

// What a property asks of a kernel. {0} and {1} are its arguments.
struct PropertyWords {
  std::string_view name;
  std::string_view meaning;
  bool bits_of_deterministic = false;  ///< Bits must agree where the op is deterministic as well.
};
constexpr PropertyWords kPropertyWords[] = {
    {"deterministic",
     "equal inputs give equal bits, on every run and under every schedule: no atomics on "
     "floating-point values whose order "
     "could differ"},
    {"any_alignment", "pointers are aligned to their dtype only, not to 256 bytes"},
    {"independent_rows", "a row of an output along `{1}` depends on no other row of `{0}`", true},
    {"permutation_equivariant", "inputs permuted along `{0}` give outputs permuted alike"},
    {"scale_equivariant", "doubling `{0}` doubles `{1}`", true},
    {"linear", "`{1}` of a sum of two `{0}` is the sum of theirs"},
    {"scale_invariant", "doubling `{0}` changes nothing"},
    {"shift_invariant", "adding a constant to `{0}` changes nothing"},
    {"idempotent", "`{1}` taken for `{0}` gives `{1}` again"},
    {"padding_neutral", "zeros appended along `{0}` change nothing"},
    {"batch_split", "the first half along `{0}` alone gives the first half of the outputs"},
};

std::string DescribeProperty(const ops::OpSpec& op, const ops::Property& property) {
  std::string text = "- " + ops::PropertyText(property);
  const auto words = std::ranges::find(kPropertyWords, property.name, &PropertyWords::name);
  if (words == std::end(kPropertyWords)) return text;
  std::string meaning(words->meaning);
  for (std::size_t i = 0; i < property.arguments.size(); ++i) {
    const std::string place = fmt::format("{{{}}}", i);
    for (auto at = meaning.find(place); at != std::string::npos; at = meaning.find(place))
      meaning.replace(at, place.size(), property.arguments[i]);
  }
  text += ": " + meaning;
  if (property.name == "deterministic" || property.name == "any_alignment") return text + ".";
  return text + (words->bits_of_deterministic && ops::IsDeterministic(op)
                     ? ". Bits must agree."
                     : ". To within the allowed error.");
}

template <class T, class F>
std::string Listed(const std::vector<T>& items, const F& describe, const char* none) {
  std::string text;
  for (const T& item : items) text += describe(item) + "\n";
  return text.empty() ? none : Shorten(text, kMaxListBytes);
}

// The first example that is not about the op itself.
Result<std::string> Example(const std::string& op, const PromptLibrary& prompts) {
  for (const std::string& name : prompts.Names()) {
    if (name.starts_with("example/") && name != "example/" + op + ".md")
      return prompts.Render(name, {});
  }
  return Fail(ErrorKind::kEnvironment, "no example for another op than " + op,
              (prompts.folder() / "example").string(), "restore prompts/example from the sources");
}

void DropFinalNewline(std::string& text) {
  while (text.ends_with('\n')) text.pop_back();
}

}  // namespace

std::string DescribeTarget(std::string_view arch) {
  std::string text = fmt::format(
      "{}: up to 1024 threads a block, 255 registers a thread, 65536 registers a block, 48 KiB "
      "static shared memory a block",
      arch);
  std::string_view base = arch;
  while (!base.empty() && base.back() >= 'a' && base.back() <= 'z') base.remove_suffix(1);
  for (const TargetLimits& target : kTargets) {
    if (target.arch != base) continue;
    text += fmt::format(
        ", {} KiB of shared memory in all\nwhen it is dynamic (`shared_bytes`). {} resident "
        "threads a multiprocessor. {}.",
        target.shared_kib, target.threads_per_sm, target.note);
    return text + std::string(kLimitsApply);
  }
  return text + "." + std::string(kLimitsApply);
}

Result<Variables> TaskVariables(const ops::Instance& instance, const PromptLibrary& prompts) {
  const ops::OpSpec& op = instance.op;
  ASSAY_TRY(const std::string reference, ReadFile(op.reference.source, 4u << 20));
  ASSAY_TRY(const std::string launch, ReadFile(op.reference.launch, 4u << 20));
  ASSAY_TRY(const std::string example, Example(op.name, prompts));
  std::string binding;
  for (const auto& [variable, dtype] : instance.binding) {
    binding += (binding.empty() ? "" : ", ") + fmt::format("{} = {}", variable, Name(dtype));
  }
  std::vector<ops::Workload> workloads = op.workloads;
  if (workloads.size() > kMaxWorkloads) workloads.resize(kMaxWorkloads);
  Variables variables = {
      {"op", op.name},
      {"summary", op.summary},
      {"target", instance.arch},
      {"binding", binding.empty() ? "the dtypes below" : binding},
      {"axes", Listed(op.axes, DescribeAxis, "none\n")},
      {"inputs", DescribeTensors(instance, op.inputs, true)},
      {"outputs", DescribeTensors(instance, op.outputs, false)},
      {"constraints",
       Listed(
           op.constraints, [](const ops::Expression& e) { return "- `" + e.text() + "`"; },
           "none beyond the ranges above: every shape in them must work\n")},
      {"precision", DescribeContract(instance)},
      {"properties",
       Listed(
           op.properties,
           [&](const ops::Property& property) { return DescribeProperty(op, property); },
           "none\n")},
      {"workloads", Listed(
                        workloads,
                        [](const ops::Workload& workload) {
                          std::string text = "-";
                          for (const auto& [axis, value] : workload.axes)
                            text += fmt::format(" {}={}", axis, value);
                          return workload.note.empty() ? text : text + " (" + workload.note + ")";
                        },
                        "not known\n")},
      {"limits", DescribeTarget(instance.arch)},
      {"reference", Shorten(ValidUtf8(reference), kMaxReferenceBytes)},
      {"reference_launch", Shorten(ValidUtf8(launch), kMaxListBytes)},
      {"example", example},
  };
  for (auto& [name, value] : variables) DropFinalNewline(value);
  return variables;
}

Result<std::vector<runs::Message>> TaskMessages(const ops::Instance& instance,
                                                const PromptLibrary& prompts,
                                                const std::optional<Sister>& sister) {
  ASSAY_TRY(std::string system, prompts.Render("system.md", {}));
  ASSAY_TRY(const Variables variables, TaskVariables(instance, prompts));
  ASSAY_TRY(std::string task, prompts.Render("task.md", variables));
  if (sister) {
    Variables shown = {{"sister", sister->instance},
                       {"kernel", ValidUtf8(sister->candidate.kernel)},
                       {"launch", ValidUtf8(sister->candidate.launch)}};
    for (auto& [name, value] : shown) DropFinalNewline(value);
    ASSAY_TRY(const std::string text, prompts.Render("sister.md", shown));
    task += "\n" + text;
  }
  return std::vector<runs::Message>{{runs::Role::kSystem, std::move(system), true},
                                    {runs::Role::kUser, std::move(task), true}};
}

}  // namespace assay::prompts

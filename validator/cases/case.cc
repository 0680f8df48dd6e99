#include "validator/cases/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/rng.h"
#include "validator/cases/input_store.h"
#include "validator/cases/profiles.h"

namespace assay::cases {
namespace {

// A literal beyond this is a mistake or an attack, not a small test.
constexpr std::size_t kMaxLiteral = 4096;
// Values are spelled out in descriptions up to this many elements an input.
constexpr std::int64_t kSpelledElements = 12;

/// Integers print without a fraction: ids=[0,0,1].
struct PlainNumber : AnyNumber {
  static Json Write(double value) {
    if (std::nearbyint(value) == value && std::fabs(value) < 0x1p53 &&
        !(value == 0 && std::signbit(value))) {
      return static_cast<std::int64_t>(value);
    }
    return AnyNumber::Write(value);
  }
};
using Literal = ListOf<double, PlainNumber>;

const Profile* FindGiven(const Case& value, const std::string& input) {
  const auto found = value.profiles.find(input);
  return found == value.profiles.end() ? nullptr : &found->second;
}

// Literals that fit one line are the plainest of all: one sees the values.
int Rank(const ops::Instance& instance, const ops::TensorSpec& spec, const Profile& profile) {
  if (profile.kind == "literal") return -1;
  const ProfileRow* row = FindProfile(profile.kind, ClassOf(spec, instance.TypeOf(spec)));
  return row == nullptr ? 100 : row->rank;
}

// 0 before 1 before -1 before other integers before fractions; NaN and infinities last.
double Plainness(double value) {
  if (std::isnan(value)) return 1e30;
  if (std::isinf(value)) return 1e29;
  const double magnitude = std::fabs(value);
  const double fraction = std::nearbyint(value) == value ? 0.0 : 1e6;
  return std::min(2.0 * magnitude, 1e28) + (std::signbit(value) ? 1.0 : 0.0) + fraction;
}

std::string Spell(const Tensor& tensor) {
  std::string text = tensor.shape.empty() ? "" : "[";
  for (std::int64_t i = 0; i < tensor.elements; ++i) {
    if (i > 0) text += ",";
    const Json number = PlainNumber::Write(tensor.At(i));
    text += number.is_string() ? number.get<std::string>() : number.dump();
  }
  return text + (tensor.shape.empty() ? "" : "]");
}

std::int64_t BoundOf(const ops::TensorSpec& spec, const ops::AxisValues& axes) {
  const auto found = axes.find(spec.domain.of);
  return found == axes.end() ? 0 : found->second;
}

}  // namespace
}  // namespace assay::cases

namespace assay {

/// Its kind, and beside it its parameters, or the values of a literal.
template <>
struct JsonForm<cases::Profile> {
  static Json Write(const cases::Profile& profile) {
    Json json = {{"kind", profile.kind}};
    for (const auto& [name, value] : profile.parameters)
      json[name] = cases::PlainNumber::Write(value);
    if (profile.kind == "literal") json["values"] = cases::Literal::Write(profile.literal);
    return json;
  }
  static Result<cases::Profile> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
    cases::Profile profile;
    ASSAY_TRY(profile.kind, reader.Required<std::string>("kind"));
    if (profile.kind == "literal") {
      ASSAY_TRY(const Json values, reader.Required<Json>("values"));
      if (values.size() > cases::kMaxLiteral) {
        return Fail(ErrorKind::kMalformedInput, "must be an array of at most 4096 numbers",
                    reader.PlaceOf("values"));
      }
      ASSAY_TRY(profile.literal, cases::Literal::Read(values, reader.PlaceOf("values")));
      ASSAY_TRY_VOID(reader.Finish());
      return profile;
    }
    for (const auto& [key, value] : json.items()) {
      if (key == "kind") continue;
      ASSAY_TRY(profile.parameters[key], cases::PlainNumber::Read(value, reader.PlaceOf(key)));
    }
    return profile;
  }
};

}  // namespace assay

namespace assay::cases {

static constexpr auto JsonFields(const Case*) {
  using C = Case;
  return std::tuple(Required("axes", &C::axes), Required("seed", &C::seed),
                    Optional("profiles", &C::profiles), Optional("origin", &C::origin));
}
Json ToJson(const Case& value) { return WriteJson(value); }
Result<Case> CaseFromJson(const Json& json, std::string place) {
  return ReadJson<Case>(json, place);
}

std::string Describe(const Case& value, const ops::Instance& instance) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  for (const ops::Axis& axis : instance.op.axes) {
    const auto found = value.axes.find(axis.name);
    if (found != value.axes.end()) add(axis.name + "=" + std::to_string(found->second));
  }
  // Materialising is affordable for what can be spelled only.
  const bool small = TotalElements(instance, value.axes) <= 4096;
  const Result<Materialised> filled =
      small ? MaterialisePlain(instance, value) : Fail(ErrorKind::kLimit, "not spelled out");
  bool seeded = false;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (spec.IsGenerated()) continue;  // follows from the others
    if (filled) {
      const auto tensor = filled->inputs.find(spec.name);
      if (tensor != filled->inputs.end() && tensor->second.elements <= kSpelledElements) {
        add(spec.name + "=" + Spell(tensor->second));
        continue;
      }
    }
    const Profile* given = FindGiven(value, spec.name);
    const Profile profile = given != nullptr ? *given : DefaultProfile(spec, instance.TypeOf(spec));
    std::string parameters;
    for (const auto& [name, number] : profile.parameters) {
      parameters +=
          (parameters.empty() ? "" : ",") + name + "=" + PlainNumber::Write(number).dump();
    }
    add(spec.name + "~" + profile.kind + (parameters.empty() ? "" : "(" + parameters + ")"));
    seeded = seeded || profile.kind != "literal";
  }
  if (seeded) add("seed=" + std::to_string(value.seed));
  return text;
}

std::int64_t TotalElements(const ops::Instance& instance, const ops::AxisValues& variables) {
  const Result<ops::AxisValues> axes = ops::ResolveAxes(instance.op, variables);
  if (!axes) return INT64_MAX;
  std::int64_t total = 0;
  for (const auto* specs : {&instance.op.inputs, &instance.op.outputs}) {
    for (const ops::TensorSpec& spec : *specs) {
      std::int64_t count = 1;
      if (!spec.is_scalar) {
        const Result<Shape> shape = ops::ResolveShape(spec, *axes);
        if (!shape) return INT64_MAX;
        const Result<std::int64_t> elements = ElementCount(*shape);
        if (!elements) return INT64_MAX;
        count = *elements;
      }
      if (__builtin_add_overflow(total, count, &total)) return INT64_MAX;
    }
  }
  return total;
}

bool ShortlexLess(const ops::Instance& instance, const Case& a, const Case& b) {
  const std::int64_t total_a = TotalElements(instance, a.axes);
  const std::int64_t total_b = TotalElements(instance, b.axes);
  if (total_a != total_b) return total_a < total_b;
  for (const ops::Axis& axis : instance.op.axes) {
    const auto in_a = a.axes.find(axis.name);
    const auto in_b = b.axes.find(axis.name);
    const std::int64_t value_a = in_a == a.axes.end() ? 0 : in_a->second;
    const std::int64_t value_b = in_b == b.axes.end() ? 0 : in_b->second;
    if (value_a != value_b) return value_a < value_b;
  }
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (spec.IsGenerated()) continue;
    const Profile fallback = DefaultProfile(spec, instance.TypeOf(spec));
    const Profile* given_a = FindGiven(a, spec.name);
    const Profile* given_b = FindGiven(b, spec.name);
    const Profile& profile_a = given_a != nullptr ? *given_a : fallback;
    const Profile& profile_b = given_b != nullptr ? *given_b : fallback;
    const int rank_a = Rank(instance, spec, profile_a);
    const int rank_b = Rank(instance, spec, profile_b);
    if (rank_a != rank_b) return rank_a < rank_b;
    if (profile_a.literal.size() != profile_b.literal.size()) {
      return profile_a.literal.size() < profile_b.literal.size();
    }
    double plain_a = 0;
    double plain_b = 0;
    for (const double value : profile_a.literal) plain_a += Plainness(value);
    for (const double value : profile_b.literal) plain_b += Plainness(value);
    if (plain_a != plain_b) return plain_a < plain_b;
  }
  return a.seed < b.seed;
}

namespace {

/// What an input's values are a function of.
struct Drawing {
  const ops::Instance& instance;
  const ops::TensorSpec& spec;
  const Profile& profile;
  std::uint64_t stream;
  std::int64_t bound;

  Result<Tensor> Draw(Shape shape) const {
    ASSAY_TRY(Tensor tensor, Tensor::Create(instance.TypeOf(spec), std::move(shape)));
    ASSAY_TRY_VOID(Fill(spec, profile, stream, bound, tensor));
    return tensor;
  }
  std::string Key(const Shape& shape) const {
    return fmt::format("{} {} {} [{}] {} {} {}", instance.Id(), instance.op.digest, spec.name,
                       fmt::join(shape, ","), stream, bound,
                       CompactJson(JsonForm<Profile>::Write(profile)));
  }
};

}  // namespace

Result<Materialised> MaterialisePlain(const ops::Instance& instance, const Case& value,
                                      InputStore* store) {
  Materialised filled;
  ASSAY_TRY(filled.axes, ops::ResolveAxes(instance.op, value.axes));
  for (const auto& [input, profile] : value.profiles) {
    const ops::TensorSpec* spec = instance.op.FindInput(input);
    if (spec == nullptr) {
      return Fail(ErrorKind::kMalformedInput,
                  "op '" + instance.op.name + "' has no input '" + input + "'",
                  "case: /profiles/" + input);
    }
    if (spec->IsGenerated()) {
      return Fail(ErrorKind::kMalformedInput,
                  "the input '" + input + "' is generated: it cannot be given values",
                  "case: /profiles/" + input, "remove its profile");
    }
  }
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (spec.IsGenerated()) continue;
    Shape shape;
    if (!spec.is_scalar) {
      ASSAY_TRY(shape, ops::ResolveShape(spec, filled.axes));
    }
    const Profile* given = FindGiven(value, spec.name);
    const Profile profile = given != nullptr ? *given : DefaultProfile(spec, instance.TypeOf(spec));
    const Drawing drawing{instance, spec, profile, DeriveSeed(value.seed, "input:" + spec.name),
                          BoundOf(spec, filled.axes)};
    const bool is_kept = store != nullptr && ElementCount(shape).value_or(0) >= kLeastKeptElements;
    ASSAY_TRY(Tensor tensor,
              is_kept ? store->Get(drawing.Key(shape), [&] { return drawing.Draw(shape); })
                      : drawing.Draw(shape));
    filled.inputs.emplace(spec.name, std::move(tensor));
  }
  return filled;
}

Result<Materialised> Materialise(const ops::Instance& instance, const Case& value) {
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (!spec.IsGenerated()) continue;
    return Fail(ErrorKind::kUnsupported,
                "the input '" + spec.name + "' is made by a generator, which nothing runs here",
                "op '" + instance.op.name + "'");
  }
  return MaterialisePlain(instance, value);
}

std::optional<Case> SpellOut(const ops::Instance& instance, const Case& value) {
  const auto filled = MaterialisePlain(instance, value);
  if (!filled) return std::nullopt;
  Case spelled = value;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (spec.is_scalar || spec.IsGenerated()) continue;
    const Tensor& tensor = filled->inputs.find(spec.name)->second;
    if (tensor.elements > static_cast<std::int64_t>(kMaxLiteral)) return std::nullopt;
    Profile literal{.kind = "literal", .parameters = {}, .literal = {}};
    for (std::int64_t i = 0; i < tensor.elements; ++i) literal.literal.push_back(tensor.At(i));
    spelled.profiles[spec.name] = std::move(literal);
  }
  return spelled;
}

}  // namespace assay::cases

#include <fmt/format.h>

#include <algorithm>

#include "validator/speed/meter.h"

namespace assay::speed {
namespace {

/// The dtype that the op's products are made of: that of its first floating-point input.
DType OperandOf(const ops::Instance& instance) {
  for (const ops::TensorSpec& input : instance.op.inputs) {
    if (!input.is_scalar && IsFloat(instance.TypeOf(input))) return instance.TypeOf(input);
  }
  return DType::kF32;
}

}  // namespace

Result<Limit> LimitOf(const ops::Instance& instance, const ops::SpeedContract& contract,
                      const Rates& rates, const ops::AxisValues& axes, std::size_t launches) {
  ASSAY_TRY(const ops::LeastWork work, ops::LeastWorkOf(instance, contract, axes));
  Limit limit{
      .seconds = rates.launch_seconds * static_cast<double>(std::max<std::size_t>(launches, 1)),
      .by = "launch",
      .bytes = work.bytes,
      .operations = work.operations};
  const auto raise = [&](double seconds, const char* by) {
    if (seconds <= limit.seconds) return;
    limit.seconds = seconds;
    limit.by = by;
  };
  if (rates.copy_bytes_per_second > 0) raise(work.bytes / rates.copy_bytes_per_second, "memory");
  const bool matrix = contract.unit == ops::SpeedContract::Unit::kMatrix;
  const std::string_view dtype = matrix ? Name(OperandOf(instance)) : "f32";
  const auto rate = std::ranges::find(rates.matrix, dtype, &MatrixRate::dtype);
  if (rate != rates.matrix.end()) {
    raise(work.operations / rate->operations_per_second, "arithmetic");
  } else if (matrix) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("the card's rate of {} products is not known{}{}", dtype,
                            rates.no_matrix.empty() ? "" : ": ", rates.no_matrix),
                instance.op.name);
  }
  return limit;
}

}  // namespace assay::speed

// How the parts that executions share with reports and counterexamples stand in JSON.
#pragma once

#include "base/fields.h"
#include "validator/execution/execution.h"

namespace assay {

constexpr auto JsonFields(const Checks*) {
  using C = Checks;
  return std::tuple(Required("bounds", &C::bounds), Required("initialisation", &C::initialisation),
                    Required("race", &C::race), Required("barrier", &C::barrier),
                    Required("coverage", &C::coverage), Required("order", &C::order),
                    Required("shadow_values", &C::shadow_values));
}
constexpr auto JsonFields(const BufferRange*) {
  using B = BufferRange;
  return std::tuple(Required("buffer", &B::buffer), Required("first", &B::first),
                    Required("bytes", &B::bytes));
}
constexpr auto JsonFields(const OrderPair*) {
  using O = OrderPair;
  return std::tuple(Required("launch", &O::launch), Required("first_warp", &O::first_warp),
                    Required("first_access", &O::first_access),
                    Required("second_warp", &O::second_warp),
                    Required("second_access", &O::second_access));
}
std::span<const std::string_view> JsonWords(const Schedule::Policy*);
constexpr auto JsonFields(const Schedule*) {
  using S = Schedule;
  return std::tuple(Required("policy", &S::policy), Required("seed", &S::seed),
                    Sparse<Between<std::uint32_t, 0, 100>>("stale", &S::stale),
                    Sparse("hold", &S::hold));
}

}  // namespace assay

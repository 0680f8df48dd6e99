// How a Statistic stands in JSON, in findings and in verdicts.
#pragma once

#include "base/fields.h"
#include "validator/findings/finding.h"

namespace assay {

constexpr auto JsonFields(const Statistic*) {
  using S = Statistic;
  return std::tuple(Required("name", &S::name), Required<AnyNumber>("value", &S::value),
                    Optional<AnyNumber>("limit", &S::limit), Optional("note", &S::note));
}

}  // namespace assay

// NVIDIA's management library, opened at run time: what the card's clocks, power and temperature are
// while something is timed. Where it is missing, or may not be used, that is what is said.
//
//   Management management;
//   management.Open("0000:18:00.0");
//   Conditions now = management.Now();
//
// One thread.
#pragma once

#include <string>

#include "validator/execution/timing.h"

namespace assay::gpu {

class Management {
 public:
  /// `bus_id`: of the device, as the driver prints it.
  void Open(const char* bus_id);
  Conditions Now() const;

 private:
  std::string missing_ = "not opened";
  void* device_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*throttle_)(void*, unsigned long long*) = nullptr;
};

}  // namespace assay::gpu

// One GPU that runs executions: what the device worker is made of.
//
//   ASSAY_TRY(const Driver driver, OpenDriver());
//   ASSAY_TRY(auto device, Device::Open(driver, 0));
//   Report report = device->Run(execution, buffers);
//
// A candidate's context is its own: another program begins a new one, and a small kernel with a known
// answer is run before anything is believed. What a GPU can see of a kernel's conduct is little:
// writes into the guard zones round buffers and into inputs, and what stops it. Report::watched says
// so.
//
// One thread. A kernel that hangs, hangs the call: whoever asked kills the process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "validator/execution/execution.h"
#include "validator/gpu/driver.h"
#include "validator/gpu/memory.h"

namespace assay::gpu {

class Device {
 public:
  static Result<std::unique_ptr<Device>> Open(const Driver& driver, int number);
  ~Device();

  /// "NVIDIA H100 80GB HBM3, driver 13.0".
  const std::string& name() const { return name_; }

  /// After a fault of a kernel the driver serves this process no more: another one has to go on.
  bool spent() const { return spent_; }

  /// Runs the execution's machine code, or what the driver makes of its PTX where it has none.
  Report Run(const Execution& execution, std::span<const std::span<std::byte>> buffers);

 private:
  Device(const Driver& driver, int number, std::string name)
      : driver_(driver), number_(number), name_(std::move(name)), memory_(driver_) {}

  /// A new context, in which the known answer comes out. An error means that the GPU is unwell.
  Status Renew();
  Status Canary();
  void Execute(const Execution& execution, std::span<const std::span<std::byte>> buffers,
               Report& report);
  /// False: the launch was refused, and the report says why.
  bool Launch(const assay::Launch& launch, Report& report);
  void NoteFault(const DriverFault& fault, std::string_view where, Report& report);

  Driver driver_;
  int number_ = 0;
  std::string name_;
  DeviceMemory memory_;
  Module module_ = nullptr;
  std::string program_;  ///< Digest of what is loaded.
  bool retained_ = false;
  bool spent_ = false;
  bool sick_ = true;  ///< The context is to be renewed before it is used again.
};

}  // namespace assay::gpu

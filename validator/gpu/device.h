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
// The same buffers and launches are timed (device_timing.cc), run again and again under pressure
// (device_stress.cc), and compared with what the card can do at all (device_rates.cc).
//
// One thread. A kernel that hangs, hangs the call: whoever asked kills the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "validator/execution/execution.h"
#include "validator/execution/timing.h"
#include "validator/gpu/driver.h"
#include "validator/gpu/management.h"
#include "validator/gpu/matrix_library.h"
#include "validator/gpu/memory.h"
#include "validator/gpu/prepared_launch.h"
#include "validator/gpu/tensor_library.h"

namespace assay::gpu {

class Device {
 public:
  static Result<std::unique_ptr<Device>> Open(const Driver& driver, int number);
  ~Device();

  /// "NVIDIA H100 80GB HBM3, driver 13.0".
  const std::string& name() const { return name_; }
  /// GPUs that this machine has.
  int count() const { return count_; }

  /// After a fault of a kernel the driver serves this process no more: another one has to go on.
  bool spent() const { return spent_; }

  /// For a tool that watches this process: memory that it can tell apart and that is as undefined as
  /// the kernel's own (DeviceMemory::LieApart).
  void LayBuffersApart(bool apart) { memory_.LieApart(apart); }

  /// Runs the execution's machine code, or what the driver makes of its PTX where it has none.
  Report Run(const Execution& execution, std::span<const std::span<std::byte>> buffers);

  /// Times the slots of an execution. Guards and inputs are looked at as by Run, and the buffers hold
  /// what the last call of each slot left.
  Report Time(const Execution& execution, const TimingPlan& plan,
              std::span<const std::span<std::byte>> buffers, Timing& timing);

  /// Runs an execution again and again and compares bits.
  Report Repeat(const Execution& execution, const StressPlan& plan,
                std::span<const std::span<std::byte>> buffers, Stress& stress);

  /// Where cuBLASLt is; empty: where the loader finds it. It is opened when it is first needed.
  void UseMatrixLibrary(std::string file) { matrix_library_ = std::move(file); }
  /// The same for cuDNN.
  void UseTensorLibrary(std::string file) { tensor_library_ = std::move(file); }
  /// Takes about a second.
  Result<Rates> MeasureRates();
  /// Median time of the vendor's library, with cold caches.
  Result<double> TimeProduct(const MatrixProduct& product);
  /// The same; the library's first row is looked at, so that what is timed is what is meant.
  Result<double> TimeRows(const RowsPrimitive& primitive);

 private:
  Device(const Driver& driver, int number, std::string name)
      : driver_(driver), number_(number), name_(std::move(name)), memory_(driver_) {}

  /// A new context, in which the known answer comes out. An error means that the GPU is unwell.
  Status Renew();
  Status Canary();
  void Execute(const Execution& execution, std::span<const std::span<std::byte>> buffers,
               Report& report);
  /// Makes the execution's program current, in a context of its own. False: the report says why not.
  bool Load(const Execution& execution, Report& report);
  /// False: the launch was refused, and the report says why.
  bool Prepare(const assay::Launch& launch, PreparedLaunch& prepared, Report& report);
  bool Launch(const assay::Launch& launch, Report& report);
  void NoteFault(const DriverFault& fault, std::string_view where, Report& report);

  /// The program's launches and buffers in equal parts, made ready. False: they cannot be.
  struct Slots;
  bool LaySlots(const Execution& execution, std::uint32_t count,
                std::span<const std::span<std::byte>> buffers, Slots& slots, Report& report);
  Outcome RefillSlot(const Slots& slots, std::uint32_t slot, bool zeros);
  Outcome TimeSlot(Slots& slots, std::uint32_t slot, double& seconds);
  /// Whether the outputs hold other bits than `first`; those are put in their place then.
  Outcome CompareSlot(const Slots& slots, std::uint32_t slot, bool& changed);
  Outcome ReadSlot(const Slots& slots, std::uint32_t slot);

  /// Memory of ours beside the buffers; ends with its owner.
  struct Scratch;
  /// Starts one of our kernels on a grid that fills the card. `arguments`: addresses of values.
  Outcome StartTool(const char* name, std::span<void* const> arguments, Stream stream,
                    std::uint32_t blocks = 0, std::uint32_t shared_bytes = 0);
  Outcome Sweep(const Scratch& scratch);
  Outcome Between(const std::function<Outcome()>& work, double& seconds);
  std::unexpected<Error> Failed(const DriverFault& fault, std::string_view what);
  Outcome Noise(const Scratch& scratch, std::string_view dtype);
  /// Median of a call of a library, each on cold caches.
  Result<double> TimeCall(const std::function<int(Stream)>& call, std::string_view name,
                          const Scratch& caches, int times);
  Status ClearCachesWith(Scratch& caches) const;
  Result<double> TimeProduct(const MatrixProduct& product, const Scratch& caches, int times);
  int Attribute(int attribute) const;

  Driver driver_;
  int number_ = 0;
  int count_ = 0;
  std::string name_;
  DeviceMemory memory_;
  Management management_;
  std::string matrix_library_;
  std::unique_ptr<MatrixLibrary> matrices_;
  std::string tensor_library_;
  std::unique_ptr<TensorLibrary> tensors_;
  Module module_ = nullptr;
  Module tools_ = nullptr;
  std::string program_;  ///< Digest of what is loaded.
  bool retained_ = false;
  bool spent_ = false;
  bool sick_ = true;  ///< The context is to be renewed before it is used again.
};

}  // namespace assay::gpu

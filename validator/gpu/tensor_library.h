// The vendor's operations on tensors (cuDNN), opened at run time: what kernels that are no matrix
// product are measured against.
//
//   ASSAY_TRY(auto library, TensorLibrary::Open({}));
//   ASSAY_TRY(const std::size_t bytes, library->WorkspaceFor(primitive));
//   ASSAY_TRY(auto call, library->Plan(primitive, x, y, workspace, bytes));
//   call(stream);    // a cuDNN code
//
// Shapes and numbers are those of the library's documented binary interface (9). What it has as a
// call of its own is what is here; what it builds from a graph of operations needs another library,
// and is not. Needs a current context; one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "validator/execution/timing.h"
#include "validator/gpu/driver.h"

namespace assay::gpu {

class TensorLibrary {
 public:
  /// `file`, or what the loader finds where it is empty. kEnvironment where there is none.
  static Result<std::unique_ptr<TensorLibrary>> Open(const std::string& file);
  ~TensorLibrary();

  /// "cuDNN 9.10.1".
  std::string Version() const;

  /// Bytes of memory that a call needs beside its operands.
  Result<std::size_t> WorkspaceFor(const RowsPrimitive& primitive);
  /// A call on operands at these addresses (256-byte aligned). The function lives as long as the
  /// library.
  Result<std::function<int(Stream)>> Plan(const RowsPrimitive& primitive, DeviceAddress x,
                                          DeviceAddress y, DeviceAddress workspace,
                                          std::size_t workspace_bytes);

 private:
  struct Calls;
  struct Operands;
  explicit TensorLibrary(std::unique_ptr<Calls> calls);
  Result<std::shared_ptr<Operands>> Describe(const RowsPrimitive& primitive);

  std::unique_ptr<Calls> calls_;
  void* handle_ = nullptr;
};

}  // namespace assay::gpu

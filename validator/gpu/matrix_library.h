// The vendor's matrix products (cuBLASLt), opened at run time: what a kernel is measured against, and
// how the card's matrix rate is found.
//
//   ASSAY_TRY(auto library, MatrixLibrary::Open({}));
//   ASSAY_TRY(auto multiply, library->Plan(product, a, b, c, workspace, bytes));
//   multiply(stream);    // a cuBLAS code
//
// Shapes and numbers are those of the library's documented binary interface (12 and 13). Needs a
// current context; one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "validator/execution/timing.h"
#include "validator/gpu/driver.h"

namespace assay::gpu {

class MatrixLibrary {
 public:
  /// `file`, or what the loader finds where it is empty. kEnvironment where there is none.
  static Result<std::unique_ptr<MatrixLibrary>> Open(const std::string& file);
  ~MatrixLibrary();

  /// The library's first choice for `product` on operands at these addresses (256-byte aligned). The
  /// function lives as long as the library.
  Result<std::function<int(Stream)>> Plan(const MatrixProduct& product, DeviceAddress a,
                                          DeviceAddress b, DeviceAddress c, DeviceAddress workspace,
                                          std::size_t workspace_bytes);

 private:
  struct Calls;
  explicit MatrixLibrary(std::unique_ptr<Calls> calls);
  std::unique_ptr<Calls> calls_;
  void* handle_ = nullptr;
};

}  // namespace assay::gpu

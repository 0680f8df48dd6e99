// What the card can do at all: the limits that kernels are measured against.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/dtype.h"
#include "validator/gpu/device_parts.h"

namespace assay::gpu {
namespace {

constexpr int kTimes = 11;
constexpr std::uint64_t kMostCopied = std::uint64_t{1} << 30;
constexpr std::uint64_t kWorkspace = std::uint64_t{32} << 20;

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

std::uint64_t SizeOfType(std::string_view dtype) { return dtype == "f32" ? 4 : 2; }

/// Is `out` the softmax, or the sum, of the row `in`? Roughly: another operation would be far off.
bool MeansTheSame(std::string_view operation, DType type, std::span<const std::byte> in,
                  std::span<const std::byte> out) {
  const std::size_t size = SizeOf(type), columns = in.size() / size;
  const auto x = [&](std::size_t i) { return LoadAsDouble(type, &in[i * size]); };
  const auto y = [&](std::size_t i) { return LoadAsDouble(type, &out[i * size]); };
  double sum = 0, magnitude = 0, exponentials = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    sum += x(i);
    magnitude += std::abs(x(i));
    exponentials += std::exp(x(i));
  }
  constexpr double kRoughly = 0.02;
  if (operation == "sum") return std::abs(y(0) - sum) <= kRoughly * magnitude;
  for (std::size_t i = 0; i < columns; ++i) {
    const double right = std::exp(x(i)) / exponentials;
    if (std::abs(y(i) - right) > kRoughly * right + MinNormal(type)) return false;
  }
  return true;
}

}  // namespace

/// A failed call of the driver, while something of the vendor's was timed.
std::unexpected<Error> Device::Failed(const DriverFault& fault, std::string_view what) {
  sick_ = spent_ = spent_ || fault.code != kOutOfMemory;
  return Fail(ErrorKind::kEnvironment,
              fmt::format("{}: {}: {}", what, fault.call, driver_.NameOf(fault.code)), "gpu");
}

Outcome Device::Noise(const Scratch& scratch, std::string_view dtype) {
  // Random mantissas and signs, magnitudes from 1 to 2: zeros would draw less power.
  std::uint32_t keep = dtype == "f32" ? 0x807fffffu : dtype == "f16" ? 0x83ff83ffu : 0x807f807fu;
  std::uint32_t set = dtype == "f32" ? 0x3f800000u : dtype == "f16" ? 0x3c003c00u : 0x3f803f80u;
  DeviceAddress at = scratch.address;
  std::uint64_t words = scratch.bytes / 4;
  void* const arguments[] = {&at, &words, &keep, &set};
  return StartTool("noise", arguments, nullptr);
}

Result<double> Device::TimeCall(const std::function<int(Stream)>& call, std::string_view name,
                                const Scratch& caches, int times) {
  std::vector<double> seconds;
  for (int i = 0; i < times + 2; ++i) {
    double took = 0;
    int refused = 0;
    Outcome fault = Sweep(caches);
    if (!fault) {
      fault = Between(
          [&]() -> Outcome {
            refused = call(nullptr);
            return std::nullopt;
          },
          took);
    }
    if (fault) return Failed(*fault, name);
    if (refused != 0)
      return Fail(ErrorKind::kEnvironment, fmt::format("{} gives {}", name, refused), "gpu");
    if (i >= 2) seconds.push_back(took);
  }
  return Median(std::move(seconds));
}

Result<double> Device::TimeProduct(const MatrixProduct& product, const Scratch& caches, int times) {
  constexpr std::string_view kName = "cublasLtMatmul";
  if (product.m < 1 || product.n < 1 || product.k < 1 ||
      std::max({product.m, product.n, product.k}) > (std::int64_t{1} << 20))
    return Fail(ErrorKind::kUsage, "no extents of a matrix product", "gpu");
  if (matrices_ == nullptr) {
    ASSAY_TRY(matrices_, MatrixLibrary::Open(matrix_library_));
  }
  const std::uint64_t size = SizeOfType(product.dtype);
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  Scratch a(driver_), b(driver_), c(driver_), workspace(driver_);
  for (auto& [part, bytes] : {std::pair(&a, size * extent(product.m) * extent(product.k)),
                              std::pair(&b, size * extent(product.k) * extent(product.n)),
                              std::pair(&c, size * extent(product.m) * extent(product.n)),
                              std::pair(&workspace, kWorkspace)}) {
    if (const Outcome fault = part->Allocate((bytes + 255) / 256 * 256))
      return Failed(*fault, kName);
  }
  for (const Scratch* part : {&a, &b}) {
    if (const Outcome fault = Noise(*part, product.dtype)) return Failed(*fault, kName);
  }
  ASSAY_TRY(const auto multiply, matrices_->Plan(product, a.address, b.address, c.address,
                                                 workspace.address, workspace.bytes));
  return TimeCall(multiply, kName, caches, times);
}

Status Device::ClearCachesWith(Scratch& caches) const {
  const auto l2 = static_cast<std::uint64_t>(std::max(Attribute(kL2Bytes), 0));
  if (caches.Allocate(std::max(std::uint64_t{16} << 20, 2 * l2)))
    return Fail(ErrorKind::kEnvironment, "the GPU has no room to empty its caches with", "gpu");
  return {};
}

Result<double> Device::TimeProduct(const MatrixProduct& product) {
  if (sick_) ASSAY_TRY_VOID(Renew());
  Scratch caches(driver_);
  ASSAY_TRY_VOID(ClearCachesWith(caches));
  return TimeProduct(product, caches, kTimes);
}

Result<double> Device::TimeRows(const RowsPrimitive& primitive) {
  if (sick_) ASSAY_TRY_VOID(Renew());
  constexpr std::int64_t kMostElements = std::int64_t{1} << 34;
  const auto type = ParseDType(primitive.dtype);
  if (primitive.rows < 1 || primitive.columns < 1 || !type || !IsFloat(*type) ||
      primitive.columns > kMostElements / primitive.rows)
    return Fail(ErrorKind::kUsage, "no extents of rows", "gpu");
  // Whatever it asks the loader for, a product's library is found by its name once it is open.
  if (matrices_ == nullptr) {
    if (auto matrices = MatrixLibrary::Open(matrix_library_)) matrices_ = *std::move(matrices);
  }
  if (tensors_ == nullptr) {
    ASSAY_TRY(tensors_, TensorLibrary::Open(tensor_library_));
  }
  const std::string name = tensors_->Version();
  ASSAY_TRY(const std::size_t room, tensors_->WorkspaceFor(primitive));
  Scratch caches(driver_), x(driver_), y(driver_), workspace(driver_);
  ASSAY_TRY_VOID(ClearCachesWith(caches));
  const auto columns = static_cast<std::uint64_t>(primitive.columns);
  const std::uint64_t row = SizeOf(*type) * columns;
  const auto rows = static_cast<std::uint64_t>(primitive.rows);
  const bool sum = primitive.operation == "sum";
  const std::uint64_t result = sum ? SizeOf(*type) : row;
  for (auto& [part, bytes] : {std::pair(&x, row * rows), std::pair(&y, result * rows),
                              std::pair(&workspace, std::max<std::uint64_t>(room, 1))}) {
    if (const Outcome fault = part->Allocate((bytes + 255) / 256 * 256))
      return Failed(*fault, name);
  }
  if (const Outcome fault = Noise(x, primitive.dtype)) return Failed(*fault, name);
  ASSAY_TRY(const auto call,
            tensors_->Plan(primitive, x.address, y.address, workspace.address, room));
  if (const int refused = call(nullptr)) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("{} has no {} of rows of {} at this shape ({})", name,
                            primitive.operation, primitive.dtype, refused),
                "gpu");
  }
  ASSAY_TRY(const double seconds, TimeCall(call, name, caches, kTimes));
  std::vector<std::byte> in(row), out(result);
  if (const int code = driver_.to_host(in.data(), x.address, in.size()))
    return Failed({code, "cuMemcpyDtoH"}, name);
  if (const int code = driver_.to_host(out.data(), y.address, out.size()))
    return Failed({code, "cuMemcpyDtoH"}, name);
  if (!MeansTheSame(primitive.operation, *type, in, out))
    return Fail(ErrorKind::kEnvironment,
                fmt::format("what {} makes of a row is not its {}", name, primitive.operation),
                "gpu");
  return seconds;
}

Result<Rates> Device::MeasureRates() {
  if (sick_) ASSAY_TRY_VOID(Renew());
  const auto fail = [&](const DriverFault& fault) { return Failed(fault, "the card's rates"); };
  Rates rates;
  rates.device = name_;
  rates.l2_bytes = static_cast<std::uint64_t>(std::max(Attribute(kL2Bytes), 0));
  std::size_t free = 0, whole = 0;
  if (const int code = driver_.memory_info(&free, &whole)) return fail({code, "cuMemGetInfo"});
  rates.memory_bytes = free;
  std::vector<double> copies, launches;
  {
    Scratch from(driver_), to(driver_);
    const std::uint64_t bytes = std::min<std::uint64_t>(kMostCopied, free / 4) / 256 * 256;
    for (Scratch* part : {&from, &to}) {
      if (const Outcome fault = part->Allocate(bytes)) return fail(*fault);
    }
    const auto copy = [&]() -> Outcome {
      if (const int code = driver_.copy_async(to.address, from.address, bytes, nullptr))
        return DriverFault{code, "cuMemcpyDtoDAsync"};
      return std::nullopt;
    };
    const auto nothing = [&] { return StartTool("nothing", {}, nullptr, 1); };
    for (int i = 0; i < kTimes; ++i) {
      double seconds = 0;
      // The launch waits behind a copy, as those that are timed wait behind a sweep.
      if (const Outcome fault = Between(copy, seconds)) return fail(*fault);
      copies.push_back(seconds);
      if (const Outcome fault = copy()) return fail(*fault);
      if (const Outcome fault = Between(nothing, seconds)) return fail(*fault);
      launches.push_back(seconds);
    }
    const double copied = Median(std::move(copies));
    if (copied > 0) rates.copy_bytes_per_second = 2 * static_cast<double>(bytes) / copied;
    rates.launch_seconds = Median(std::move(launches));
  }
  Scratch caches(driver_);
  if (const Outcome fault = caches.Allocate(std::max(std::uint64_t{16} << 20, 2 * rates.l2_bytes)))
    return fail(*fault);
  for (const auto& [dtype, extent] :
       {std::pair("bf16", std::int64_t{8192}), std::pair("f16", std::int64_t{8192}),
        std::pair("f32", std::int64_t{4096})}) {
    const auto seconds = TimeProduct({dtype, extent, extent, extent}, caches, 5);
    if (!seconds) {
      rates.no_matrix = seconds.error().message;
      break;
    }
    const auto side = static_cast<double>(extent);
    rates.matrix.push_back({dtype, 2 * side * side * side / *seconds});
  }
  rates.now = management_.Now();
  const auto rows = TimeRows({.operation = "softmax", .dtype = "f32", .rows = 64, .columns = 64});
  if (rows) {
    rates.tensors = tensors_->Version();
  } else {
    rates.no_tensors = rows.error().message;
  }
  return rates;
}

}  // namespace assay::gpu

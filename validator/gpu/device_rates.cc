// What the card can do at all: the limits that kernels are measured against.
#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

Result<double> Device::TimeProduct(const MatrixProduct& product, const Scratch& caches, int times) {
  const auto fail = [&](const DriverFault& fault) {
    sick_ = spent_ = spent_ || fault.code != kOutOfMemory;
    return Fail(ErrorKind::kEnvironment,
                fmt::format("a matrix product of the library: {}: {}", fault.call,
                            driver_.NameOf(fault.code)),
                "gpu");
  };
  if (product.m < 1 || product.n < 1 || product.k < 1 ||
      std::max({product.m, product.n, product.k}) > (std::int64_t{1} << 20))
    return Fail(ErrorKind::kUsage, "no extents of a matrix product", "gpu");
  if (matrices_ == nullptr) {
    ASSAY_TRY(matrices_, MatrixLibrary::Open(matrix_library_));
  }
  const std::uint64_t size = product.dtype == "f32" ? 4 : 2;
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  Scratch a(driver_), b(driver_), c(driver_), workspace(driver_);
  for (auto& [part, bytes] : {std::pair(&a, size * extent(product.m) * extent(product.k)),
                              std::pair(&b, size * extent(product.k) * extent(product.n)),
                              std::pair(&c, size * extent(product.m) * extent(product.n)),
                              std::pair(&workspace, kWorkspace)}) {
    if (const Outcome fault = part->Allocate((bytes + 255) / 256 * 256)) return fail(*fault);
  }
  // Random mantissas and signs, magnitudes from 1 to 2: zeros would draw less power.
  std::uint32_t keep = product.dtype == "f32"   ? 0x807fffffu
                       : product.dtype == "f16" ? 0x83ff83ffu
                                                : 0x807f807fu;
  std::uint32_t set = product.dtype == "f32"   ? 0x3f800000u
                      : product.dtype == "f16" ? 0x3c003c00u
                                               : 0x3f803f80u;
  for (const Scratch* part : {&a, &b}) {
    DeviceAddress at = part->address;
    std::uint64_t words = part->bytes / 4;
    void* const arguments[] = {&at, &words, &keep, &set};
    if (const Outcome fault = StartTool("noise", arguments, nullptr)) return fail(*fault);
  }
  ASSAY_TRY(const auto multiply, matrices_->Plan(product, a.address, b.address, c.address,
                                                 workspace.address, workspace.bytes));
  std::vector<double> seconds;
  for (int i = 0; i < times + 2; ++i) {
    double took = 0;
    int refused = 0;
    if (const Outcome fault = Sweep(caches)) return fail(*fault);
    const Outcome fault = Between(
        [&]() -> Outcome {
          refused = multiply(nullptr);
          return std::nullopt;
        },
        took);
    if (fault) return fail(*fault);
    if (refused != 0)
      return Fail(ErrorKind::kEnvironment, fmt::format("cublasLtMatmul gives {}", refused), "gpu");
    if (i >= 2) seconds.push_back(took);
  }
  return Median(std::move(seconds));
}

Result<double> Device::TimeProduct(const MatrixProduct& product) {
  if (sick_) ASSAY_TRY_VOID(Renew());
  Scratch caches(driver_);
  const auto l2 = static_cast<std::uint64_t>(std::max(Attribute(kL2Bytes), 0));
  if (caches.Allocate(std::max(std::uint64_t{16} << 20, 2 * l2)))
    return Fail(ErrorKind::kEnvironment, "the GPU has no room to empty its caches with", "gpu");
  return TimeProduct(product, caches, kTimes);
}

Result<Rates> Device::MeasureRates() {
  if (sick_) ASSAY_TRY_VOID(Renew());
  const auto fail = [&](const DriverFault& fault) {
    sick_ = spent_ = spent_ || fault.code != kOutOfMemory;
    return Fail(ErrorKind::kEnvironment,
                fmt::format("{}: {}", fault.call, driver_.NameOf(fault.code)), "gpu");
  };
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
  return rates;
}

}  // namespace assay::gpu

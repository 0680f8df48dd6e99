#include "base/tensor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace assay {
namespace {

// Of a copy. Larger tensors are mostly holes, which are left as they are.
constexpr std::size_t kMostDense = std::size_t{512} << 20;

Result<UniqueFd> Duplicate(int fd) {
  UniqueFd other(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!other) {
    const int error = errno;
    return Fail(ErrorKind::kEnvironment,
                std::string("cannot share memory: ") + std::strerror(error), "tensor",
                CureOf(error));
  }
  return other;
}

}  // namespace

Result<std::int64_t> ElementCount(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
      return Fail(ErrorKind::kLimit, "the shape has more elements than 63 bits count", "shape");
    }
  }
  return count;
}

Result<Tensor> Tensor::Create(DType dtype, Shape shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  ASSAY_TRY(tensor.elements, ElementCount(shape));
  tensor.shape = std::move(shape);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(tensor.elements), SizeOf(dtype), &bytes)) {
    return Fail(ErrorKind::kLimit, "the tensor has more bytes than 64 bits count", "shape");
  }
  ASSAY_TRY(tensor.memory, SharedMemory::Create(bytes, "assay-tensor"));
  return tensor;
}

Result<Tensor> Tensor::Clone() const {
  ASSAY_TRY(Tensor copy, Create(dtype, shape));
  if (memory.size() <= kMostDense) {
    std::ranges::copy(memory.bytes(), copy.memory.bytes().begin());
    return copy;
  }
  const auto size = static_cast<off_t>(memory.size());
  // The file of a memory that repeats holds the pattern alone: past its end there is no hole, but
  // values.
  struct stat info{};
  if (::fstat(memory.fd(), &info) != 0 || info.st_size < size)
    return Fail(ErrorKind::kLimit, "the tensor repeats a pattern and is too large to be copied",
                "tensor");
  for (off_t at = 0; at < size;) {
    const off_t data = ::lseek(memory.fd(), at, SEEK_DATA);
    if (data < 0) break;  // ENXIO: only a hole is left
    const off_t hole = ::lseek(memory.fd(), data, SEEK_HOLE);
    at = hole < 0 ? size : std::min(hole, size);
    std::copy(memory.bytes().begin() + data, memory.bytes().begin() + at,
              copy.memory.bytes().begin() + data);
  }
  return copy;
}

Result<KeptTensor> KeptTensor::Of(const Tensor& tensor) {
  KeptTensor kept;
  ASSAY_TRY(kept.file_, Duplicate(tensor.memory.fd()));
  kept.bytes_ = tensor.memory.size();
  kept.dtype_ = tensor.dtype;
  kept.shape_ = tensor.shape;
  kept.elements_ = tensor.elements;
  return kept;
}

Result<Tensor> KeptTensor::Map() const {
  Tensor tensor;
  tensor.dtype = dtype_;
  tensor.shape = shape_;
  tensor.elements = elements_;
  ASSAY_TRY(UniqueFd file, Duplicate(file_.get()));
  ASSAY_TRY(tensor.memory,
            SharedMemory::Map(std::move(file), bytes_, SharedMemory::Access::kPrivateCopy));
  return tensor;
}

std::size_t KeptTensor::BytesHeld() const {
  constexpr std::size_t kBlock = 512;
  struct stat info{};
  return ::fstat(file_.get(), &info) == 0 ? static_cast<std::size_t>(info.st_blocks) * kBlock
                                          : bytes_;
}

double Tensor::At(std::int64_t index) const { return LoadAsDouble(dtype, Element(index)); }
void Tensor::Set(std::int64_t index, double value) {
  StoreFromDouble(dtype, value, Element(index));
}

const std::byte* Tensor::Element(std::int64_t index) const {
  ASSAY_CHECK(index >= 0 && index < elements);
  return memory.bytes().data() + static_cast<std::size_t>(index) * SizeOf(dtype);
}

std::byte* Tensor::Element(std::int64_t index) {
  return const_cast<std::byte*>(std::as_const(*this).Element(index));
}

std::optional<std::int64_t> FirstDifference(const Tensor& a, const Tensor& b) {
  if (a.elements != b.elements || a.dtype != b.dtype) return 0;
  if (a.elements == 0) return std::nullopt;
  const std::span<const std::byte> bytes_a = a.memory.bytes();
  const std::span<const std::byte> bytes_b = b.memory.bytes();
  if (std::memcmp(bytes_a.data(), bytes_b.data(), bytes_a.size()) == 0) return std::nullopt;
  const auto first = std::ranges::mismatch(bytes_a, bytes_b).in1;
  return (first - bytes_a.begin()) / static_cast<std::int64_t>(SizeOf(a.dtype));
}

std::vector<std::int64_t> IndexOf(std::int64_t place, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = shape[axis] > 0 ? place % shape[axis] : 0;
    place = shape[axis] > 0 ? place / shape[axis] : 0;
  }
  return index;
}

}  // namespace assay

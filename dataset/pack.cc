#include "dataset/pack.h"

#include <zstd.h>

namespace assay::dataset {
namespace {

constexpr int kLevel = 6;

std::unexpected<Error> Broken() {
  return Fail(ErrorKind::kMalformedInput, "is not what zstd wrote", "a packed text",
              "restore the file");
}

}  // namespace

std::string Pack(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), kLevel);
  ASSAY_CHECK(ZSTD_isError(size) == 0, "zstd");
  packed.resize(size);
  return packed;
}

Result<std::string> Unpack(std::string_view packed, std::size_t most) {
  const unsigned long long bytes = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (bytes == ZSTD_CONTENTSIZE_ERROR || bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes > most)
    return Broken();
  std::string text(static_cast<std::size_t>(bytes), '\0');
  const std::size_t size = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0 || size != bytes) return Broken();
  return text;
}

}  // namespace assay::dataset

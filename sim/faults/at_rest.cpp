#include "sim/faults/at_rest.hpp"

#include <algorithm>

#include "core/base/bytes.hpp"
#include "core/ports/whole_file.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 40U;

}  // namespace

void flip_bit(Store& store, const std::string& path, std::uint64_t byte, unsigned bit) {
  Bytes content = read_all(store, path, kSizeMax);
  if (content.empty()) {
    throw Error(Code::kUsage, "an empty file has no bit to flip", {.file = store.display(path)});
  }
  content[byte % content.size()] ^= static_cast<std::byte>(1U << (bit % 8));
  write_durably(store, path, content);
}

void overwrite(Store& store, const std::string& path, std::uint64_t offset, ByteSpan bytes) {
  Bytes content = read_all(store, path, kSizeMax);
  if (!ByteRange{offset, bytes.size()}.fits(content.size())) {
    throw Error(Code::kUsage, "the file ends before the bytes to be replaced",
                {.file = store.display(path), .offset = offset});
  }
  std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<std::ptrdiff_t>(offset));
  write_durably(store, path, content);
}

void cut(Store& store, const std::string& path, std::uint64_t bytes) {
  const Bytes content = read_all(store, path, kSizeMax);
  const auto gone = std::min<std::uint64_t>(bytes, content.size());
  write_durably(store, path, ByteSpan(content).first(content.size() - gone));
}

}  // namespace reprise::sim

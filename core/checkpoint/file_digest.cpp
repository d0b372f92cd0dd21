#include "core/checkpoint/file_digest.hpp"

#include <algorithm>

namespace reprise {

Sha256Digest digest_of_file(Store& store, const std::string& path,
                            const std::function<void()>& at_step) {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 20U;
  const auto file = store.open(path);
  Sha256 hash;
  Bytes buffer(static_cast<std::size_t>(std::min(kStep, file->size())));
  for (std::uint64_t at = 0; at < file->size();) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kStep, file->size() - at));
    const MutableByteSpan part(buffer.data(), size);
    file->read_at(at, part);
    hash.update(part);
    at += size;
    if (at_step) at_step();
  }
  return hash.digest();
}

}  // namespace reprise

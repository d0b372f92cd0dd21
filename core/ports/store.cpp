#include "reprise/store.hpp"

namespace reprise {

void ReadFile::read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) {
  for (const MutableByteSpan part : parts) {
    read_at(offset, part);
    offset += part.size();
  }
}

bool Store::remove_empty(const std::string& directory) {
  if (!stat(directory)) return true;
  if (!list(directory).empty()) return false;
  remove(directory);
  return true;
}

}  // namespace reprise

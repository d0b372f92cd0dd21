#include "core/checkpoint/parsed_metadata.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/format/metadata.hpp"

namespace reprise {

Checkpoint ParsedMetadata::open(Store& store, const std::string& path) {
  Location location = locate(store, path);
  const MetadataFiles files = read_metadata_files(store, location.directory);
  const std::vector<ByteSpan> contents(files.contents.begin(), files.contents.end());
  const std::uint64_t hash = hash_of(files);
  return {store, std::move(location), read(contents, files.names, hash), hash};
}

std::shared_ptr<const Metadata> ParsedMetadata::read(std::span<const ByteSpan> contents,
                                                     std::span<const std::string> names,
                                                     std::uint64_t hash) {
  if (auto metadata = known(contents, names, hash)) return metadata;
  auto metadata = std::make_shared<const Metadata>(read_metadata(contents, names));
  MetadataFiles files{.names = {names.begin(), names.end()}, .contents = {}};
  for (const ByteSpan content : contents) {
    files.contents.emplace_back(content.begin(), content.end());
  }
  Known one{hash, std::move(files), metadata};
  const std::uint64_t bytes = one.bytes();
  if (bytes > bytes_max_) return metadata;  // it would drive out all others
  const std::lock_guard lock(mutex_);
  known_.push_front(std::move(one));
  bytes_ += bytes;
  while (known_.size() > kKept || bytes_ > bytes_max_) {
    bytes_ -= known_.back().bytes();
    known_.pop_back();
  }
  return metadata;
}

std::uint64_t ParsedMetadata::Known::bytes() const {
  std::uint64_t sum = 0;
  for (const Bytes& content : files.contents) sum += content.size();
  return sum;
}

bool ParsedMetadata::Known::is_of(std::span<const ByteSpan> contents,
                                  std::span<const std::string> names) const {
  return std::ranges::equal(files.names, names) &&
         std::ranges::equal(files.contents, contents, [](const Bytes& own, ByteSpan other) {
           return as_text(own) == as_text(other);  // which compares many bytes at a time
         });
}

std::shared_ptr<const Metadata> ParsedMetadata::known(std::span<const ByteSpan> contents,
                                                      std::span<const std::string> names,
                                                      std::uint64_t hash) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& one) {
    return one.hash == hash && one.is_of(contents, names);
  });
  if (found == known_.end()) return nullptr;
  known_.splice(known_.begin(), known_, found);
  return found->metadata;
}

}  // namespace reprise

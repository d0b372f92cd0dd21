#include "driver/record/parsed_metadata.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/format/metadata.hpp"

namespace reprise::driver {

Checkpoint ParsedMetadata::open(Store& store, const std::string& path) {
  Location location = locate(store, path);
  MetadataFiles files = read_metadata_files(store, location.directory);
  const std::uint64_t hash = hash_of(files);
  std::shared_ptr<const Metadata> metadata = metadata_of(hash, files);
  if (metadata == nullptr) {
    const std::vector<ByteSpan> spans(files.contents.begin(), files.contents.end());
    metadata = std::make_shared<const Metadata>(read_metadata(spans, files.names));
    const std::lock_guard lock(mutex_);
    known_.push_front({hash, std::move(files), metadata});
    if (known_.size() > kKept) known_.pop_back();
  }
  return {store, std::move(location), std::move(metadata), hash};
}

std::shared_ptr<const Metadata> ParsedMetadata::metadata_of(std::uint64_t hash,
                                                            const MetadataFiles& files) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return known.hash == hash && known.files.names == files.names &&
           known.files.contents == files.contents;
  });
  if (found == known_.end()) return nullptr;
  known_.splice(known_.begin(), known_, found);
  return found->metadata;
}

}  // namespace reprise::driver

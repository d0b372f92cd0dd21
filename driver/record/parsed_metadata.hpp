#pragma once
// Opens checkpoints for the judges, which look at the same few of them again and again: the
// metadata of files with equal bytes is parsed once.

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "core/checkpoint/checkpoint.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

/// What some metadata files say, by their names and bytes; one object serves all scenarios of a
/// process. Thread-safe. It only saves work: what it returns depends on the files alone.
class ParsedMetadata {
 public:
  /// The same as Checkpoint::open(), with the same calls of the store.
  Checkpoint open(Store& store, const std::string& path);

  /// Number of checkpoints whose metadata is kept, those that were opened last.
  static constexpr std::size_t kKept = 64;

 private:
  struct Known {
    std::uint64_t hash = 0;
    MetadataFiles files;
    std::shared_ptr<const Metadata> metadata;
  };
  std::shared_ptr<const Metadata> metadata_of(std::uint64_t hash, const MetadataFiles& files);

  std::mutex mutex_;
  std::list<Known> known_;  ///< latest use first
};

/// A store that judges look at, and what they read there before.
struct JudgedStore {
  Store& store;
  ParsedMetadata& parsed;

  Checkpoint open(const std::string& path) const { return parsed.open(store, path); }
};

}  // namespace reprise::driver

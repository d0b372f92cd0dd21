#pragma once
// Determines what a user gets from a damaged checkpoint: verify refuses it; verify accepts it and
// the load refuses it; or the load succeeds, with the same or with other content.

#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/store.hpp"

namespace reprise::test {

/// Loads `into` from a store as the only rank of a world, with 4 KiB of staging memory.
void load_alone(Store& store, const std::string& path, StateDict& into);

enum class DamageEffect {
  kRefused,  ///< refused by verify or by the load
  kSame,     ///< accepted, and all loaded content is that of the undamaged checkpoint
  kChanged,  ///< accepted, and some of the loaded content differs
};

/// Knows the content of one undamaged checkpoint, and judges changed copies of it.
class Judge {
 public:
  /// `store` holds the undamaged checkpoint at `path`.
  Judge(Store& store, std::string path);

  /// Runs verify. If verify accepts the checkpoint, loads every tensor, every object and the common
  /// state, with the keys, shapes and types of the undamaged checkpoint. If each rank saved its own
  /// metadata, loads only what the first rank may load. Errors in our own code do not count as
  /// refusals and are passed on: exceptions other than Error, and INTERNAL, which stands for a
  /// failed CHECK on a rank.
  DamageEffect of(Store& store) const;
  /// True if verify refuses `store` because files do not match integrity.json. Much faster than all
  /// of verify. May be used for changes of all files except the metadata.
  bool refused_by_manifest(Store& store) const;
  /// Returns the number of elements that are compared after a load; objects() returns the number of
  /// objects.
  std::size_t elements() const;
  std::size_t objects() const;
  /// Returns the errors among verify's findings on the store, one per line.
  std::string words_of(Store& store) const;

 private:
  struct Content {
    Bytes tensors;  ///< all tensors, in the order of their keys
    std::vector<Value> objects;
    Value common;
    friend bool operator==(const Content&, const Content&) = default;
  };

  bool whole(Store& store) const;
  Content load(Store& store) const;

  std::string path_;
  StateDict wanted_;                  ///< the state to request, without buffers
  std::vector<std::string> excused_;  ///< the first rank's objects that no load requests
  std::vector<std::string> plain_;    ///< objects that are not on grids; read one by one
  std::int32_t ranks_ = 1;
  std::vector<std::size_t> starts_;  ///< offset of each tensor in Content::tensors
  std::size_t bytes_ = 0;
  Content content_;
  Location location_;
  Metadata metadata_;
};

}  // namespace reprise::test

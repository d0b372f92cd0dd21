#pragma once
// Determines the effect of a damaged checkpoint on a user. The effect is one of four: verify
// refuses it; verify accepts it but the load refuses it; the load gives the same content; or the
// load gives other content.

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
  kSame,     ///< accepted, and all loaded content equals that of the undamaged checkpoint
  kChanged,  ///< accepted, and some of the loaded content differs
};

/// Knows the content of one undamaged checkpoint, and judges changed copies of it.
class Judge {
 public:
  /// `store` contains the undamaged checkpoint at `path`.
  Judge(Store& store, std::string path);

  /// Runs verify. If verify accepts the checkpoint, loads every tensor, every object and the common
  /// state, with the keys, shapes and types of the undamaged checkpoint. If each rank saved its own
  /// metadata, loads only what the first rank may load. Errors in our own code do not count as
  /// refusals; they are thrown to the caller. Such errors are exceptions other than Error, and an
  /// Error INTERNAL, which means that a CHECK failed on a rank.
  DamageEffect of(Store& store) const;
  /// Returns true if verify refuses `store` because a file does not match integrity.json. Much
  /// faster than a complete verify. Valid for a change of any file except the metadata.
  bool refused_by_manifest(Store& store) const;
  /// Returns the number of elements that the judge compares after a load. objects() returns the
  /// number of objects.
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
  std::vector<std::string> excused_;  ///< objects of the first rank; loads do not request them
  std::vector<std::string> plain_;    ///< objects without a grid; read one by one
  std::int32_t ranks_ = 1;
  std::vector<std::size_t> starts_;  ///< offset of each tensor in Content::tensors
  std::size_t bytes_ = 0;
  Content content_;
  Location location_;
  Metadata metadata_;
};

}  // namespace reprise::test

#pragma once
// Results for a user with a damaged checkpoint: verify refuses it, a load of the undamaged content
// refuses it, or the load succeeds.

#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/store.hpp"

namespace reprise::test {

/// Loads `into` from a store on the only rank of a world, with 4 KiB of staging.
void load_alone(Store& store, const std::string& path, StateDict& into);

enum class DamageEffect {
  kRefused,  ///< by verify, or by the load
  kSame,     ///< accepted, and all loaded content equals the undamaged one
  kChanged,  ///< accepted, and some loaded content differs
};

/// The content of one undamaged checkpoint, and the judge of changed ones.
class Judge {
 public:
  /// `store` has the undamaged checkpoint at `path`.
  Judge(Store& store, std::string path);

  /// Runs verify, and if that says whole, a load of every tensor, every object and the common
  /// state, with the undamaged checkpoint's keys, shapes and types; if each rank saved its own
  /// metadata, only of those that the first rank may load. A mistake of ours is no refusal:
  /// INTERNAL, which a failed CHECK on a rank becomes, passes through like other exceptions.
  DamageEffect of(Store& store) const;
  /// True if the comparison of files with integrity.json in verify refuses `store`. For changes of
  /// files other than the metadata, at a fraction of the cost of verify.
  bool refused_by_manifest(Store& store) const;
  /// Returns the number of compared elements and objects.
  std::size_t elements() const;
  std::size_t objects() const;
  /// Returns the errors among verify's findings on the store, one per line.
  std::string words_of(Store& store) const;

 private:
  struct Content {
    Bytes tensors;  ///< all tensors in the order of the keys
    std::vector<Value> objects;
    Value common;
    friend bool operator==(const Content&, const Content&) = default;
  };

  bool whole(Store& store) const;
  Content load(Store& store) const;

  std::string path_;
  StateDict wanted_;                  ///< without buffers
  std::vector<std::string> excused_;  ///< objects of the first rank that no load requests
  std::vector<std::string> plain_;    ///< objects that are no shard of a grid: read one by one
  std::int32_t ranks_ = 1;
  std::vector<std::size_t> starts_;  ///< offsets of the tensors in Content::tensors
  std::size_t bytes_ = 0;
  Content content_;
  Location location_;
  Metadata metadata_;
};

}  // namespace reprise::test

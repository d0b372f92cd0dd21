#pragma once
// What a user learns of a checkpoint that may be damaged: verify refuses it, a load of what the
// undamaged one holds refuses it, or the load gives something.

#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/store.hpp"

namespace reprise::test {

/// Loads `into` from a store on the only rank of a world, through a staging of 4 KiB.
void load_alone(Store& store, const std::string& path, StateDict& into);

enum class Outcome {
  kRefused,  ///< by verify, or by the load
  kSame,     ///< accepted, and all that is loaded is as in the undamaged checkpoint
  kChanged,  ///< accepted, and something else is loaded
};

/// The content of one undamaged checkpoint, and the judge of changed ones.
class Judge {
 public:
  /// `store` holds the undamaged checkpoint at `path`.
  Judge(Store& store, std::string path);

  /// verify, and if that says whole a load of every tensor, every object and the common state,
  /// under the undamaged checkpoint's keys, shapes and types; where each rank saved metadata of its
  /// own, of all that the first rank may load. A mistake of ours is no refusal:
  /// INTERNAL, which a failed CHECK on a rank becomes, passes through as other exceptions do.
  Outcome of(Store& store) const;
  /// Does the part of verify that compares files with integrity.json refuse what is in `store`? For
  /// changes of files other than the metadata, at a fraction of the cost of verify.
  bool refused_by_manifest(Store& store) const;
  /// Elements and objects that are compared.
  std::size_t elements() const;
  std::size_t objects() const;
  /// Of verify on the store: the findings that are errors, a line each.
  std::string words_of(Store& store) const;

 private:
  struct Content {
    Bytes tensors;  ///< of all, in the order of the keys
    std::vector<Value> objects;
    Value common;
    friend bool operator==(const Content&, const Content&) = default;
  };

  bool whole(Store& store) const;
  Content load(Store& store) const;

  std::string path_;
  StateDict wanted_;                  ///< without buffers
  std::vector<std::string> excused_;  ///< of the first rank's objects those that no load asks for
  std::vector<std::string> plain_;    ///< objects that are no shard of a grid: read one by one
  std::int32_t ranks_ = 1;
  std::vector<std::size_t> starts_;  ///< of the tensors in Content::tensors
  std::size_t bytes_ = 0;
  Content content_;
  Location location_;
  Metadata metadata_;
};

}  // namespace reprise::test

#pragma once
// Gives one rank access to the store that all ranks share.

#include "core/base/hash.hpp"
#include "core/ports/observed_ports.hpp"
#include "sim/world/rank_context.hpp"

namespace reprise::sim {

/// Lets other ranks run before each call. Records each call with its sizes and, if it writes, a
/// hash of the content. After the rank's death, its calls no longer change the store, nor do writes
/// to files that it opened earlier.
class RankStore final : public ObservedStore {
 public:
  /// All ranks of a world share `store` and `resources`.
  RankStore(RankContext& life, Store& store, StoreResources& resources)
      : ObservedStore(store), life_(life), resources_(resources) {}

 private:
  void around(const Call& call, const Rest& rest) override {
    Resource& resource = call.changes ? resources_.write : resources_.read;
    const auto step = [&](std::initializer_list<std::uint64_t> numbers) {
      life_.step_in_store(resource, call.operation, call.path, numbers, call.bytes);
    };
    if (call.operation == "read") {
      step({call.offset, call.bytes});
    } else if (call.operation == "write") {
      step({call.offset, call.bytes, hash_of(call.from)});
    } else {
      step({});
    }
    rest();
  }

  RankContext& life_;
  StoreResources& resources_;
};

}  // namespace reprise::sim

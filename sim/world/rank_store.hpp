#pragma once
// Gives one rank access to the store that all ranks share.

#include <string>

#include "reprise/store.hpp"
#include "sim/world/rank_life.hpp"

namespace reprise::sim {

/// Lets other ranks run before each call. Records each call with its sizes and, if it writes, a
/// hash of the content. After the rank's death, its calls no longer change the store, nor do writes
/// to files that it opened earlier.
class RankStore final : public Store {
 public:
  /// All ranks of a world share `store` and `resources`.
  RankStore(RankLife& life, Store& store, StoreResources& resources)
      : life_(life), store_(store), resources_(resources) {}

  StoreCapabilities capabilities() const override { return store_.capabilities(); }
  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void publish(const NameChange& change) override;
  void replace(const NameChange& change) override;
  void put_aside(const NameChange& change) override;
  void remove(const std::string& path) override;
  bool remove_empty(const std::string& directory) override;
  void sync_directory(const std::string& directory) override;
  std::unique_ptr<StoreLock> lock(const std::string& path) override;
  std::optional<std::string> lock_holder(const std::string& path) override;
  std::string display(const std::string& path) const override { return store_.display(path); }

 private:
  RankLife& life_;
  Store& store_;
  StoreResources& resources_;
};

}  // namespace reprise::sim

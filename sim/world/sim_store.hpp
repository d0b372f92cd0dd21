#pragma once
// A store in memory that forgets what was not synced. It outlives incarnations: the driver keeps it
// and gives it to one World after the other.

#include <string>

#include "core/base/error.hpp"
#include "core/ports/store.hpp"
#include "sim/world/sim_tree.hpp"

namespace reprise::sim {

/// Behaves as the posix adapter does, errors included. This is the store itself, without a
/// schedule: drivers and judges use it directly, ranks through RankStore.
class SimStore final : public Store {
 public:
  /// `name` is what messages call its root. Capabilities are what this store pretends to have.
  explicit SimStore(std::string name = "sim:", StoreCapabilities capabilities = {.exchange = true});

  /// Power cut: file content is what it was at its last sync, the names in a directory are what
  /// they were at its last sync_directory. Files that are open keep working on what is no longer
  /// there.
  void crash();
  /// Everything survives: what an orderly shutdown leaves.
  void sync_all();

  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void exchange(const std::string& a, const std::string& b) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& directory) override;
  StoreCapabilities capabilities() const override { return capabilities_; }
  std::string display(const std::string& path) const override;

 private:
  NodePtr find(const std::string& path) const;
  NodePtr existing(const char* call, const std::string& path) const;
  NodePtr existing_directory(const char* call, const std::string& path) const;
  [[noreturn]] void fail(Code code, const std::string& what, const std::string& path) const;

  std::string name_;
  StoreCapabilities capabilities_;
  NodePtr root_ = make_node(NodeKind::kDirectory);
};

}  // namespace reprise::sim

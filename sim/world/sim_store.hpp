#pragma once
// A store in memory that forgets what was not synced. It outlives incarnations: the driver keeps it
// and gives it to one World after the other.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "reprise/error.hpp"
#include "reprise/store.hpp"
#include "sim/world/sim_lease.hpp"
#include "sim/world/sim_tree.hpp"

namespace reprise::sim {

/// Behaves as the posix adapter does, errors included; it has no links. This is the store itself,
/// without a schedule: drivers and judges use it directly, ranks through RankStore.
///
/// Without `renames` it behaves as an object store does. A file is an object that is there, for
/// good, once it was synced or closed. A name and what is staged for it share one small object,
/// which a conditional put changes: publish(), replace() and put_aside() are one such put each, and
/// UNSUPPORTED between other names. Locks are leases.
class SimStore final : public Store {
 public:
  /// `name` is what messages call its root. Capabilities are what this store pretends to have.
  /// `seed` decides how far each list lags.
  explicit SimStore(std::string name = "sim:", StoreCapabilities capabilities = {.exchange = true},
                    std::uint64_t seed = 0);

  /// Names whose last changes a list that lags may miss, in the whole store.
  static constexpr std::size_t kListLag = 8;

  /// Power cut: file content is what it was at its last sync, the names in a directory are what
  /// they were at its last sync_directory. Files that are open keep working on what is no longer
  /// there. Without `renames` nothing is lost but objects that were never put.
  void crash();
  /// Everything survives: what an orderly shutdown leaves.
  void sync_all();
  /// Lets more time pass than the term of a lease.
  void pass_term() { leases_.pass_term(); }
  /// Lets lists catch up with what is there.
  void settle() { changes_.clear(); }

  StoreCapabilities capabilities() const override { return capabilities_; }
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
  /// Ends with its owner, as the stack of a rank that is killed is unwound. A lease does not end by
  /// that: see SimLeases.
  std::unique_ptr<StoreLock> lock(const std::string& path) override;
  std::string display(const std::string& path) const override;

 private:
  InodePtr find(const std::string& path) const;
  InodePtr existing(const char* call, const std::string& path) const;
  InodePtr existing_directory(const char* call, const std::string& path) const;
  [[noreturn]] void fail(Code code, const std::string& what, const std::string& path) const;
  void move(const std::string& from, const std::string& to);
  /// Refuses what this store can't do, and a writer whose lease another one has taken.
  void require_allowed(const char* call, const NameChange& change) const;
  /// Puts a name into a directory, or takes it out if `node` is null.
  void set_name(const InodePtr& directory, const std::string& name, const InodePtr& node);
  /// The names that a list shows.
  Names listed(const InodePtr& directory);

  struct Change {
    InodePtr directory;
    std::string name;
    InodePtr before;  ///< null: there was nothing
  };

  std::string name_;
  StoreCapabilities capabilities_;
  std::uint64_t seed_;
  std::uint64_t lists_ = 0;
  std::deque<Change> changes_;  ///< the last ones, where lists lag
  SimLeases leases_;
  InodePtr root_ = make_inode(InodeKind::kDirectory);
};

}  // namespace reprise::sim

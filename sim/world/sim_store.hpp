#pragma once
// Simulates a store in memory that loses unsynced changes in a crash. The store outlives
// lives: the driver passes the same store to each new World.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "reprise/error.hpp"
#include "reprise/store.hpp"
#include "sim/world/sim_lease.hpp"
#include "sim/world/sim_tree.hpp"

namespace reprise::sim {

/// Behaves like the posix adapter, including its errors, but has no links. Its calls do not involve
/// the scheduler: drivers and judges use the store directly, while ranks use it through RankStore.
///
/// Without `renames` it behaves like an object store. A file is an object, and is durable as soon
/// as it has been synced or closed. A name and its staged content share one small object, which is
/// changed by conditional puts: publish(), replace() and put_aside() each make one. These calls
/// throw UNSUPPORTED unless the staged name is the name plus "." and a suffix. Locks are leases.
class SimStore final : public Store {
 public:
  /// Simulates a store with these `capabilities`. Messages show `name` as the store's root. `seed`
  /// determines how many recent changes each listing misses.
  explicit SimStore(std::string name = "sim:", StoreCapabilities capabilities = {.exchange = true},
                    std::uint64_t seed = 0);

  /// Maximum number of recent name changes in the whole store that a listing may miss.
  static constexpr std::size_t kListLag = 8;

  /// Cuts the power. A file's content becomes that of its last sync, and a directory's names become
  /// those of its last sync_directory. Open files continue to work on nodes that are no longer in
  /// the tree. Without `renames`, an object is lost only if it was never put.
  void crash();
  /// Cuts the power so that each unsynced change survives by itself, or not, as the seed decides.
  /// A rename within a directory survives as a whole.
  void crash_keeping_some(std::uint64_t seed);
  /// Returns the store as a crash at this moment would leave it: with the unsynced changes that
  /// survive. Nobody holds a lock in it. This store stays as it is.
  SimStore crashed(const Survives& survives) const;
  /// Returns a hash of all names and the content of all files.
  std::uint64_t digest() const;
  /// Makes everything durable, like an orderly shutdown.
  void sync_all();
  /// Advances time by more than the term of a lease.
  void pass_term() { leases_.pass_term(); }
  /// Makes all later listings show the current names.
  void show_current_names() { changes_.clear(); }

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
  /// A lock ends with its holder: a killed rank's stack is unwound, which releases its locks. A
  /// lease outlives its holder: see SimLeases.
  std::unique_ptr<StoreLock> lock(const std::string& path) override;
  std::optional<std::string> lock_holder(const std::string& path) override;
  std::string display(const std::string& path) const override;

 private:
  InodePtr find(const std::string& path) const;
  InodePtr existing(const char* call, const std::string& path) const;
  InodePtr existing_directory(const char* call, const std::string& path) const;
  [[noreturn]] void fail(Code code, const std::string& what, const std::string& path) const;
  void move(const std::string& from, const std::string& to);
  /// Throws if this store does not support the change, or if the writer has lost its lease.
  void require_allowed(const char* call, const NameChange& change) const;
  /// Puts a name into a directory, or removes it if `node` is null.
  void set_name(const InodePtr& directory, const std::string& name, const InodePtr& node);
  /// Makes the last change of `a` and the last change of `b` one change, if both are of one
  /// directory.
  void join_last(const InodePtr& a, const InodePtr& b);
  /// Returns the names that a listing of the directory shows; they may be outdated.
  Names listed(const InodePtr& directory);

  struct Change {
    InodePtr directory;
    std::string name;
    InodePtr before;  ///< the entry before the change; null if there was none
  };

  std::string name_;
  StoreCapabilities capabilities_;
  std::uint64_t seed_;
  std::uint64_t lists_ = 0;
  std::deque<Change> changes_;  ///< the most recent changes, if listings may be outdated
  SimLeases leases_;
  InodePtr root_ = make_inode(InodeKind::kDirectory);
};

}  // namespace reprise::sim

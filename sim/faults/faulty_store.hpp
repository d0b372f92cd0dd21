#pragma once
// A rank's store that fails, lies and flips bits as the fault book decides. Included only by this
// folder's sources.

#include <mutex>
#include <set>
#include <string>

#include "core/ports/passing_store.hpp"
#include "sim/faults/fault_seat.hpp"

namespace reprise::sim {

class FaultyStore final : public PassingStore {
 public:
  FaultyStore(Store& inner, FaultSeat& seat) : PassingStore(inner), seat_(seat) {}

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

 private:
  void touch(std::string_view what, const std::string& path) {
    seat_.strikes({CallKind::kOther, what, path});
  }
  /// Returns false if the name change must be skipped.
  bool moves(const PortCall& call, const NameChange& change);
  bool lies(const std::string& directory);
  /// Handles a read access to a path. From this access on, the rank's view of the store may be
  /// outdated.
  void look(std::string_view what, const std::string& path);
  /// True if the path belongs to a checkpoint that this rank can't see yet.
  bool hides(const std::string& path);
  std::optional<Bytes> stale_content(const std::string& path);

  FaultSeat& seat_;
  std::mutex mutex_;
  std::set<std::string> lying_;  ///< directories whose syncs do nothing
  std::string tracker_;          ///< path of the tracker; this rank sees an old version of it
  Bytes stale_;                  ///< content of that tracker before the newest save
  std::string hidden_;           ///< path of the checkpoint that this rank can't see yet
};

}  // namespace reprise::sim

#pragma once
// Uses file locks to tell which ranks of a launch are alive. The operating system releases a
// process's locks when the process ends, even if it is killed.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/types.hpp"

namespace reprise::driver {

/// Watches the locks of the other ranks. Also holds this rank's own lock, unless the object is
/// created only to watch. May be called from any thread. All locks of a launch are in one new
/// directory.
class RankLiveness final : public PeerWatch {
 public:
  /// Creates an object that only watches the ranks' locks.
  explicit RankLiveness(std::string directory) : directory_(std::move(directory)) {}
  /// Takes the lock of `self`. Throws IO if that fails.
  RankLiveness(std::string directory, GlobalRank self);

  /// True if the rank has taken its lock, even if it has released it since.
  bool has_begun(GlobalRank rank);
  /// True if the rank took its lock and no longer holds it.
  bool has_ended(GlobalRank rank) override;
  /// Marks this rank's start as complete by writing a byte into its lock file. Call it after a
  /// collective over all ranks has succeeded.
  void come_through();
  /// True if the rank has marked its start as complete, even if the rank has ended since.
  bool came_through(GlobalRank rank);
  /// Releases this rank's lock. From then on the other ranks consider this rank ended.
  void let_go();

 private:
  const posix::Descriptor* peer(GlobalRank rank);

  std::string directory_;
  std::mutex mutex_;  ///< guards the members below
  std::optional<posix::Descriptor> own_;
  std::map<GlobalRank, posix::Descriptor> peers_;
};

}  // namespace reprise::driver

#pragma once
// Tells which ranks of a launch are still alive, by locks on files: the system releases a process's
// locks when it ends, however it ends.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/types.hpp"

namespace reprise::driver {

/// Holds a rank's own lock and watches its peers' locks, from any thread; or only watches. All
/// locks of a launch are in one new directory.
class RankLiveness final : public PeerWatch {
 public:
  /// Only watches; takes no lock.
  explicit RankLiveness(std::string directory) : directory_(std::move(directory)) {}
  /// Takes `self`'s lock. IO if that fails.
  RankLiveness(std::string directory, GlobalRank self);

  /// True if the rank has taken its lock, even if it has released it since.
  bool has_begun(GlobalRank rank);
  /// True if the rank has taken its lock and released it.
  bool has_ended(GlobalRank rank) override;
  /// Notes in the own file that this rank's start is over: all ranks have come together.
  void come_through();
  /// True if the rank's start was over, even if the rank has ended since.
  bool came_through(GlobalRank rank);
  /// Releases the own lock: from now on the others consider this rank ended.
  void let_go();

 private:
  const posix::Descriptor* peer(GlobalRank rank);

  std::string directory_;
  std::mutex mutex_;  ///< guards the members below
  std::optional<posix::Descriptor> own_;
  std::map<GlobalRank, posix::Descriptor> peers_;
};

}  // namespace reprise::driver

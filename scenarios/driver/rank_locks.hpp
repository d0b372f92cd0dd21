#pragma once
// Which ranks of a launch are still alive, told by locks on files: the system lets go of a
// process's locks when it ends, however it ends.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/types.hpp"

namespace reprise::driver {

/// A rank's own lock, and a look at its peers', from any thread; or the look alone. All in one
/// directory, which each launch has anew.
class RankLocks final : public PeerWatch {
 public:
  /// Takes no lock.
  explicit RankLocks(std::string directory) : directory_(std::move(directory)) {}
  /// Takes `self`'s lock. IO if it can't be had.
  RankLocks(std::string directory, GlobalRank self);

  /// True where the rank has taken its lock, whether or not it holds it still.
  bool has_begun(GlobalRank rank);
  /// True where the rank had taken its lock and holds it no more.
  bool has_ended(GlobalRank rank) override;
  /// From here on the others take this rank for ended.
  void let_go();

 private:
  const posix::Descriptor* peer(GlobalRank rank);

  std::string directory_;
  std::mutex mutex_;  ///< of what is below
  std::optional<posix::Descriptor> own_;
  std::map<GlobalRank, posix::Descriptor> peers_;
};

}  // namespace reprise::driver

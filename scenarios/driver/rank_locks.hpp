#pragma once
// Which ranks of a launch are still alive, told by locks on files: the system lets go of a
// process's locks when it ends, however it ends.

#include <map>
#include <optional>
#include <string>

#include "core/adapters/posix/descriptor.hpp"
#include "core/base/ids.hpp"
#include "core/ports/peer_watch.hpp"

namespace reprise::driver {

/// A rank's own lock, and a look at its peers'. All in one directory, which each launch has anew.
class RankLocks final : public PeerWatch {
 public:
  /// Takes `self`'s lock. IO if it can't be had.
  RankLocks(std::string directory, GlobalRank self);

  /// True where the rank had taken its lock and holds it no more.
  bool has_ended(GlobalRank rank) override;
  /// From here on the others take this rank for ended.
  void let_go();

 private:
  std::string directory_;
  std::optional<posix::Descriptor> own_;
  std::map<GlobalRank, posix::Descriptor> peers_;
};

}  // namespace reprise::driver

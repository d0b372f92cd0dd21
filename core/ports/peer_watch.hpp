#pragma once
// Knows which ranks are alive. It does not rely on the fabric, which often does not notice the end
// of a rank.

#include "reprise/types.hpp"

namespace reprise {

class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// True if the rank's process can no longer send anything. Called often while a fabric call
  /// waits.
  virtual bool has_ended(GlobalRank rank) = 0;
  /// True if this rank is to stop waiting, because its job was told to stop.
  virtual bool interrupted() { return false; }
};

}  // namespace reprise

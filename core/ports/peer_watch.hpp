#pragma once
// Who of the ranks is still there, by other means than the fabric, which mostly does not notice.

#include "reprise/types.hpp"

namespace reprise {

class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// Asked often while a call waits; true once the rank's process can send nothing any more.
  virtual bool has_ended(GlobalRank rank) = 0;
};

}  // namespace reprise

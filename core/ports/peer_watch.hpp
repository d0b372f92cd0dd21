#pragma once
// Tells which ranks are alive, independently of the fabric, which often does not notice.

#include "reprise/types.hpp"

namespace reprise {

class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// Called often while a call waits; true once the rank's process can send nothing more.
  virtual bool has_ended(GlobalRank rank) = 0;
};

}  // namespace reprise

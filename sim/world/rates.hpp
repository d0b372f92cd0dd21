#pragma once
// Says how fast the resources of a simulated world are, in virtual time. See docs/speed.md.

#include <cstdint>

namespace reprise::sim {

/// Bandwidth and latency of one resource. If both are 0, operations take no time.
struct Rate {
  std::uint64_t mb_per_s = 0;  ///< bytes per microsecond; 0 means that bytes take no time
  std::uint64_t latency_ns = 0;
};

/// The resources of a world. Everything is free of cost unless a rate says otherwise.
struct Rates {
  Rate store_read;   ///< of the whole store, which all ranks share
  Rate store_write;  ///< the same for writing, which does not slow down reading
  Rate bus;          ///< of each device and each direction
  Rate fabric;       ///< of each rank's link
  Rate checksums;    ///< of each thread that computes them; see World::compute_checksum()
};

}  // namespace reprise::sim

#pragma once
// Keeps the time of a resource that transfers bytes one operation after another.

#include <algorithm>
#include <cstdint>

#include "sim/world/rates.hpp"

namespace reprise::sim {

/// The part of virtual time in which a resource transfers the bytes of one operation.
struct Transfer {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

/// A store, a bus or a link. A request needs the latency to arrive. Then it waits until the
/// requests that were made before it are served, and is served at the full bandwidth:
///
///   request 1   |-latency-|=== bytes ===|
///   request 2     |-latency-|...........|=== bytes ===|
///
/// So the latency of a request is hidden if enough requests stand before it.
class Resource {
 public:
  explicit Resource(Rate rate) : rate_(rate) {}

  /// Adds a request for `bytes` bytes that is made at `now_ns`. The times of requests must not go
  /// back.
  Transfer take(std::uint64_t now_ns, std::uint64_t bytes) {
    const std::uint64_t begin = std::max(now_ns + rate_.latency_ns, free_ns_);
    free_ns_ = begin + duration_ns(bytes);
    return {begin, free_ns_};
  }

 private:
  std::uint64_t duration_ns(std::uint64_t bytes) const {
    return rate_.mb_per_s == 0 ? 0 : (bytes * 1000 + rate_.mb_per_s - 1) / rate_.mb_per_s;
  }

  Rate rate_;
  std::uint64_t free_ns_ = 0;
};

/// The resources of a store. Calls that carry no bytes take the latency of reading if they only
/// look, and that of writing if they change something.
struct StoreResources {
  explicit StoreResources(const Rates& rates) : read(rates.store_read), write(rates.store_write) {}

  Resource read;
  Resource write;
};

/// The two directions of a device's bus, which do not slow down each other.
struct Bus {
  explicit Bus(Rate rate) : to_device(rate), from_device(rate) {}

  Resource to_device;
  Resource from_device;
};

}  // namespace reprise::sim

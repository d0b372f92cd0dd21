#pragma once
// Shares staging memory between reads and the copies to the device that follow them:
//
//   file    | read a | read b | read c | read d ...      a read waits only for the copies that
//   still bus              | copy a | copy b | copy c ...      use its part of the ring

#include <cstddef>
#include <deque>
#include <span>

#include "core/base/bytes.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// A ring of memory. Each take() returns the part behind the one before, or the front if it does
/// not fit there.
class StagingRing {
 public:
  /// `room` is the largest size of one part; it is at most the size of `staging`. Both `staging`
  /// and `device` must outlive the ring.
  StagingRing(MutableByteSpan staging, std::size_t room, Device& device);
  /// Waits for the copies, and ignores their errors.
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  std::size_t room() const { return room_; }
  Device& device() const { return device_; }

  /// Returns `bytes` bytes, at most room(). First waits for the copies that still read them.
  MutableByteSpan take(std::size_t bytes);
  /// Starts copies from the part that take() returned last, and does not wait for them.
  void scatter(std::span<const ScatterCopy> copies);
  /// Waits for all copies even if one fails, and then throws the first error.
  void settle();

 private:
  struct Use {
    std::size_t begin = 0;
    std::size_t end = 0;
    DeviceEvent event = {};
  };

  bool is_used(std::size_t begin, std::size_t end) const;
  void wait_for_oldest();

  MutableByteSpan staging_;
  std::size_t room_;
  Device& device_;
  std::size_t begin_ = 0;  ///< the part that take() returned last is [begin_, end_)
  std::size_t end_ = 0;
  std::deque<Use> uses_;  ///< copies not waited for yet, oldest first
};

}  // namespace reprise

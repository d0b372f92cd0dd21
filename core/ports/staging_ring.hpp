#pragma once
// Shares staging memory between reads and the copies to the device that follow them:
//
//   reader 1 | read a | read c | ...         a read waits only until its part of the ring is free
//   reader 2 | read b | read d | ...
//   bus               | copy a | copy b | copy c ...      copies start in the order of the reads

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "core/base/bytes.hpp"
#include "reprise/device.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Reads that run in the background.
struct Readers {
  Tasks* tasks = nullptr;  ///< null if each read is over before StagingRing::read() returns
  std::size_t most = 1;    ///< number of reads that may be on their way at once
};

/// A ring of memory. Each read gets the part behind the one before, or the front if it does not fit
/// there.
class StagingRing {
 public:
  /// `room` is the largest size of one part; it is at most the size of `staging`. `staging`,
  /// `device` and the tasks must outlive the ring.
  StagingRing(MutableByteSpan staging, std::size_t room, Device& device, Readers readers = {});
  /// Waits for reads and copies, and ignores their errors.
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  std::size_t room() const { return room_; }
  Device& device() const { return device_; }
  /// True if a read may still be on its way when read() returns.
  bool reads_ahead() const { return readers_.tasks != nullptr; }

  /// Fills a part of `bytes` bytes, at most room(), by `read`, and then passes it to `use`, which
  /// may call scatter(). First waits for the copies that still read the part. Each `read` may run
  /// in another thread, beside others. `use` runs in this thread, for one part after another in the
  /// order of the calls, in this call or in a later one of any function of the ring. What a `read`
  /// or `use` throws comes out of the call in which its turn is, and parts that come after it are
  /// not used.
  template <class Read, class Use>
  void read(std::size_t bytes, Read read, Use use);
  /// Starts copies from the part that is in use, and does not wait for them.
  void scatter(std::span<const ScatterCopy> copies);
  /// Waits until all parts have been used.
  void catch_up();
  /// Waits for all parts and copies even if one fails, and then throws the first error.
  void drain();

 private:
  using Part = std::function<void(MutableByteSpan part)>;

  struct Extent {
    std::size_t begin = 0;
    std::size_t end = 0;

    bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
  };
  struct Reading {
    Extent part;
    std::unique_ptr<Task> task;
    Part use;
  };
  struct Copying {
    Extent part;
    DeviceEvent event = {};
  };

  MutableByteSpan memory(const Extent& part) const {
    return staging_.subspan(part.begin, part.end - part.begin);
  }
  Extent take(std::size_t bytes);
  void start(const Extent& part, Part read, Part use);
  void use_oldest();

  MutableByteSpan staging_;
  std::size_t room_;
  Device& device_;
  Readers readers_;
  std::size_t end_ = 0;  ///< end of the part that was taken last
  Extent in_use_;
  std::deque<Copying> copying_;  ///< copies not waited for yet, oldest first
  std::deque<Reading> reading_;  ///< parts not used yet, oldest first; all are newer than copying_
};

template <class Read, class Use>
void StagingRing::read(std::size_t bytes, Read read, Use use) {
  const Extent part = take(bytes);
  if (reads_ahead()) return start(part, std::move(read), std::move(use));
  read(memory(part));
  in_use_ = part;
  use(memory(part));
}

}  // namespace reprise

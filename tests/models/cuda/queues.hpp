#pragma once
// Streams as queues of work, and events as places in them.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.hpp"
#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {

struct Queue;

/// A place in a queue: after its first `after` entries.
struct Place {
  std::shared_ptr<Queue> queue;  ///< null for a place that was reached from the start
  std::uint64_t after = 0;
};

/// Bytes that an entry reads or writes, as far as they are known before it runs.
struct Touched {
  const std::byte* first = nullptr;
  std::size_t bytes = 0;
};

struct Queue {
  struct Entry {
    std::function<void()> run;  ///< empty for an entry that only waits
    Place waits_for;
    std::vector<Touched> touched = {};
    std::function<bool()> held = {};  ///< true while the entry can't run; empty for never
    bool never_ends = false;          ///< true if nothing that this program does lets it run
  };

  int device = 0;
  bool blocking = false;  ///< true if it waits for the default stream, and that for it
  std::deque<Entry> entries = {};
  std::uint64_t queued = 0;    ///< number of entries ever queued
  std::uint64_t finished = 0;  ///< number of entries that have run
};

bool reached(const Place& place);
Place end_of(const std::shared_ptr<Queue>& queue);

/// All queues of a process.
class Queues {
 public:
  explicit Queues(const Settings& settings)
      : schedule_(settings.schedule), random_(settings.seed) {}
  /// Drops what has not run: queues that wait for each other would keep each other alive.
  ~Queues();
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  std::shared_ptr<Queue> make(int device, bool blocking);
  /// The queue's entries still run.
  void forget(const std::shared_ptr<Queue>& queue);

  /// Adds an entry; it then runs as the schedule says.
  void add(const std::shared_ptr<Queue>& queue, Queue::Entry entry);
  /// Runs what has to run before the place is reached, and nothing else. Returns false if an entry
  /// on the way is held.
  bool run_until(const Place& place);
  /// Runs all entries of a device that are not held.
  void drain(int device);
  /// Runs some entries if the schedule says so. Called at each call of the runtime.
  void go_on();
  /// True if a caller who polls for the place is to see it reached now.
  bool poll(const Place& place);
  /// True if the device has an entry that never ends.
  bool is_stuck(int device) const;
  /// True if some queued entry touches the bytes.
  bool is_touched(const std::byte* first, std::size_t bytes) const;
  Schedule schedule() const { return schedule_; }
  /// Draws from the schedule's seed.
  std::uint64_t below(std::uint64_t end) { return random_.below(end); }

 private:
  bool is_ready(const Queue& queue) const;
  static bool is_held(const Queue& queue);
  void run_one(Queue& queue);

  Schedule schedule_;
  Stream random_;
  std::vector<std::shared_ptr<Queue>> queues_;
  std::uint64_t polled_ = 0;  ///< number of polls in a row that saw nothing new
};

}  // namespace reprise::models

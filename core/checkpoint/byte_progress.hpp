#pragma once
// Reports progress toward a total that is known in advance. Threads may share one.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "reprise/inspect.hpp"

namespace reprise {

class ByteProgress {
 public:
  /// `progress` must outlive this object.
  explicit ByteProgress(Progress& progress) : progress_(progress) {}

  void expect(std::uint64_t bytes) { total_ += bytes; }
  std::uint64_t expected() const { return total_; }
  /// Reports that `bytes` more bytes are done; 0 only indicates that the work continues. An
  /// exception from the callback ends the work.
  void go(std::string_view what, std::uint64_t bytes) {
    const std::lock_guard lock(going_);
    done_ = std::min(done_ + bytes, total_);
    progress_.advance(what, done_, total_);
  }
  /// Counts bytes that will not be done, and reports nothing.
  void pass_over(std::uint64_t bytes) {
    const std::lock_guard lock(going_);
    done_ = std::min(done_ + bytes, total_);
  }

 private:
  Progress& progress_;
  std::mutex going_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace reprise

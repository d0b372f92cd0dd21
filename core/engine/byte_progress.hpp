#pragma once
// Progress of long work toward a total that is known before it begins.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "reprise/inspect.hpp"

namespace reprise {

class ByteProgress {
 public:
  /// `progress` is borrowed.
  explicit ByteProgress(Progress& progress) : progress_(progress) {}

  void expect(std::uint64_t bytes) { total_ += bytes; }
  std::uint64_t expected() const { return total_; }
  /// Tells that so many more bytes are done, or none: that the work goes on. What the one who is
  /// told throws ends the work.
  void go(std::string_view what, std::uint64_t bytes) {
    done_ = std::min(done_ + bytes, total_);
    progress_.advance(what, done_, total_);
  }

 private:
  Progress& progress_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace reprise

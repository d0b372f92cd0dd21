#pragma once
// Remembers which of several failures is told: the first in order, whichever came first in time.

#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

namespace reprise {

/// The failure of the lowest number among those that threads noted, so that what is told does not
/// depend on the threads. Of failures of one number, the first in time is told.
class EarliestFailure {
 public:
  void note(std::size_t number, std::exception_ptr failure) {
    const std::scoped_lock lock(noting_);
    if (first_ && number_ <= number) return;
    number_ = number;
    first_ = std::move(failure);
  }
  /// True if something before this number is known to have failed. Then it need not go on, since
  /// its own failure would not be told.
  bool any_before(std::size_t number) const {
    const std::scoped_lock lock(noting_);
    return first_ && number_ < number;
  }
  /// Throws the first failure, if there is one. No thread may note any more.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  mutable std::mutex noting_;
  std::size_t number_ = std::numeric_limits<std::size_t>::max();
  std::exception_ptr first_;
};

}  // namespace reprise

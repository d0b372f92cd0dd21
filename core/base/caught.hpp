#pragma once
// Converts any caught exception to an Error, so that no exception is lost.

#include <exception>

#include "reprise/error.hpp"

namespace reprise {

/// Makes several calls even if one of them fails, and remembers the first failure.
class FirstFailure {
 public:
  template <class Call>
  void attempt(const Call& call) {
    try {
      call();
    } catch (const std::exception&) {
      if (!first_) first_ = std::current_exception();
    }
  }
  /// Throws the first failure, if there is one.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

/// Returns an Error unchanged, and any other exception as INTERNAL with its message.
Error error_from(const std::exception& caught);

}  // namespace reprise

#pragma once
// Drops privileges temporarily, for tests in which the file system must refuse an access.

#include <unistd.h>

#include <exception>
#include <stdexcept>

namespace reprise::contracts {

/// Runs the process as the user nobody while an object of this class exists, because root may read
/// and write everything. Does nothing if the user is not root.
class NotRoot {
 public:
  NotRoot() {
    if (was_root_ && ::seteuid(kNobody) != 0) throw std::runtime_error("seteuid");
  }
  ~NotRoot() {
    if (was_root_ && ::seteuid(0) != 0) std::terminate();
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_ = ::geteuid() == 0;
};

}  // namespace reprise::contracts

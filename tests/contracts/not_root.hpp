#pragma once
// Drops privileges temporarily, for a test that the file system must refuse.

#include <unistd.h>

#include <exception>
#include <stdexcept>

namespace reprise::contracts {

/// Turns root into nobody for the object's lifetime, since root may read and write everything. Does
/// nothing for other users.
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

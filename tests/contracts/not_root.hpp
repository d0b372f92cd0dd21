#pragma once
// A test that needs to be refused by the file system gives up its rights for a while.

#include <unistd.h>

#include <exception>
#include <stdexcept>

namespace reprise::contracts {

/// Makes root nobody for as long as it lives, since root may read and write everything. Another
/// user stays who it is.
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

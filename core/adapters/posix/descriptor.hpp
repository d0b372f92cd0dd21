#pragma once
// Owns a file descriptor.

#include "core/adapters/posix/syscall.hpp"

namespace reprise::posix {

class Descriptor {
 public:
  /// Takes ownership of an open descriptor.
  static Descriptor adopt(int fd) { return Descriptor(fd); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  /// Closes the descriptor without reporting errors.
  ~Descriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  /// Gives up ownership of the descriptor without closing it.
  int release();
  /// Closes the descriptor and reports errors. It is closed even if there is an error.
  void close(const CallSite& site);

 private:
  explicit Descriptor(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace reprise::posix

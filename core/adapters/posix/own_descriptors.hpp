#pragma once
// Lists the descriptors that must end with the process that opened them, whatever its children do.

#include <mutex>
#include <vector>

namespace reprise::posix {

/// The descriptors of this process that no child may keep: those of locks and of connections to
/// other ranks. Such a descriptor has its effect until its last copy is closed. A forked child,
/// such as a worker that loads data, gets a copy of each and may outlive the process: it closes
/// them first of all. A new program closes them by close-on-exec.
class OwnDescriptors {
 public:
  static OwnDescriptors& of_process();

  /// Held while such a descriptor is open that is not in the list, so no fork copies it. The holder
  /// waits for nothing else in this process.
  std::mutex& mutex() { return mutex_; }
  /// Adds to the list and removes from it. The caller holds the mutex.
  void add(int fd) { fds_.push_back(fd); }
  void remove(int fd) { std::erase(fds_, fd); }
  /// Returns the number of forks between the first process that asked for the list and this one. An
  /// object that was made before the last of them is a copy, and its descriptors are closed.
  int forks() const { return forks_; }

 private:
  OwnDescriptors();
  void drop_copies();

  std::mutex mutex_;
  std::vector<int> fds_;
  int forks_ = 0;
};

}  // namespace reprise::posix

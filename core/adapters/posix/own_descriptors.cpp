#include "core/adapters/posix/own_descriptors.hpp"

#include <pthread.h>
#include <unistd.h>

namespace reprise::posix {

OwnDescriptors& OwnDescriptors::of_process() {
  // Never destroyed: a thread may fork while the process ends.
  static auto* const all = new OwnDescriptors;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

OwnDescriptors::OwnDescriptors() {
  ::pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                   [] { of_process().drop_copies(); });
}

void OwnDescriptors::drop_copies() {
  for (const int fd : fds_) ::close(fd);
  fds_.clear();
  ++forks_;
  mutex_.unlock();
}

}  // namespace reprise::posix

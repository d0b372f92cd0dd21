#include "core/adapters/posix/descriptor.hpp"

#include <unistd.h>

#include <utility>

namespace reprise::posix {

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int Descriptor::release() { return std::exchange(fd_, -1); }

void Descriptor::close(const CallSite& site) {
  // Linux frees the descriptor even if close() is interrupted. So close() is not repeated: the
  // number may already belong to another file.
  if (::close(release()) == -1 && errno != EINTR) fail(site, errno);
}

}  // namespace reprise::posix

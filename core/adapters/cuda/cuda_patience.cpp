#include "core/adapters/cuda/cuda_patience.hpp"

#include "core/adapters/posix/posix_clock.hpp"

namespace reprise {

void CudaPatience::until(const std::function<bool()>& done, const std::string& what) const {
  PosixClock machine;
  Clock& time = clock == nullptr ? machine : *clock;
  const auto describe = [&what] { return what; };
  if (!peers) return CallDeadline(time, deadline_ns, describe).until(done);
  CallDeadline(time, {.deadline_ns = deadline_ns, .watch = peers->watch}, peers->group, peers->self,
               describe)
      .until(done);
}

}  // namespace reprise

#include "core/adapters/posix/posix_clock.hpp"

#include <ctime>

#include "core/adapters/posix/syscall.hpp"

namespace reprise {

std::uint64_t PosixClock::now_ns() {
  timespec now = {};
  posix::checked({"clock_gettime"}, [&now] { return ::clock_gettime(CLOCK_MONOTONIC, &now); });
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace reprise

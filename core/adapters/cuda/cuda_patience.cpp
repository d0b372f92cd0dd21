#include "core/adapters/cuda/cuda_patience.hpp"

#include <chrono>

namespace reprise {
namespace {

class SteadyClock final : public Clock {
 public:
  std::uint64_t now_ns() override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
};

}  // namespace

void CudaPatience::until(const std::function<bool()>& done, const std::string& what) const {
  SteadyClock steady;
  Clock& time = clock == nullptr ? steady : *clock;
  const auto describe = [&what] { return what; };
  if (!peers) return CallDeadline(time, deadline_ns, describe).until(done);
  CallDeadline(time, {.deadline_ns = deadline_ns, .watch = peers->watch}, peers->group, peers->self,
               describe)
      .until(done);
}

}  // namespace reprise

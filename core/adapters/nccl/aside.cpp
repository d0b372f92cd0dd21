#include "core/adapters/nccl/aside.hpp"

#include <thread>
#include <utility>

namespace reprise {

void run_aside(std::function<void()> work) { std::thread(std::move(work)).detach(); }

}  // namespace reprise

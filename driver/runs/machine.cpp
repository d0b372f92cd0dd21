#include "driver/runs/machine.hpp"

#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>

#include "core/adapters/cuda/cuda_info.hpp"

namespace reprise::driver {
namespace {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

reports::Machine this_machine() {
  reports::Machine machine;
  machine.cpu = cpu_model() + " x " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  machine.gpus = cuda_devices();
  machine.cuda = cuda_version();
  return machine;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace reprise::driver

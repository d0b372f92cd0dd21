#include "core/adapters/posix/host_device.hpp"

#include "core/base/check.hpp"
#include "core/geometry/piece.hpp"

namespace reprise {

HostDevice::HostDevice(const std::string& node, int index)
    : name_(node + ":" + std::to_string(index)) {}

DeviceEvent HostDevice::gather(std::span<const GatherCopy> copies) {
  for (const auto& copy : copies) {
    copy_strided(copy.device, copy.host, copy.extents, copy.element_bytes);
  }
  return {.id = ++last_event_};
}

DeviceEvent HostDevice::scatter(std::span<const ScatterCopy> copies) {
  for (const auto& copy : copies) {
    copy_strided(copy.host, copy.device, copy.extents, copy.element_bytes);
  }
  return {.id = ++last_event_};
}

void HostDevice::wait(DeviceEvent event) { CHECK(event.id <= last_event_.load(), event.id); }

}  // namespace reprise

#include "sim/world/sim_device.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace reprise::sim {
namespace {

// Fills the region with poison, by a copy whose source does not move.
void poison(const StridedView& target, const Dims& extents, std::size_t element_bytes) {
  const Bytes element(element_bytes, SimDevice::kPoison);
  const ConstStridedView source = {.data = element.data(),
                                   .strides = Dims::filled(extents.size(), 0)};
  copy_strided(source, target, extents, element_bytes);
}

}  // namespace

SimDevice::SimDevice(RankLife& life, std::string name) : life_(life), name_(std::move(name)) {}

DeviceEvent SimDevice::enqueue(std::string_view kind, std::vector<Copy> copies) {
  std::uint64_t bytes = 0;
  for (const auto& copy : copies) {
    bytes += static_cast<std::uint64_t>(volume(copy.extents)) * copy.element_bytes;
  }
  life_.note(kind, name_, {copies.size(), bytes});
  queue_.push_back({.event = ++last_event_, .copies = std::move(copies)});
  return {.id = last_event_};
}

DeviceEvent SimDevice::gather(std::span<const GatherCopy> copies) {
  std::vector<Copy> queued;
  for (const auto& copy : copies) {
    queued.push_back({copy.device, copy.host, copy.extents, copy.element_bytes});
  }
  const auto event = enqueue("gather", std::move(queued));
  for (const auto& copy : copies) poison(copy.host, copy.extents, copy.element_bytes);
  return event;
}

DeviceEvent SimDevice::scatter(std::span<const ScatterCopy> copies) {
  std::vector<Copy> queued;
  for (const auto& copy : copies) {
    queued.push_back({copy.host, copy.device, copy.extents, copy.element_bytes});
  }
  return enqueue("scatter", std::move(queued));
}

void SimDevice::wait(DeviceEvent event) {
  CHECK(event.id <= last_event_, event.id);
  life_.step("device wait", name_, {event.id});
  while (!queue_.empty() && queue_.front().event <= event.id) {
    for (const auto& copy : queue_.front().copies) {
      copy_strided(copy.source, copy.target, copy.extents, copy.element_bytes);
    }
    queue_.pop_front();
  }
}

}  // namespace reprise::sim

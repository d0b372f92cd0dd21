#include "sim/world/sim_device.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/geometry/strided_copy.hpp"

namespace reprise::sim {
namespace {

// Fills the runs of the innermost `level` dimensions. The first run is at `target`.
void fill_level(const StridedCopy& runs, std::int32_t level, std::byte* target, std::byte poison) {
  if (level == 0) {
    std::fill_n(target, runs.run_bytes, poison);
    return;
  }
  const StridedCopy::Dim& dim = runs.dim[level - 1];
  for (std::int64_t i = 0; i < dim.count; ++i) {
    fill_level(runs, level - 1, target + i * dim.target_step, poison);
  }
}

// Fills the region with the byte `poison`. Its runs are those of a copy onto itself.
void fill(const StridedView& target, const Dims& extents, std::size_t element_bytes,
          std::byte poison) {
  const StridedCopy runs =
      strided_copy({target.data, target.strides}, target, extents, element_bytes);
  if (runs.runs > 0) fill_level(runs, runs.dims, target.data, poison);
}

}  // namespace

SimDevice::SimDevice(RankContext& life, std::string name, Bus& bus)
    : life_(life), name_(std::move(name)), bus_(bus) {}

DeviceEvent SimDevice::enqueue(std::string_view kind, Resource& direction,
                               std::vector<Copy> copies) {
  std::uint64_t bytes = 0;
  for (const auto& copy : copies) {
    if (kind == "scatter" && is_own(copy.source.data)) continue;
    bytes += static_cast<std::uint64_t>(volume(copy.extents)) * copy.element_bytes;
  }
  life_.note(kind, name_, {copies.size(), bytes});
  const Transfer passes = direction.take(life_.scheduler().now_ns(), bytes);
  queued_.emplace(++last_event_, Batch{kind, std::move(copies), bytes, passes});
  return {.id = last_event_};
}

bool SimDevice::is_own(const std::byte* address) const {
  return std::ranges::any_of(own_, [address](const Bytes& memory) {
    return address >= memory.data() && address < memory.data() + memory.size();
  });
}

DeviceEvent SimDevice::gather(std::span<const GatherCopy> copies) {
  std::vector<Copy> queued;
  for (const auto& copy : copies) {
    queued.push_back({copy.device, copy.host, copy.extents, copy.element_bytes});
  }
  const auto event = enqueue("gather", bus_.from_device, std::move(queued));
  for (const auto& copy : copies) fill(copy.host, copy.extents, copy.element_bytes, kUngathered);
  return event;
}

DeviceEvent SimDevice::scatter(std::span<const ScatterCopy> copies) {
  std::vector<Copy> queued;
  for (const auto& copy : copies) {
    queued.push_back({copy.host, copy.device, copy.extents, copy.element_bytes});
  }
  const auto event = enqueue("scatter", bus_.to_device, std::move(queued));
  for (const auto& copy : copies) fill(copy.device, copy.extents, copy.element_bytes, kUnscattered);
  return event;
}

void SimDevice::wait(DeviceEvent event) {
  CHECK(event.id <= last_event_, event.id);
  const auto pending = queued_.find(event.id);
  if (pending != queued_.end()) life_.wait_until(pending->second.passes.end_ns);
  life_.step("device wait", name_, {event.id});
  const auto queued = queued_.find(event.id);
  if (queued == queued_.end()) return;  // another wait already made the copies
  const Batch& batch = queued->second;
  for (const auto& copy : batch.copies) {
    copy_strided(copy.source, copy.target, copy.extents, copy.element_bytes);
  }
  if (life_.recorder() != nullptr) {
    life_.recorder()->copies(life_.rank(), {batch.kind, name_, batch.bytes, batch.passes});
  }
  queued_.erase(queued);
}

}  // namespace reprise::sim

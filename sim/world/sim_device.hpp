#pragma once
// Simulates a device that delays each copy until somebody waits for the copy's event.

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/device.hpp"
#include "sim/world/rank_context.hpp"

namespace reprise::sim {

/// A device with host memory. A copy is made only when somebody waits for its event; until then the
/// copy's target is poisoned. As a result, a reader gets poison if it did not wait, and a job
/// corrupts the staged data if it changes its state too early. If nobody waits for the event, the
/// copy is never made, because its memory may already be freed.
///
/// Copies pass the device's bus in the order in which they were queued, those of each direction one
/// after another. A wait takes until the copy has passed.
class SimDevice final : public Device {
 public:
  /// kUngathered fills staging memory until somebody waits for the gather's event. kUnscattered
  /// fills device memory until somebody waits for the scatter's event.
  static constexpr std::byte kUngathered{0xA5};
  static constexpr std::byte kUnscattered{0xB5};

  /// Ranks with the same device share its `bus`.
  SimDevice(RankContext& life, std::string name, Bus& bus);

  std::string name() const override { return name_; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override;
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override;
  void wait(DeviceEvent event) override;

  /// Waits until this many bytes have passed the bus to the device.
  void upload(std::uint64_t bytes) { life_.transfer(bus_.to_device, bytes); }
  /// Returns memory of the device with this content, for as long as the device exists. Copies from
  /// there to the device do not pass the bus.
  MutableByteSpan hold(Bytes content) { return own_.emplace_back(std::move(content)); }

 private:
  struct Copy {
    ConstStridedView source;
    StridedView target;
    Dims extents;
    std::size_t element_bytes = 1;
  };

  /// Copies that were queued together, and when they pass the bus.
  struct Batch {
    std::string_view kind;
    std::vector<Copy> copies;
    std::uint64_t bytes = 0;
    Transfer passes = {};
  };

  DeviceEvent enqueue(std::string_view kind, Resource& direction, std::vector<Copy> copies);
  bool is_own(const std::byte* address) const;

  RankContext& life_;
  std::string name_;
  Bus& bus_;
  std::list<Bytes> own_;
  std::uint64_t last_event_ = 0;
  std::map<std::uint64_t, Batch> queued_;  ///< copies not made yet, by event
};

}  // namespace reprise::sim

#pragma once
// Simulates a device that delays each copy until somebody waits for the copy's event.

#include <map>
#include <string>
#include <vector>

#include "reprise/device.hpp"
#include "sim/world/rank_life.hpp"

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
  SimDevice(RankLife& life, std::string name, Bus& bus);

  std::string name() const override { return name_; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override;
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override;
  void wait(DeviceEvent event) override;

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

  RankLife& life_;
  std::string name_;
  Bus& bus_;
  std::uint64_t last_event_ = 0;
  std::map<std::uint64_t, Batch> queued_;  ///< copies not made yet, by event
};

}  // namespace reprise::sim

#pragma once
// A device whose copies are as late as their events allow.

#include <deque>
#include <functional>
#include <string>

#include "core/ports/device.hpp"
#include "sim/world/rank_life.hpp"

namespace reprise::sim {

/// Host memory behind a queue. A copy is done when somebody waits for it or for a later one, and
/// not before; until then the staging side of a gather is poisoned. So a reader that did not wait
/// reads poison, and a job that changes its state too early changes what is staged.
class SimDevice final : public Device {
 public:
  static constexpr std::byte kPoison{0xA5};

  SimDevice(RankLife& life, std::string name);

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
  struct Batch {
    std::uint64_t event = 0;
    std::vector<Copy> copies;
  };

  DeviceEvent enqueue(std::string_view kind, std::vector<Copy> copies);

  RankLife& life_;
  std::string name_;
  std::uint64_t last_event_ = 0;
  std::deque<Batch> queue_;
};

}  // namespace reprise::sim

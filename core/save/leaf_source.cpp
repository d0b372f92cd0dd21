#include "core/save/leaf_source.hpp"

#include <utility>

#include "core/base/caught.hpp"

namespace reprise {
namespace {

/// Waits for all copies even if one fails, so that none is still running afterwards. Begins with
/// the latest: the others have mostly ended with it.
void wait_all(Device& device, const std::vector<DeviceEvent>& events) {
  FirstFailure failure;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    failure.attempt([&] { device.wait(*event); });
  }
  failure.rethrow();
}

class LeafSource final : public ContentSource {
 public:
  LeafSource(Device& device, std::vector<LeafOrigin> origins)
      : device_(device), origins_(std::move(origins)) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    const auto& [leaf, piece] = origins_[item];
    const std::size_t width = size_of(leaf->dtype);
    copies_.clear();
    std::byte* to = out.data();
    for (const Box& part : boxes_of_range(piece->box, begin, end)) {
      copies_.push_back({.device = {address_of(*leaf, *piece, part.offset), piece->strides},
                         .host = {to, contiguous_strides(part.extent)},
                         .extents = part.extent,
                         .element_bytes = width});
      to += static_cast<std::size_t>(part.elements()) * width;
    }
    const DeviceEvent event = device_.gather(copies_);
    if (events_.empty() || events_.back().id != event.id) events_.push_back(event);
    // The copies of an event begin together, and those of another one after them.
    if (event.id != std::exchange(latest_, event.id)) begun_ = starts_;
  }

  std::function<void()> start() override {
    ++starts_;
    started_.insert(started_.end(), events_.begin(), events_.end());
    return [&device = device_, events = std::exchange(events_, {})] { wait_all(device, events); };
  }

  std::size_t begun() const override { return begun_; }
  void publish() override { device_.publish(); }

  void drain() override {
    FirstFailure failure;
    failure.attempt([this] { device_.publish(); });
    // Copies of earlier batches may run even if the last ones can't be queued.
    started_.insert(started_.end(), events_.begin(), events_.end());
    events_.clear();
    failure.attempt([this] { wait_all(device_, std::exchange(started_, {})); });
    failure.rethrow();
  }

  StagingMemory staging(std::size_t bytes) override { return device_.staging(bytes); }

 private:
  Device& device_;
  std::vector<LeafOrigin> origins_;
  std::vector<GatherCopy> copies_;
  std::vector<DeviceEvent> events_;   ///< since the last start()
  std::vector<DeviceEvent> started_;  ///< since the last drain()
  std::uint64_t latest_ = 0;          ///< the event of the latest copy
  std::size_t starts_ = 0;            ///< calls of start()
  std::size_t begun_ = 0;             ///< of them, those whose copies have begun
};

}  // namespace

std::unique_ptr<ContentSource> leaf_source(Device& device, std::vector<LeafOrigin> origins) {
  return std::make_unique<LeafSource>(device, std::move(origins));
}

}  // namespace reprise

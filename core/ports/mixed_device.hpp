#pragma once
// Copies for a state of which some tensors are in the memory of the job's device and others in that
// of the host, such as the step counts of an optimizer whose moments are on a GPU.

#include <utility>
#include <vector>

#include "core/ports/passing_device.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

/// Passes copies on to a device, but makes those itself whose device side is in host memory. It
/// makes them at once, on the calling thread.
class MixedDevice final : public PassingDevice {
 public:
  /// `device` must outlive this object, and so must the memory of `state`.
  MixedDevice(Device& device, const StateDict& state);

  DeviceEvent gather(std::span<const GatherCopy> copies) override;
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override;

 private:
  bool is_on_host(const std::byte* address) const;
  template <class Copy, class Make>
  std::vector<Copy> others(std::span<const Copy> copies, const Make& make) const;

  /// The first and the last element of each piece in host memory, in the order of their addresses.
  std::vector<std::pair<const std::byte*, const std::byte*>> host_;
};

/// True if the state has parts in host memory, and the device's memory is another.
bool needs_mixed_device(const Device& device, const StateDict& state);

}  // namespace reprise

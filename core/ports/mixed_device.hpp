#pragma once
// Copies for a state of which some tensors are in the memory of the job's device and others in that
// of the host, such as the step counts of an optimizer whose moments are on a GPU.

#include <optional>
#include <utility>
#include <vector>

#include "core/state/state_dict.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Passes copies on to a device, but makes those itself whose device side is in host memory. It
/// makes them at once, on the calling thread.
class MixedDevice final : public Device {
 public:
  /// `device` must outlive this object, and so must the memory of `state`.
  MixedDevice(Device& device, const StateDict& state);

  std::string name() const override { return device_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override;
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override;
  void wait(DeviceEvent event) override { device_.wait(event); }
  void publish() override { device_.publish(); }
  void use_stream(void* stream) override { device_.use_stream(stream); }
  void reserve(std::size_t bytes) override { device_.reserve(bytes); }
  bool reaches(const std::byte* address) const override { return device_.reaches(address); }
  bool host_memory() const override { return device_.host_memory(); }
  StagingMemory staging(std::size_t bytes) override { return device_.staging(bytes); }
  std::uint64_t batch_bytes() const override { return device_.batch_bytes(); }

 private:
  bool is_on_host(const std::byte* address) const;
  template <class Copy, class Make>
  std::vector<Copy> others(std::span<const Copy> copies, const Make& make) const;

  Device& device_;
  /// The first and the last element of each piece in host memory, in the order of their addresses.
  std::vector<std::pair<const std::byte*, const std::byte*>> host_;
};

/// True if the state has parts in host memory, and the device's memory is another.
bool needs_mixed_device(const Device& device, const StateDict& state);

}  // namespace reprise

#pragma once
// Makes host memory the job's device. Copies are complete when the call returns.

#include <atomic>
#include <string>

#include "reprise/device.hpp"

namespace reprise {

class HostDevice final : public Device {
 public:
  /// Sets the device's name to "<node>:<index>".
  HostDevice(const std::string& node, int index);

  std::string name() const override { return name_; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override;
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override;
  void wait(DeviceEvent event) override;
  bool host_memory() const override { return true; }

 private:
  std::string name_;
  std::atomic<std::uint64_t> last_event_ = 0;
};

}  // namespace reprise

#pragma once
// A device that forwards every call to another device. It is a base class for devices that
// intercept some calls.

#include "reprise/device.hpp"

namespace reprise {

class PassingDevice : public Device {
 public:
  /// Forwards to `inner`, which must outlive this device.
  explicit PassingDevice(Device& inner) : inner_(inner) {}

  std::string name() const override { return inner_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override { return inner_.gather(copies); }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    return inner_.scatter(copies);
  }
  void wait(DeviceEvent event) override { inner_.wait(event); }
  void publish() override { inner_.publish(); }
  void use_stream(void* stream) override { inner_.use_stream(stream); }
  void reserve(std::size_t bytes) override { inner_.reserve(bytes); }
  bool host_memory() const override { return inner_.host_memory(); }
  bool reaches(const std::byte* address) const override { return inner_.reaches(address); }
  StagingMemory staging(std::size_t bytes) override { return inner_.staging(bytes); }
  std::uint64_t batch_bytes() const override { return inner_.batch_bytes(); }

 protected:
  Device& inner() const { return inner_; }

 private:
  Device& inner_;
};

}  // namespace reprise

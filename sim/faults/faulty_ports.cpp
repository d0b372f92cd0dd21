#include "sim/faults/faulty_ports.hpp"

#include <utility>

#include "sim/faults/fault_seat.hpp"
#include "sim/faults/faulty_fabric.hpp"
#include "sim/faults/faulty_store.hpp"

namespace reprise::sim {
namespace {

/// A device has no faults of its own, but a rank can die at one of the device's copies.
class FaultyDevice final : public Device {
 public:
  FaultyDevice(Device& inner, FaultSeat& seat) : inner_(inner), seat_(seat) {}

  std::string name() const override { return inner_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    seat_.strikes({CallKind::kOther, "gather", {}});
    return inner_.gather(copies);
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    seat_.strikes({CallKind::kOther, "scatter", {}});
    return inner_.scatter(copies);
  }
  void wait(DeviceEvent event) override { inner_.wait(event); }
  void publish() override { inner_.publish(); }
  void reserve(std::size_t bytes) override { inner_.reserve(bytes); }
  bool host_memory() const override { return inner_.host_memory(); }
  bool reaches(const std::byte* address) const override { return inner_.reaches(address); }
  StagingMemory staging(std::size_t bytes) override { return inner_.staging(bytes); }
  std::uint64_t batch_bytes() const override { return inner_.batch_bytes(); }

 private:
  Device& inner_;
  FaultSeat& seat_;
};

/// Reports to the book where phases and steps begin and end. At a begin, faults strike before the
/// inner trace sees the event. At an end, faults strike after the inner trace has seen it.
class FaultyTrace final : public Trace {
 public:
  FaultyTrace(Trace& inner, FaultSeat& seat) : inner_(inner), seat_(seat) {}

  void event(const TraceEvent& event) override {
    if (event.moment == Moment::kBegin) seat_.begins(event.phase, event.detail);
    inner_.event(event);
    if (event.moment == Moment::kEnd) seat_.ends(event.phase, event.detail);
  }

 private:
  Trace& inner_;
  FaultSeat& seat_;
};

}  // namespace

struct FaultyPorts::State {
  State(const Ports& inner, FaultBook& book, FaultPowers powers)
      : seat(book, inner.fabric.rank(), std::move(powers)),
        store(inner.store, seat),
        fabric(inner.fabric, seat),
        data(inner.data ? std::make_unique<FaultyFabric>(*inner.data, seat) : nullptr),
        device(inner.device, seat),
        trace(inner.trace, seat),
        ports{store, fabric, device, inner.tasks, trace, data.get()} {}

  FaultSeat seat;
  FaultyStore store;
  FaultyFabric fabric;
  std::unique_ptr<FaultyFabric> data;
  FaultyDevice device;
  FaultyTrace trace;
  Ports ports;
};

FaultyPorts::FaultyPorts(const Ports& inner, FaultBook& book, FaultPowers powers)
    : state_(std::make_unique<State>(inner, book, std::move(powers))) {}

FaultyPorts::~FaultyPorts() = default;

const Ports& FaultyPorts::ports() const { return state_->ports; }

}  // namespace reprise::sim

#include "sim/faults/faulty_ports.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "core/ports/observed_ports.hpp"
#include "core/ports/passing_device.hpp"
#include "sim/faults/fault_seat.hpp"
#include "sim/faults/faulty_store.hpp"

namespace reprise::sim {
namespace {

/// Applies a delay, loss or failure before the call is made.
void come_to(FaultSeat& seat, std::string_view operation) {
  const PortCall call{CallKind::kCollective, operation, {}};
  const FaultSpec* fault = seat.strikes(call);
  if (fault == nullptr) return;
  if (fault->kind == FaultKind::kFails) seat.fail(Code::kPeerFailed, call);
  seat.sleep(fault->delay_ns);
  if (fault->kind == FaultKind::kLost) seat.die();
}

class FaultyCommunicator final : public ObservedCommunicator {
 public:
  FaultyCommunicator(FaultSeat& seat, std::shared_ptr<Communicator> inner)
      : ObservedCommunicator(std::move(inner)), seat_(seat) {}

 private:
  /// Once a communicator has failed, every further call throws the same error, as on every lane.
  void around(const Call& call, const Rest& rest) override {
    if (broken_) throw *broken_;
    try {
      come_to(seat_, call.operation);
    } catch (const Error& error) {
      broken_ = error;
      throw;
    }
    rest();
  }

  FaultSeat& seat_;
  std::optional<Error> broken_;
};

/// Makes a rank arrive late at a collective, never arrive, or fail in it.
class FaultyFabric final : public Fabric {
 public:
  FaultyFabric(Fabric& inner, FaultSeat& seat) : inner_(inner), seat_(seat) {}

  GlobalRank rank() const override { return inner_.rank(); }
  std::int32_t world_size() const override { return inner_.world_size(); }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    come_to(seat_, "communicator");
    return std::make_shared<FaultyCommunicator>(seat_, inner_.communicator(group));
  }

 private:
  Fabric& inner_;
  FaultSeat& seat_;
};

/// A device has no faults of its own, but a rank can die at one of the device's copies.
class FaultyDevice final : public PassingDevice {
 public:
  FaultyDevice(Device& inner, FaultSeat& seat) : PassingDevice(inner), seat_(seat) {}

  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    seat_.strikes({CallKind::kOther, "gather", {}});
    return inner().gather(copies);
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    seat_.strikes({CallKind::kOther, "scatter", {}});
    return inner().scatter(copies);
  }

 private:
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

#include "driver/lanes/saves_in_flight.hpp"

#include "driver/record/protocol_trace.hpp"

namespace reprise::driver {
namespace {

/// Makes the log mark the events of a save with the step of that save.
class TraceOfSave final : public Trace {
 public:
  TraceOfSave(Trace& inner, PhaseLog* log, Step step) : inner_(inner), log_(log), step_(step) {}

  void event(const TraceEvent& event) override {
    if (log_ != nullptr) log_->within(step_);
    inner_.event(event);
    if (log_ != nullptr) log_->within({});
  }

 private:
  Trace& inner_;
  PhaseLog* log_;
  Step step_;
};

}  // namespace

struct SavesInFlight::OneSave {
  OneSave(const Ports& inner, PhaseLog* log, Step step, std::vector<std::string>& broken)
      : meter(inner),
        trace(meter.ports().trace, log, step),
        protocol(Protocol::kSave, trace, broken),
        ports{meter.ports().store, meter.ports().fabric, meter.ports().device, meter.ports().tasks,
              protocol} {}

  sim::MemoryMeter meter;
  TraceOfSave trace;
  ProtocolTrace protocol;
  Ports ports;
};

SavesInFlight::SavesInFlight(const Ports& inner, PhaseLog* log, std::vector<std::string>& broken)
    : inner_(inner), log_(log), broken_(broken) {}
SavesInFlight::~SavesInFlight() = default;

const Ports& SavesInFlight::begin(std::size_t number, Step step, std::span<const ByteSpan> own,
                                  const StateDict& saved) {
  OneSave& save = saves_.try_emplace(number, inner_, log_, step, broken_).first->second;
  save.meter.set_own(own, saved);
  return save.ports;
}

void SavesInFlight::returned(std::size_t number) { saves_.at(number).protocol.returned(); }

void SavesInFlight::end(std::size_t number) { saves_.erase(number); }

std::vector<std::string> SavesInFlight::states() const {
  std::vector<std::string> states;
  for (const auto& [number, save] : saves_) states.push_back(save.protocol.state());
  return states;
}

sim::MemoryPeaks SavesInFlight::peaks(std::size_t number) const {
  return saves_.at(number).meter.peaks();
}

sim::MemoryPeaks SavesInFlight::peaks_together() const {
  sim::MemoryPeaks sum;
  for (const auto& [number, save] : saves_) {
    const sim::MemoryPeaks own = save.meter.peaks();
    sum.snapshot += own.snapshot;
    sum.stage += own.stage;
  }
  return sum;
}

}  // namespace reprise::driver

#include "driver/lanes/saves_in_flight.hpp"

#include "core/ports/traced_ports.hpp"
#include "driver/record/protocol_trace.hpp"

namespace reprise::driver {
namespace {

/// Tells the watchers, for each event of a save, the step of that save.
class TraceOfSave final : public Trace {
 public:
  TraceOfSave(const Ports& inner, SaveWatchers watchers, Step step)
      : inner_(inner.trace), rank_(inner.fabric.rank()), watchers_(watchers), step_(step) {}

  void event(const TraceEvent& event) override {
    within(step_);
    inner_.event(event);
    within({});
  }
  void ended() {
    if (watchers_.recorder != nullptr) watchers_.recorder->save_ended(rank_, step_);
  }

 private:
  void within(std::optional<Step> save) {
    if (watchers_.log != nullptr) watchers_.log->within(save);
    if (watchers_.recorder != nullptr) watchers_.recorder->within(rank_, save);
  }

  Trace& inner_;
  GlobalRank rank_;
  SaveWatchers watchers_;
  Step step_;
};

}  // namespace

struct SavesInFlight::OneSave {
  OneSave(const Ports& inner, SaveWatchers watchers, Step step, Findings& broken)
      : meter(inner),
        trace(meter.ports(), watchers, step),
        protocol(Protocol::kSave, "save", trace, broken),
        ports(traced(meter.ports(), protocol)) {}

  sim::MemoryMeter meter;
  TraceOfSave trace;
  ProtocolTrace protocol;
  Ports ports;
};

SavesInFlight::SavesInFlight(const Ports& inner, SaveWatchers watchers, Findings& broken)
    : inner_(inner), watchers_(watchers), broken_(broken) {}
SavesInFlight::~SavesInFlight() = default;

const Ports& SavesInFlight::begin(std::size_t number, Step step, std::span<const ByteSpan> own,
                                  const StateDict& saved) {
  OneSave& save = saves_.try_emplace(number, inner_, watchers_, step, broken_).first->second;
  save.meter.set_own(own, saved);
  return save.ports;
}

void SavesInFlight::returned(std::size_t number) { saves_.at(number).protocol.returned(); }

void SavesInFlight::end(std::size_t number) {
  saves_.at(number).trace.ended();
  saves_.erase(number);
}

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

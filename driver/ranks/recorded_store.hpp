#pragma once
// A store that records every call of a rank with the time that it took.

#include "core/ports/observed_ports.hpp"
#include "sim/world/recorder.hpp"

namespace reprise::driver {

/// Records a call under the name that it has in the simulated world. May be called from any thread.
class RecordedStore final : public ObservedStore {
 public:
  /// Borrows both.
  RecordedStore(Store& inner, sim::Recorder& recorder, GlobalRank rank)
      : ObservedStore(inner), recorder_(recorder), rank_(rank) {}

 private:
  void around(const Call& call, const Rest& rest) override {
    const std::uint64_t begin_ns = recorder_.now_ns();
    const auto record = [&](bool failed) {
      recorder_.store(rank_, {call.operation, call.path, call.bytes, begin_ns, failed});
    };
    try {
      rest();
    } catch (...) {
      record(true);
      throw;
    }
    record(false);
  }

  sim::Recorder& recorder_;
  GlobalRank rank_;
};

}  // namespace reprise::driver

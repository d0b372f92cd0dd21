#pragma once
// Records the engine's trace events.

#include <string>
#include <vector>

#include "reprise/ports.hpp"
#include "sim/world/rank_life.hpp"

namespace reprise::sim {

struct TraceRecord {
  std::string phase;
  std::string detail;
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  Moment moment = Moment::kEnd;
  std::uint64_t at_ns = 0;  ///< virtual time of the event
};

class SimTrace final : public Trace {
 public:
  explicit SimTrace(RankLife& life) : life_(life) {}

  void event(const TraceEvent& event) override {
    life_.note(event.phase, event.detail,
               {event.bytes, event.items, static_cast<std::uint64_t>(event.moment)});
    if (life_.recorder() != nullptr) life_.recorder()->phase(life_.rank(), event);
    records_.push_back({.phase = std::string(event.phase),
                        .detail = event.detail,
                        .bytes = event.bytes,
                        .items = event.items,
                        .moment = event.moment,
                        .at_ns = life_.scheduler().now_ns()});
  }
  const std::vector<TraceRecord>& records() const { return records_; }

 private:
  RankLife& life_;
  std::vector<TraceRecord> records_;
};

}  // namespace reprise::sim

#include "driver/ranks/rank_trace.hpp"

#include <algorithm>
#include <chrono>

namespace reprise::driver {

RankTrace::RankTrace(const RankArguments& task, const Ports& inner)
    : rank_(inner.fabric.rank()),
      part_(trace_part_file(task.records, rank_.value)),
      threads_{{std::this_thread::get_id(), static_cast<std::size_t>(rank_.value)}},
      recorder_(sim::Recorder::Sink{
          .begun = [this](std::uint64_t number,
                          const sim::Slice& slice) { part_.begin(number, slice); },
          .slice = [this](std::uint64_t number,
                          const sim::Slice& slice) { part_.add(number, slice); },
          .instant = [this](const sim::Instant& instant) { part_.add(instant); }}),
      store_(inner.store, recorder_, rank_),
      fabric_("fabric", inner.fabric, recorder_),
      data_(inner.data ? std::make_unique<RecordedFabric>("data", *inner.data, recorder_)
                       : nullptr),
      trace_(inner.trace, [this](const TraceEvent& event) { recorder_.phase(rank_, event); }),
      ports_{store_, fabric_, inner.device, inner.tasks, trace_, data_.get()} {
  const auto first_of_others = static_cast<std::size_t>(task.world);
  recorder_.attach({.now_ns = [this] { return time(); },
                    .running = [this, first_of_others] { return thread(first_of_others); },
                    .is_dead = [this](GlobalRank) { return over_.load(); }});
}

void RankTrace::ended(const RankRecord& record) {
  if (record.ending == Ending::kReturned) return recorder_.returned(rank_);
  over(name_of(record.ending), record.message);
}

void RankTrace::over(std::string_view how, std::string_view why) {
  over_ = true;
  recorder_.ended(rank_, how, why);
}

/// Returns the time of the node's clock, since 1970, which is the same for all ranks of the node.
/// If somebody sets the clock back, it stands still meanwhile.
std::uint64_t RankTrace::time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  last_ns_ = std::max(last_ns_, static_cast<std::uint64_t>(now_ns));
  return last_ns_;
}

/// Returns the number of this thread: the rank's number for the rank's own thread, and numbers
/// above those of all ranks for others.
std::size_t RankTrace::thread(std::size_t first_of_others) {
  return threads_.try_emplace(std::this_thread::get_id(), first_of_others + threads_.size())
      .first->second;
}

}  // namespace reprise::driver

#pragma once
// Records what this process's rank does, in real time, into the rank's part of a trace.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "core/ports/traced_ports.hpp"
#include "driver/lanes/rank_arguments.hpp"
#include "driver/lanes/trace_part.hpp"
#include "driver/ranks/recorded_fabric.hpp"
#include "driver/ranks/recorded_store.hpp"
#include "reprise/ports.hpp"
#include "sim/world/recorder.hpp"

namespace reprise::driver {

/// Wraps the ports of this rank, so that the calls to them are recorded until the rank ends.
class RankTrace {
 public:
  /// Borrows the ports. The calling thread is the rank's own.
  RankTrace(const RankArguments& task, const Ports& inner);
  RankTrace(const RankTrace&) = delete;
  RankTrace& operator=(const RankTrace&) = delete;

  /// Returns ports that record, except the device and the tasks.
  const Ports& ports() const { return ports_; }
  sim::Recorder& recorder() { return recorder_; }
  /// The rank is about to die. What it was doing ends now, and nothing is recorded any more.
  void died() { over("killed", ""); }
  /// The rank's program has ended as the record says.
  void ended(const RankRecord& record);

 private:
  void over(std::string_view how, std::string_view why);
  std::uint64_t time();
  std::size_t thread(std::size_t first_of_others);

  GlobalRank rank_;
  TracePart part_;
  // The recorder makes one call at a time to the functions that use these.
  std::uint64_t last_ns_ = 0;
  std::map<std::thread::id, std::size_t> threads_;
  std::atomic<bool> over_ = false;
  sim::Recorder recorder_;
  RecordedStore store_;
  RecordedFabric fabric_;
  std::unique_ptr<RecordedFabric> data_;
  TappedTrace trace_;
  Ports ports_;
};

}  // namespace reprise::driver

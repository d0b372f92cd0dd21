#pragma once
// Measures work against its limit in turns (ours, limit, limit, ours, ...), so that other load on
// the machine slows both.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>

namespace reprise::bench {

/// Work that is timed, and preparation that is not.
struct Work {
  std::function<void()> prepare;
  std::function<void()> run;
};

struct Row {
  std::string limit;        ///< description of the limit
  std::uint64_t bytes = 0;  ///< bytes moved by either side
  double aim = 0;           ///< ratio to reach; 0: none
  int threads = 1;          ///< threads of either side
};

/// Runs one untimed turn of each, then a timed turn of each per iteration. Sets counters that other
/// programs read: ours_GBps, limit_GBps, ratio of the two, aim, peak_MiB, threads. Rates use median
/// times; peak_MiB is the peak growth of the process during `ours`.
void measure(benchmark::State& state, const Row& row, const Work& ours, const Work& limit);

/// Configures a benchmark for measure(), which sets the times; the number of turns is enough for
/// medians. Pass it to Apply().
void in_turns(benchmark::internal::Benchmark* row);

/// Returns the peak growth of the process's resident memory during `run`, in bytes.
std::uint64_t peak_growth(const std::function<void()>& run);

}  // namespace reprise::bench

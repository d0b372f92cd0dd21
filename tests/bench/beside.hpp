#pragma once
// Measures a piece of work and the work that sets its speed limit. They take turns (ours, limit,
// limit, ours, ...), so that other load on the machine slows both. A third contestant, between the
// two, may show why the limit can't be reached (ours, bare, limit, limit, bare, ours, ...).

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>

namespace reprise::bench {

/// Work in two parts: `prepare` is not timed, `run` is.
struct Work {
  std::function<void()> prepare;
  std::function<void()> run;
};

struct Row {
  std::string limit;        ///< description of the work that sets the limit
  std::uint64_t bytes = 0;  ///< number of bytes that each side moves
  double aim = 0;           ///< required ratio of `ours` to `limit`; 0 if none is required
  int threads = 1;          ///< number of threads that each side uses
  std::string bare = {};    ///< description of the bare work; empty if the row has none
};

/// Runs one untimed turn of each side, then one timed turn of each side per iteration. `bare` makes
/// only the system calls and passes over memory that the work can't do without; it has nothing to
/// run if the row has no such work. Sets the counters ours_GBps, limit_GBps, ratio (ours / limit),
/// bare_ratio (bare / limit) if there is bare work, noise, aim, peak_MiB and threads, which other
/// programs read. Rates come from median times; noise is how far apart the ratios of the middle
/// half of the turns lie, as a share of their median; peak_MiB is the process's peak growth during
/// `ours`.
void measure(benchmark::State& state, const Row& row, const Work& ours, const Work& limit,
             const Work& bare = {});

/// Configures a benchmark with enough turns for medians; measure() sets the benchmark's times. Pass
/// this function to Apply().
void in_turns(benchmark::internal::Benchmark* row);

/// Returns the peak growth of the process's resident memory during `run`, in bytes.
std::uint64_t peak_growth(const std::function<void()>& run);

}  // namespace reprise::bench

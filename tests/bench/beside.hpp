#pragma once
// Measures a piece of work beside its limit, in turns: ours, limit, limit, ours, ... What else the
// machine does then slows both.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>

namespace reprise::bench {

/// What is timed, and what is done before each time without being timed.
struct Work {
  std::function<void()> prepare;
  std::function<void()> run;
};

struct Row {
  std::string limit;        ///< what the limit is, in words
  std::uint64_t bytes = 0;  ///< moved by either side
  double aim = 0;           ///< ratio that is to be reached; 0: none
  int threads = 1;          ///< of either side
};

/// One untimed turn of each, then a timed turn of each per iteration. Counters, which others read:
/// ours_GBps, limit_GBps, ratio of the two, aim, peak_MiB, threads. Rates are of the median times;
/// peak_MiB is by how much the process grew at most while `ours` ran.
void measure(benchmark::State& state, const Row& row, const Work& ours, const Work& limit);

/// For Apply(): times are set by measure(), in as many turns as medians need.
void in_turns(benchmark::internal::Benchmark* row);

/// By how many bytes the process's resident memory exceeded what it was before, at most.
std::uint64_t peak_growth(const std::function<void()>& run);

}  // namespace reprise::bench

#include "tests/bench/beside.hpp"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <vector>

#include "tests/bench/limit.hpp"
#include "tests/bench/perf_record.hpp"

namespace reprise::bench {
namespace {

constexpr int kTurns = 9;

/// `recorded`: perf records the work, if it listens.
double seconds_of(const Work& work, bool recorded = false) {
  if (work.prepare) work.prepare();
  std::optional<PerfRecord> perf;
  if (recorded) perf.emplace();
  const auto begin = std::chrono::steady_clock::now();
  work.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns how far apart the middle half of the values lies, as a share of their median.
double spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t quarter = values.size() / 4;
  return (values[values.size() - 1 - quarter] - values[quarter]) / median(values);
}

/// Returns the value of a line in /proc/self/status, in bytes.
std::uint64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  give_up("/proc/self/status has no " + name);
}

}  // namespace

std::uint64_t peak_growth(const std::function<void()>& run) {
  ::malloc_trim(0);                               // so that memory freed earlier is not measured
  std::ofstream("/proc/self/clear_refs") << "5";  // sets the peak to the present size
  const std::uint64_t before = status_bytes("VmHWM");
  run();
  return status_bytes("VmHWM") - before;
}

void measure(benchmark::State& state, const Row& row, const Work& ours, const Work& limit,
             const Work& bare) {
  if (ours.prepare) ours.prepare();
  const std::uint64_t peak = peak_growth(ours.run);
  std::vector<const Work*> sides = {&ours, &limit};
  if (bare.run) sides.insert(sides.begin() + 1, &bare);
  for (std::size_t side = 1; side < sides.size(); ++side) seconds_of(*sides[side]);
  std::vector<std::vector<double>> times(sides.size());
  std::vector<double> ratios;  // of each turn
  for (auto _ : state) {
    for (std::size_t n = 0; n < sides.size(); ++n) {
      const std::size_t side = ratios.size() % 2 == 0 ? n : sides.size() - 1 - n;
      times[side].push_back(seconds_of(*sides[side], side == 0));
    }
    ratios.push_back(times.back().back() / times.front().back());
    state.SetIterationTime(times.front().back());
  }
  const auto rate = [&row](const std::vector<double>& taken) {
    return static_cast<double>(row.bytes) / median(taken) / 1e9;
  };
  state.counters["ours_GBps"] = rate(times.front());
  state.counters["limit_GBps"] = rate(times.back());
  state.counters["ratio"] = rate(times.front()) / rate(times.back());
  if (bare.run) state.counters["bare_ratio"] = rate(times[1]) / rate(times.back());
  state.counters["noise"] = spread(ratios);
  state.counters["aim"] = row.aim;
  state.counters["peak_MiB"] = static_cast<double>(peak) / (1 << 20);
  state.counters["threads"] = row.threads;
  state.SetLabel("limit: " + row.limit + (bare.run ? "; bare: " + row.bare : ""));
}

void in_turns(benchmark::internal::Benchmark* row) {
  row->UseManualTime()->Iterations(kTurns)->Unit(benchmark::kMillisecond);
}

}  // namespace reprise::bench

// Measures how fast a rank loads from the page cache, relative to pread or a mapped copy of the
// same bytes: see docs/speed.md.

#include <chrono>
#include <cstring>
#include <functional>
#include <string>

#include "tests/bench/bare.hpp"
#include "tests/bench/beside.hpp"
#include "tests/bench/equal_tensors.hpp"
#include "tests/bench/limit.hpp"
#include "tests/bench/solo_rank.hpp"

namespace reprise {
namespace {

struct LoadRow {
  std::size_t tensors;
  std::size_t bytes_each;
  LoadChecksums checksums;
  double aim;
};

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A way to read a file into memory. limit_of() tries two ways and returns the faster one.
struct Limit {
  std::string name;
  std::function<void()> run;
};
Limit limit_of(const std::string& file, MutableByteSpan out) {
  const Limit read{"pread", [=] { bench::read_file(file, out, 1); }};
  const Limit copy{"a mapped copy", [=] { bench::copy_mapped_file(file, out, 1); }};
  double reading = 1e9;
  double copying = 1e9;
  for (int turn = 0; turn < 3; ++turn) {
    reading = std::min(reading, seconds_of(read.run));
    copying = std::min(copying, seconds_of(copy.run));
  }
  return reading <= copying ? read : copy;
}

void warm_load(benchmark::State& state, LoadRow row) {
  const bench::Place place = bench::Place::tmpfs();
  bench::SoloRank rank(place.path());
  const bench::EqualTensors saved(row.tensors, row.bytes_each, 4);
  rank.save(saved.state, {.directory = "ckpt"});
  bench::EqualTensors loaded(row.tensors, row.bytes_each, 5);
  const MutableByteSpan memory = loaded.bytes();
  const Limit limit = limit_of(place.file("ckpt/__0_0.distcp"), memory);
  const LoadOptions options{.directory = "ckpt", .checksums = row.checksums};
  LoadResult report;
  const auto load = [&] { report = rank.load(loaded.state, options); };
  const auto require_loaded = [&] {
    if (std::memcmp(memory.data(), saved.bytes().data(), memory.size()) != 0) {
      bench::give_up("what was loaded is not what was saved");
    }
  };
  bench::BareCalls bare(place.path(), {&loaded.state, 1}, options, memory);
  const bool verified = row.checksums == LoadChecksums::kVerified;
  bench::measure(state,
                 {.limit = limit.name + " of the payload file",
                  .bytes = memory.size(),
                  .aim = row.aim,
                  .bare = std::string("preadv of the same items by the same calls") +
                          (verified ? ", and their CRC-32" : "") + ", and of .metadata"},
                 {{}, load}, {{}, limit.run}, {{}, [&] { bare.load(); }});
  for (const char* name : {"metadata", "load_plan", "read"}) {
    state.counters[std::string(name) + "_ms"] = rank.phases().mean_ms(name);
  }
  limit.run();  // overwrites the memory with other bytes, as it did in each turn
  bare.load();
  require_loaded();
  limit.run();
  load();
  require_loaded();
  if (report.bytes_read != memory.size() || verified != (report.records_verified >= row.tensors)) {
    bench::give_up("not everything was loaded, or verified");
  }
  state.counters["declared_peak_MiB"] = static_cast<double>(report.peak_staging) / (1 << 20);
}

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr auto kIgnored = LoadChecksums::kIgnored;
constexpr auto kVerified = LoadChecksums::kVerified;

BENCHMARK_CAPTURE(warm_load, large, LoadRow{8, 128 * kMiB, kIgnored, 0.85})->Apply(bench::in_turns);
BENCHMARK_CAPTURE(warm_load, large_crc32, LoadRow{8, 128 * kMiB, kVerified, 0.5})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(warm_load, small, LoadRow{10'000, kMiB / 16, kIgnored, 0.85})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(warm_load, small_crc32, LoadRow{10'000, kMiB / 16, kVerified, 0.5})
    ->Apply(bench::in_turns);

}  // namespace
}  // namespace reprise

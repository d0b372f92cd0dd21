// Measures how fast a rank saves, relative to pwrite of the same bytes: see docs/speed.md.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/base/sha256.hpp"
#include "tests/bench/bare.hpp"
#include "tests/bench/beside.hpp"
#include "tests/bench/equal_tensors.hpp"
#include "tests/bench/limit.hpp"
#include "tests/bench/solo_rank.hpp"

namespace reprise {
namespace {

using bench::Durable;

/// Number of threads that write files: the rank's own thread and one more.
constexpr int kThreads = 2;

struct Shape {
  std::size_t tensors;
  std::size_t bytes_each;
};
constexpr Shape kLarge = {8, std::size_t{128} << 20U};
constexpr Shape kSmall = {10'000, std::size_t{64} << 10U};

enum class Plans : std::uint8_t { kMade, kKept };

/// Settings of one row of the benchmark's results.
struct SaveRow {
  Shape shape;
  Checksums checksums;
  double aim;
  Plans plans = Plans::kMade;
};

struct Limit {
  std::string name;
  std::function<void(ByteSpan)> run;
};

/// Saves the state and returns the calls of a load of it, which BareCalls::save() turns round.
bench::BareCalls calls_of(bench::SoloRank& rank, const bench::Place& place,
                          bench::EqualTensors& tensors, const SaveOptions& options) {
  rank.save(tensors.state, options);
  const auto checked =
      options.checksums == Checksums::kNone ? LoadChecksums::kIgnored : LoadChecksums::kVerified;
  StateDict leaves;
  leaves.tensors = tensors.state.tensors;
  return {place.path(),
          {&leaves, 1},
          {.directory = options.directory, .checksums = checked},
          tensors.bytes()};
}

/// Measures saves to files in `place`, with the settings in `row`. Removes the files before each
/// turn, so that each turn writes new ones. Small tensors are also written by bare calls.
void measure_save(benchmark::State& state, const SaveRow& row, const bench::Place& place,
                  const Limit& limit) {
  bench::EqualTensors tensors(row.shape.tensors, row.shape.bytes_each, 4);
  tensors.state.common = Dict{{"iteration", 1}};
  bench::SoloRank rank(place.path());
  if (row.plans == Plans::kKept) rank.keep_plans();
  const SaveOptions options{.directory = "ckpt", .checksums = row.checksums};
  SaveResult report;
  const auto clear = [&place] {
    for (const char* name : {"ckpt", "bare", "limit"}) {
      std::filesystem::remove_all(place.file(name));
    }
  };
  std::optional<bench::BareCalls> bare;
  if (row.shape.tensors == kSmall.tensors) bare = calls_of(rank, place, tensors, options);
  bench::Work write_bare;
  if (bare) write_bare = {clear, [&] { bare->save(place.file("bare"), kThreads); }};
  bench::measure(state,
                 {.limit = limit.name,
                  .bytes = tensors.bytes().size(),
                  .aim = row.aim,
                  .threads = kThreads,
                  .bare = row.checksums == Checksums::kNone
                              ? "pwritev of the same items from where they are, and of .metadata"
                              : "the same, and the CRC-32 of the tensors"},
                 {clear, [&] { report = rank.save(tensors.state, options); }},
                 {clear, [&] { limit.run(tensors.bytes()); }}, write_bare);
  const bool reused = report.planned == Planned::kReused;
  if (reused != (row.plans == Plans::kKept)) bench::give_up("the plan was not kept");
  for (const char* name : {"plan", "stage", "write", "commit"}) {
    state.counters[std::string(name) + "_ms"] = rank.phases().mean_ms(name);
  }
  if (report.bytes < tensors.bytes().size()) bench::give_up("not everything was written");
  state.counters["declared_peak_MiB"] = static_cast<double>(report.staging_bytes) / (1 << 20);
}

void save_to_memory(benchmark::State& state, SaveRow row) {
  const bench::Place place = bench::Place::tmpfs();
  measure_save(state, row, place, {"pwrite to a new file in /dev/shm", [&](ByteSpan bytes) {
                                     bench::write_new_file(place.file("limit"), bytes, kThreads,
                                                           Durable::kNo);
                                   }});
}

/// Measures a save with a manifest. A second thread would not help, since the digest of a file must
/// be computed in order.
void save_with_manifest(benchmark::State& state, SaveRow row) {
  const bench::Place place = bench::Place::tmpfs();
  measure_save(state, row, place, {"SHA-256 of the same bytes on one thread", [](ByteSpan bytes) {
                                     benchmark::DoNotOptimize(sha256_of(bytes));
                                   }});
}

void save_durably(benchmark::State& state, SaveRow row) {
  const bench::Place place = bench::Place::disk();
  measure_save(
      state, row, place,
      {"write and fdatasync of a new file, as dd conv=fdatasync does", [&](ByteSpan bytes) {
         bench::write_new_file(place.file("limit"), bytes, 1, Durable::kYes);
       }});
}

constexpr auto kNone = Checksums::kNone;
constexpr auto kCrc32 = Checksums::kCrc32;
constexpr auto kManifest = Checksums::kCrc32AndSha256;

BENCHMARK_CAPTURE(save_to_memory, large, SaveRow{kLarge, kNone, 0.9})->Apply(bench::in_turns);
BENCHMARK_CAPTURE(save_to_memory, large_crc32, SaveRow{kLarge, kCrc32, 0.8})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(save_to_memory, small, SaveRow{kSmall, kNone, 0.9})->Apply(bench::in_turns);
BENCHMARK_CAPTURE(save_to_memory, small_crc32, SaveRow{kSmall, kCrc32, 0.8})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(save_to_memory, small_again, SaveRow{kSmall, kNone, 0.9, Plans::kKept})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(save_with_manifest, large, SaveRow{kLarge, kManifest, 0})->Apply(bench::in_turns);
BENCHMARK_CAPTURE(save_durably, large_crc32, SaveRow{kLarge, kCrc32, 0.95})->Apply(bench::in_turns);

}  // namespace
}  // namespace reprise

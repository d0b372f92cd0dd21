// Tests the shape of the engine's loads and saves: what overlaps with what. The world has rates, so
// a load of n bytes has a time to be compared with n / read and n / bus. These are no real speeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/save/save.hpp"
#include "core/save/save_seamed.hpp"
#include "tests/sim/rates/rated_job.hpp"

namespace reprise::sim {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr double kTolerance = 1.05;

double ns(std::uint64_t bytes, std::uint64_t mb_per_s) {
  return static_cast<double>(bytes) * 1000 / static_cast<double>(mb_per_s);
}

struct Speeds {
  std::string name;
  std::uint64_t store = 0;  ///< MB/s
  std::uint64_t bus = 0;
};

const std::vector<Speeds>& speeds() {
  static const std::vector<Speeds> all = {
      {"slow_store", 10, 40}, {"equal", 20, 20}, {"slow_bus", 40, 10}};
  return all;
}

struct LoadRow {
  std::string name;
  RatedShape shape;
  std::uint64_t staging_bytes = 0;
  LoadChecksums checksums = LoadChecksums::kIgnored;
  /// Bytes that are read before the first copy can begin: four reads, which come in any order.
  std::uint64_t slot_bytes = 0;
};

const std::vector<LoadRow>& load_rows() {
  static const std::vector<LoadRow> all = {
      {"many_tensors", {32, 128 * kKiB}, kMiB, LoadChecksums::kIgnored, 512 * kKiB},
      {"many_tensors_checked", {32, 128 * kKiB}, kMiB, LoadChecksums::kVerified, 512 * kKiB},
      {"large_tensor", {1, 4 * kMiB}, 512 * kKiB, LoadChecksums::kIgnored, 512 * kKiB},
      {"large_tensor_checked", {1, 4 * kMiB}, 512 * kKiB, LoadChecksums::kVerified, 512 * kKiB},
  };
  return all;
}

std::string row_name(const testing::TestParamInfo<std::tuple<LoadRow, Speeds>>& info) {
  return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
}

class LoadPipeline : public testing::TestWithParam<std::tuple<LoadRow, Speeds>> {};

TEST_P(LoadPipeline, takes_as_long_as_its_slowest_part) {
  const auto& [row, speed] = GetParam();
  const std::uint64_t bytes = row.shape.bytes();
  SimStore store;
  rated_save(store, row.shape);
  const double read = ns(bytes, speed.store);
  const double bus = ns(bytes, speed.bus);
  const double slot = std::max(ns(row.slot_bytes, speed.store), ns(row.slot_bytes, speed.bus));
  const double expected = std::max(read, bus);
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const WorldOptions world = {
        .seed = seed,
        .rates = {.store_read = {.mb_per_s = speed.store}, .bus = {.mb_per_s = speed.bus}}};
    const LoadOptions settings = {.checksums = row.checksums, .staging_bytes = row.staging_bytes};
    const auto took = static_cast<double>(rated_load(world, store, row.shape, settings));
    RecordProperty("seed_" + std::to_string(seed), std::to_string(took / expected));
    EXPECT_GE(took, expected);
    EXPECT_LE(took, expected * kTolerance + slot) << took / expected << " of the slowest part";
    EXPECT_EQ(took, rated_load(world, store, row.shape, settings)) << "a second time";
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, LoadPipeline,
                         testing::Combine(testing::ValuesIn(load_rows()),
                                          testing::ValuesIn(speeds())),
                         row_name);

// Four ranks need all bytes. Read once, they come from the store once, and over each link but for
// the rank's own share.
TEST(LoadPipeline, read_once_takes_the_store_once_and_the_fabric_for_the_rest) {
  constexpr RatedShape kShape = {32, 128 * kKiB};
  constexpr std::int32_t kRanks = 4;
  SimStore store;
  rated_save(store, kShape);
  const WorldOptions world = {
      .world_size = kRanks,
      .rates = {
          .store_read = {.mb_per_s = 20}, .bus = {.mb_per_s = 100}, .fabric = {.mb_per_s = 40}}};
  const double read = ns(kShape.bytes(), 20);
  const double bus = ns(kShape.bytes(), 100);
  const double fabric = ns(kShape.bytes() * (kRanks - 1) / kRanks, 40);
  const LoadOptions each = {.staging_bytes = kMiB};
  LoadOptions once = each;
  once.reads = Reads::kOncePerJob;
  const auto by_each = static_cast<double>(rated_load(world, store, kShape, each));
  EXPECT_GE(by_each, kRanks * read);
  EXPECT_LE(by_each, (kRanks * read + bus) * kTolerance);
  const auto took = static_cast<double>(rated_load(world, store, kShape, once));
  const double round = ns(kMiB, 20) + ns(kMiB, 40);
  EXPECT_GE(took, std::max(read, fabric));
  EXPECT_LE(took, std::max({read, fabric, bus}) * kTolerance + round);
}

// Read once and spread from device to device, of all bytes only this rank's share and the ends of
// the items pass its bus.
TEST(LoadPipeline, read_once_on_devices_takes_the_bus_for_the_share_alone) {
  constexpr RatedShape kShape = {32, 128 * kKiB};
  constexpr std::int32_t kRanks = 4;
  SimStore store;
  rated_save(store, kShape);
  WorldOptions world = {
      .world_size = kRanks,
      .rates = {
          .store_read = {.mb_per_s = 40}, .bus = {.mb_per_s = 10}, .fabric = {.mb_per_s = 80}}};
  const double read = ns(kShape.bytes(), 40);
  const double bus = ns(kShape.bytes(), 10);
  const double fabric = ns(kShape.bytes() * (kRanks - 1) / kRanks, 80);
  const LoadOptions once = {.reads = Reads::kOncePerJob, .staging_bytes = kMiB};
  const auto through_hosts = static_cast<double>(rated_load(world, store, kShape, once));
  EXPECT_GE(through_hosts, bus);
  world.device_fabric = true;
  const auto took = static_cast<double>(rated_load(world, store, kShape, once));
  // A round goes to the devices, and then from device to device.
  const double rounds = bus / kRanks + fabric;
  const double ends = ns(kShape.tensors * 4 * kKiB, 10);
  EXPECT_GE(took, std::max(read, rounds));
  EXPECT_LE(took, (std::max(read, rounds) + ends) * kTolerance + ns(kMiB, 40));
  EXPECT_LT(took, through_hosts);
}

// With four reads on their way, the latency of each passes while the others transfer.
TEST(LoadPipeline, pays_no_latency_of_a_read_while_others_transfer) {
  constexpr RatedShape kShape = {32, 128 * kKiB};
  constexpr std::uint64_t kLatencyNs = 2'000'000;  // a third of the time of a tensor's bytes
  SimStore store;
  rated_save(store, kShape);
  Recorder recorder;
  const WorldOptions world = {
      .rates = {.store_read = {.mb_per_s = 20, .latency_ns = kLatencyNs}, .bus = {.mb_per_s = 20}},
      .recorder = &recorder};
  const auto took = static_cast<double>(rated_load(world, store, kShape, {.staging_bytes = kMiB}));
  const auto recording = recorder.take();
  const auto& slices = recording.slices;
  const auto reads = std::count_if(slices.begin(), slices.end(),
                                   [](const Slice& slice) { return slice.name == "read"; });
  EXPECT_GE(reads, 32);
  const double bytes = ns(kShape.bytes(), 20);
  SimStore small;
  rated_save(small, {});
  const auto around = static_cast<double>(rated_load({.rates = world.rates}, small, {}, {}));
  EXPECT_GE(took, bytes);
  EXPECT_LE(took, bytes * kTolerance + 4 * ns(128 * kKiB, 20) + around);
}

/// Says that as many pieces of work run at once as the job has threads.
class ManyThreads final : public Tasks {
 public:
  ManyThreads(Tasks& inner, int threads) : inner_(inner), threads_(threads) {}
  std::unique_ptr<Task> start(std::function<void()> work) override {
    return inner_.start(std::move(work));
  }
  int threads() const override { return threads_; }

 private:
  Tasks& inner_;
  int threads_;
};

// A store with 5 ms of latency, as one over a network: reads of adjacent items together, or one for
// each of 32 threads, leave one latency to be seen.
TEST(LoadPipeline, pays_one_latency_of_5_ms_by_4_and_by_32_threads) {
  constexpr RatedShape kShape = {128, 128 * kKiB};
  constexpr std::uint64_t kLatencyNs = 5'000'000;
  SimStore store;
  rated_save(store, kShape);
  SimStore small;
  rated_save(small, {});
  for (const auto& speed : {Speeds{"slow_store", 500, 2000}, Speeds{"slow_bus", 2000, 500}}) {
    const WorldOptions world = {
        .rates = {.store_read = {.mb_per_s = speed.store, .latency_ns = kLatencyNs},
                  .bus = {.mb_per_s = speed.bus}}};
    const auto load_by = [&](SimStore& from, const RatedShape& shape, int threads) {
      return static_cast<double>(
          rated_times(world, from, [&](Ports& ports) {
            RatedJob job(shape, false);
            ManyThreads tasks(ports.tasks, threads);
            const Ports own{ports.store, ports.fabric, ports.device, tasks, ports.trace};
            load(own, *all_ranks(ports), job.state, {.directory = "run"});
            EXPECT_TRUE(job.same_as(RatedJob(shape, true)));
          }).front());
    };
    const double around = load_by(small, {}, 1);  // latencies of calls that do not read tensors
    const double slowest = std::max(ns(kShape.bytes(), speed.store), ns(kShape.bytes(), speed.bus));
    for (const int threads : {4, 32}) {
      const double took = load_by(store, kShape, threads);
      EXPECT_GE(took, slowest);
      EXPECT_LE(took, slowest * kTolerance + kLatencyNs + around) << speed.name << threads;
    }
  }
}

// Small tensors are read together, by as many reads as their bytes need; large ones by one read
// each, all at once.
TEST(LoadPipeline, pays_few_latencies_of_5_ms_for_many_small_tensors) {
  constexpr std::uint64_t kLatencyNs = 5'000'000;
  SimStore none;
  rated_save(none, {});
  struct Row {
    RatedShape shape;
    std::uint64_t latencies_max = 0;
  };
  for (const Row& row : {Row{{20, kKiB}, 2}, Row{{500, kKiB}, 2}, Row{{4, kMiB}, 1}}) {
    SimStore store;
    rated_save(store, row.shape);
    const WorldOptions world = {
        .rates = {.store_read = {.mb_per_s = 1000, .latency_ns = kLatencyNs},
                  .bus = {.mb_per_s = 1000}}};
    const auto around = static_cast<double>(rated_load(world, none, {}, {}));
    const auto took = static_cast<double>(rated_load(world, store, row.shape, {}));
    const double items = ns(row.shape.bytes() + row.shape.tensors * 4 * kKiB, 1000);
    EXPECT_LE(took, around + 2 * items + static_cast<double>(row.latencies_max * kLatencyNs))
        << row.shape.tensors;
  }
}

class SavePipeline : public testing::TestWithParam<Speeds> {
 protected:
  static constexpr RatedShape kShape = {32, 128 * kKiB};

  static constexpr std::size_t kBatch = 128 * kKiB;

  struct Times {
    double begin = 0;   ///< until the job goes on
    double copied = 0;  ///< until it may change its state
    double whole = 0;   ///< until the checkpoint is committed
  };

  /// Saves with this much staging, changes the state once the save lets it, and looks at what was
  /// stored.
  Times save(std::uint64_t seed, std::uint64_t staging,
             BeginReturns returns = BeginReturns::kWhenCopied) const {
    SimStore store;
    Times times;
    const WorldOptions options = {.seed = seed,
                                  .rates = {.store_write = {.mb_per_s = GetParam().store},
                                            .bus = {.mb_per_s = GetParam().bus}}};
    World world(options, store);
    const RunResult result = world.run([&](Ports& ports, GlobalRank) {
      RatedJob job(kShape, true);
      const auto group = all_ranks(ports);
      const auto now = [&, begin = world.clock().now_ns()] {
        return static_cast<double>(world.clock().now_ns() - begin);
      };
      SaveOptions saving = kRatedSave;
      saving.staging_bytes = staging;
      saving.batch_bytes = kBatch;
      saving.returns = returns;
      Save begun = Save::begin(ports, group, job.state, saving);
      times.begin = now();
      begun.wait_for_staging();
      times.copied = now();
      job.overwrite();
      begun.finish();
      times.whole = now();
    });
    expect_returned(result);
    rated_load({}, store, kShape, {});  // finds the state as it was
    return times;
  }

  double bus() const { return ns(kShape.bytes(), GetParam().bus); }
  double written() const { return ns(kShape.bytes(), GetParam().store); }
  double slot() const { return std::max(ns(kBatch, GetParam().bus), ns(kBatch, GetParam().store)); }
};

TEST_P(SavePipeline, with_enough_staging_the_job_waits_only_for_the_bus) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const Times times = save(seed, 8 * kMiB);
    EXPECT_GE(times.begin, bus());
    EXPECT_LE(times.begin, bus() * kTolerance + slot());
    EXPECT_GE(times.whole, std::max(bus(), written()));
    EXPECT_LE(times.whole, std::max(bus(), written()) * kTolerance + slot());
  }
}

TEST_P(SavePipeline, that_returns_when_queued_lets_the_job_go_on_at_once) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const Times times = save(seed, 8 * kMiB, BeginReturns::kWhenQueued);
    EXPECT_LE(times.begin, bus() * (kTolerance - 1));
    EXPECT_GE(times.copied, bus());
    EXPECT_LE(times.copied, bus() * kTolerance);
    EXPECT_LE(times.whole, std::max(bus(), written()) * kTolerance + slot());
  }
}

TEST_P(SavePipeline, with_short_staging_the_job_waits_for_the_slower_of_the_two) {
  constexpr std::uint64_t kStaging = 512 * kKiB;
  const double left = ns(kShape.bytes() - kStaging, GetParam().store);
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const Times times = save(seed, kStaging);
    EXPECT_GE(times.begin, std::max(bus(), left));
    EXPECT_LE(times.begin, std::max(bus(), written()) * kTolerance + slot());
    EXPECT_LE(times.whole, std::max(bus(), written()) * kTolerance + slot());
  }
}

/// The world of the save that computes checksums; orders of batches are plain functions.
World* summing = nullptr;

/// Lets the checksums of a batch take their time.
BatchOrder summed_in_time(BatchWork work) {
  work.sum = [sum = std::move(work.sum), bytes = work.bytes] {
    summing->compute_checksum(bytes);
    sum();
  };
  return drain_then_write(std::move(work));
}

// The checksums of a batch are computed beside the write of the one before, and both beside the
// copies of the one after.
TEST_P(SavePipeline, takes_as_long_as_checksums_writes_or_the_bus) {
  for (const std::uint64_t checksums : {10U, 20U, 40U}) {
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      SimStore store;
      WorldOptions options = {.seed = seed};
      options.rates = {.store_write = {.mb_per_s = GetParam().store},
                       .bus = {.mb_per_s = GetParam().bus},
                       .checksums = {.mb_per_s = checksums}};
      World world(options, store);
      summing = &world;
      double took = 0;
      const RunResult result = world.run([&](Ports& ports, GlobalRank) {
        RatedJob job(kShape, true);
        const auto begin = world.clock().now_ns();
        SaveOptions saving = kRatedSave;
        saving.staging_bytes = 8 * kMiB;
        saving.batch_bytes = kBatch;
        SaveSeams seams;
        seams.stage.order = summed_in_time;
        begin_save(ports, all_ranks(ports), job.state, saving, {}, seams).finish();
        took = static_cast<double>(world.clock().now_ns() - begin);
      });
      summing = nullptr;
      expect_returned(result);
      rated_load({}, store, kShape, {.checksums = LoadChecksums::kVerified});
      const double slowest = std::max({bus(), written(), ns(kShape.bytes(), checksums)});
      EXPECT_GE(took, slowest);
      EXPECT_LE(took, slowest * kTolerance + slot() + ns(kBatch, checksums)) << checksums;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, SavePipeline, testing::ValuesIn(speeds()),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace reprise::sim

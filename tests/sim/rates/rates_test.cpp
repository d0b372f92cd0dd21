// Tests how long single operations of a world with rates take. Rates are so low that the
// microseconds of switches between ranks don't count.
#include "sim/world/rates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/hash.hpp"
#include "core/ports/whole_file.hpp"
#include "sim/world/resource.hpp"
#include "sim/world/sim_device.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::size_t kBytes = 100'000;  // 10 ms at 10 MB/s
/// Switches around an operation, each of a microsecond.
constexpr std::uint64_t kSwitches = 50 * Scheduler::kSwitchNs;

MATCHER_P(takes_ns, expected, "takes so long, apart from switches") {
  return arg >= expected && arg <= expected + kSwitches;
}

using Program = std::function<void(World&, Ports&, GlobalRank)>;

RunResult run(const WorldOptions& options, Store& store, const Program& program) {
  World world(options, store);
  RunResult result = world.run([&](Ports& ports, GlobalRank rank) { program(world, ports, rank); });
  EXPECT_FALSE(result.deadlock) << result.deadlock->what();
  return result;
}

std::uint64_t time_of(World& world, const std::function<void()>& work) {
  const std::uint64_t begin = world.clock().now_ns();
  work();
  return world.clock().now_ns() - begin;
}

/// Fills a store with one file "f" of kBytes bytes.
void put_file(Store& store) { write_durably(store, "f", Bytes(kBytes, std::byte{7})); }

/// A copy of kBytes bytes, and its memory.
struct BigCopy {
  std::vector<std::byte> device = std::vector<std::byte>(kBytes, std::byte{1});
  std::vector<std::byte> host = std::vector<std::byte>(kBytes, std::byte{2});

  DeviceEvent up(Device& to) {
    const ScatterCopy copy{{host.data(), {1}}, {device.data(), {1}}, {kBytes}, 1};
    return to.scatter({&copy, 1});
  }
  DeviceEvent down(Device& from) {
    const GatherCopy copy{{device.data(), {1}}, {host.data(), {1}}, {kBytes}, 1};
    return from.gather({&copy, 1});
  }
};

TEST(Rates, a_resource_serves_requests_in_turn_and_hides_their_latency) {
  Resource resource({.mb_per_s = 10, .latency_ns = 5});
  const Transfer first = resource.take(100, 1);
  EXPECT_EQ(first.begin_ns, 105U);
  EXPECT_EQ(first.end_ns, 205U);
  const Transfer second = resource.take(150, 2);  // arrives at 155 and waits until 205
  EXPECT_EQ(second.begin_ns, 205U);
  EXPECT_EQ(second.end_ns, 405U);
  EXPECT_EQ(resource.take(1000, 0).end_ns, 1005U);
  EXPECT_EQ(Resource({.mb_per_s = 3}).take(0, 1).end_ns, 334U) << "rounds up";
}

TEST(Rates, a_read_takes_latency_and_bytes_and_a_write_its_own_rates) {
  SimStore store;
  put_file(store);
  const Rates rates = {.store_read = {.mb_per_s = 10, .latency_ns = kMs},
                       .store_write = {.mb_per_s = 50, .latency_ns = 2 * kMs}};
  run({.rates = rates}, store, [](World& world, Ports& ports, GlobalRank) {
    Bytes bytes(kBytes);
    const auto file = ports.store.open("f");
    EXPECT_THAT(time_of(world, [&] { file->read_at(0, bytes); }), takes_ns(11 * kMs));
    EXPECT_EQ(bytes.back(), std::byte{7});
    EXPECT_THAT(time_of(world, [&] { ports.store.stat("f"); }), takes_ns(kMs));
    const auto out = ports.store.create("g");
    EXPECT_THAT(time_of(world, [&] { out->write_at(0, bytes); }), takes_ns(4 * kMs));
    EXPECT_THAT(time_of(world, [&] { out->sync(); }), takes_ns(2 * kMs));
  });
}

TEST(Rates, ranks_share_the_store) {
  SimStore store;
  put_file(store);
  std::vector<std::uint64_t> times;
  run({.world_size = 3, .rates = {.store_read = {.mb_per_s = 10}}}, store,
      [&](World& world, Ports& ports, GlobalRank) {
        Bytes bytes(kBytes);
        times.push_back(time_of(world, [&] { ports.store.open("f")->read_at(0, bytes); }));
      });
  EXPECT_THAT(times,
              testing::ElementsAre(takes_ns(10 * kMs), takes_ns(20 * kMs), takes_ns(30 * kMs)));
}

TEST(Rates, reads_in_the_background_hide_their_latency) {
  SimStore store;
  put_file(store);
  run({.rates = {.store_read = {.mb_per_s = 100, .latency_ns = 10 * kMs}}}, store,
      [](World& world, Ports& ports, GlobalRank) {
        const auto file = ports.store.open("f");
        const auto all = time_of(world, [&] {
          std::vector<Bytes> parts(4, Bytes(kBytes));
          std::vector<std::unique_ptr<Task>> tasks;
          for (auto& part : parts)
            tasks.push_back(ports.tasks.start([&] { file->read_at(0, part); }));
          for (const auto& task : tasks) task->wait();
        });
        EXPECT_THAT(all, takes_ns(14 * kMs));  // one after another they would take 44 ms
      });
}

TEST(Rates, copies_pass_the_bus_in_order_and_a_wait_ends_with_its_copy) {
  SimStore store;
  run({.rates = {.bus = {.mb_per_s = 10}}}, store, [](World& world, Ports& ports, GlobalRank) {
    std::vector<BigCopy> up(3);
    BigCopy down;
    const std::uint64_t begin = world.clock().now_ns();
    std::vector<DeviceEvent> events;
    for (auto& copy : up) events.push_back(copy.up(ports.device));
    const DeviceEvent gathered = down.down(ports.device);
    EXPECT_EQ(world.clock().now_ns(), begin) << "to queue takes no time";
    ports.device.wait(events[1]);
    EXPECT_THAT(world.clock().now_ns() - begin, takes_ns(20 * kMs));
    EXPECT_EQ(up[1].device.back(), std::byte{2});
    EXPECT_EQ(up[0].device.back(), SimDevice::kUnscattered) << "nobody has waited for this copy";
    EXPECT_THAT(time_of(world, [&] { ports.device.wait(events[0]); }), takes_ns(std::uint64_t{0}));
    EXPECT_THAT(time_of(world, [&] { ports.device.wait(gathered); }), takes_ns(std::uint64_t{0}))
        << "the other direction was not slowed down";
    EXPECT_EQ(down.host.back(), std::byte{1});
    ports.device.wait(events[2]);
    EXPECT_THAT(world.clock().now_ns() - begin, takes_ns(30 * kMs));
    EXPECT_THAT(time_of(world, [&] { ports.device.wait(events[2]); }), takes_ns(std::uint64_t{0}));
  });
}

TEST(Rates, copies_pass_while_the_rank_reads) {
  SimStore store;
  put_file(store);
  run({.rates = {.store_read = {.mb_per_s = 10}, .bus = {.mb_per_s = 10}}}, store,
      [](World& world, Ports& ports, GlobalRank) {
        const auto file = ports.store.open("f");
        std::vector<BigCopy> slots(4);
        const auto all = time_of(world, [&] {
          std::vector<DeviceEvent> events;
          for (auto& slot : slots) {
            file->read_at(0, slot.host);
            events.push_back(slot.up(ports.device));
          }
          for (const auto& event : events) ports.device.wait(event);
        });
        EXPECT_THAT(all, takes_ns(50 * kMs));
      });
}

TEST(Rates, ranks_with_one_device_share_its_bus) {
  SimStore store;
  std::vector<std::uint64_t> times(3);
  run({.world_size = 3,
       .devices = {"node0:0", "node0:0", "node0:1"},
       .rates = {.bus = {.mb_per_s = 10}}},
      store, [&](World& world, Ports& ports, GlobalRank rank) {
        BigCopy copy;
        const auto wait = [&] { ports.device.wait(copy.up(ports.device)); };
        times[static_cast<std::size_t>(rank.value)] = time_of(world, wait);
      });
  EXPECT_THAT(std::max(times[0], times[1]), takes_ns(20 * kMs));
  EXPECT_THAT(std::min(times[0], times[1]), takes_ns(10 * kMs));
  EXPECT_THAT(times[2], takes_ns(10 * kMs));
}

TEST(Rates, a_collective_takes_until_each_link_has_carried_its_bytes) {
  SimStore store;
  run({.world_size = 4, .rates = {.fabric = {.mb_per_s = 10, .latency_ns = kMs}}}, store,
      [](World& world, Ports& ports, GlobalRank) {
        const auto all = ports.fabric.communicator(Group::world(4));
        const Bytes part(kBytes);
        const auto from = [&world](const auto& call) { return time_of(world, call); };
        all->barrier();
        EXPECT_THAT(from([&] { all->all_gather(part); }), takes_ns(31 * kMs));
        EXPECT_THAT(from([&] { all->broadcast({1}, part); }), takes_ns(11 * kMs));
        EXPECT_THAT(from([&] { all->barrier(); }), takes_ns(kMs));
      });
}

TEST(Rates, a_rank_alone_needs_no_fabric) {
  SimStore store;
  run({.rates = {.fabric = {.mb_per_s = 1, .latency_ns = kMs}}}, store,
      [](World& world, Ports& ports, GlobalRank) {
        const auto all = ports.fabric.communicator(Group::world(1));
        const auto time = time_of(world, [&] { all->all_gather(Bytes(kBytes)); });
        EXPECT_THAT(time, takes_ns(std::uint64_t{0}));
      });
}

// The bytes of a rank that dies while they are on their way never arrive.
TEST(Rates, a_rank_that_dies_in_the_middle_of_a_write_has_not_written) {
  SimStore store;
  put_file(store);
  const auto result = run({.world_size = 2, .rates = {.store_write = {.mb_per_s = 10}}}, store,
                          [](World& world, Ports& ports, GlobalRank rank) {
                            if (rank.value == 0) {
                              world.sleep(5 * kMs);
                              world.kill(GlobalRank{1});
                              return;
                            }
                            const auto file = ports.store.create("g");
                            file->write_at(0, Bytes(kBytes));
                          });
  EXPECT_EQ(result.ranks[1].end, RankEnd::kKilled);
  EXPECT_EQ(store.stat("g")->size, 0U);
  EXPECT_THAT(result.duration_ns, takes_ns(5 * kMs));
}

RunResult mixed(std::uint64_t seed, const Rates& rates, Recorder* recorder = nullptr) {
  SimStore store;
  put_file(store);
  return run({.seed = seed, .world_size = 3, .rates = rates, .recorder = recorder}, store,
             [](World&, Ports& ports, GlobalRank) {
               const auto all = ports.fabric.communicator(Group::world(3));
               BigCopy copy;
               const auto task = ports.tasks.start([&] { read_all(ports.store, "f", kBytes); });
               ports.device.wait(copy.up(ports.device));
               all->all_gather(Bytes(10));
               task->wait();
             });
}

constexpr Rates kMixed = {.store_read = {.mb_per_s = 10, .latency_ns = 70},
                          .bus = {.mb_per_s = 20},
                          .fabric = {.mb_per_s = 1}};

TEST(Rates, the_same_seed_and_rates_take_the_same_time_to_the_nanosecond) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto first = mixed(seed, kMixed);
    const auto second = mixed(seed, kMixed);
    EXPECT_EQ(first.duration_ns, second.duration_ns);
    EXPECT_EQ(first.event_hash, second.event_hash);
    EXPECT_THAT(first.duration_ns, testing::AllOf(testing::Ge(30 * kMs), testing::Le(31 * kMs)));
  }
}

TEST(Rates, without_rates_nothing_takes_time_but_switches) {
  const auto result = mixed(1, {});
  EXPECT_EQ(result.duration_ns, result.decisions * Scheduler::kSwitchNs);
  EXPECT_LT(result.duration_ns, kMs);
}

TEST(Rates, a_recording_shows_when_copies_pass_and_how_long_reads_take) {
  Recorder recorder;
  mixed(1, kMixed, &recorder);
  const Recording recording = recorder.take();
  int copies = 0;
  int reads = 0;
  for (const auto& slice : recording.slices) {
    const std::uint64_t time = slice.end_ns - slice.begin_ns;
    if (slice.kind == SliceKind::kCopy) {
      ++copies;
      EXPECT_EQ(slice.name, "scatter");
      EXPECT_EQ(slice.detail, "node0:" + std::to_string(slice.rank.value));
      EXPECT_EQ(slice.bytes, kBytes);
      EXPECT_EQ(time, 5 * kMs);
    } else if (slice.name == "read") {
      ++reads;
      EXPECT_GE(time, 10 * kMs);
    }
  }
  EXPECT_EQ(copies, 3);
  EXPECT_EQ(reads, 3);
  Recorder without;
  mixed(1, {}, &without);
  for (const auto& slice : without.take().slices) EXPECT_NE(slice.kind, SliceKind::kCopy);
}

}  // namespace
}  // namespace reprise::sim

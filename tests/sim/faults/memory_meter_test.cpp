// Tests the measurement of how much memory saves and loads use, not counting the job's own memory.
// The result must not be zero and must not exceed the declared bound.
#include "sim/faults/memory_meter.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/save/phases.hpp"
#include "sim/faults/address_set.hpp"
#include "sim/mutants/mutants.hpp"
#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

TEST(AddressSet, counts_each_address_once) {
  AddressSet set;
  set.add({10, 20});
  set.add({30, 40});
  EXPECT_EQ(set.bytes(), 20U);
  set.add({12, 18});
  EXPECT_EQ(set.bytes(), 20U);
  set.add({20, 25});
  EXPECT_EQ(set.bytes(), 25U);
  set.add({15, 35});
  EXPECT_EQ(set.bytes(), 30U);
  EXPECT_TRUE(set.covers({10, 40}));
  EXPECT_FALSE(set.covers({9, 11}));
  EXPECT_TRUE(set.meets({39, 50}));
  EXPECT_FALSE(set.meets({40, 50}));
  EXPECT_FALSE(set.meets({5, 10}));
  set.add({0, 5});
  set.add({41, 50});
  set.add({0, 100});
  EXPECT_EQ(set.bytes(), 100U);
}

/// Adds every possible range of addresses to every possible set of addresses, all within 8 bytes.
/// Compares each resulting set with a bitmap.
TEST(AddressSet, agrees_with_a_bitmap) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    for (std::uintptr_t begin = 0; begin < 8; ++begin) {
      for (std::uintptr_t end = begin; end <= 8; ++end) {
        AddressSet set;
        unsigned expected = bits;
        for (std::uintptr_t i = 0; i < 8; ++i) {
          if ((bits >> i & 1U) != 0) set.add({i, i + 1});
        }
        bool meets = false;
        bool covers = true;
        for (auto i = begin; i < end; ++i) {
          meets = meets || (bits >> i & 1U) != 0;
          covers = covers && (bits >> i & 1U) != 0;
          expected |= 1U << i;
        }
        EXPECT_EQ(set.meets({begin, end}), meets);
        EXPECT_EQ(set.covers({begin, end}), covers);
        set.add({begin, end});
        EXPECT_EQ(set.bytes(), static_cast<std::uint64_t>(__builtin_popcount(expected)));
      }
    }
  }
}

/// Calls `reads` on one rank, in the phase "read". Returns the rank's peak memory in this phase.
std::uint64_t load_peak(const std::function<void(const Ports&, ReadFile&)>& reads) {
  SimStore store;
  write_durably(store, "file", Bytes(1000));
  std::uint64_t peak = 0;
  World world({.world_size = 1}, store);
  world.run([&](Ports& ports, GlobalRank) {
    MemoryMeter meter(ports);
    const auto file = meter.ports().store.open("file");
    begin_phase(meter.ports().trace, phase::kRead);
    reads(meter.ports(), *file);
    end_phase(meter.ports().trace, phase::kRead);
    begin_phase(meter.ports().trace, phase::kCommon);
    Bytes later(900);
    file->read_at(0, later);
    peak = meter.peaks().load;
  });
  return peak;
}

void scatter(const Ports& ports, ByteSpan from, Bytes& to) {
  const auto bytes = static_cast<std::int64_t>(from.size());
  const ScatterCopy copy{.host = {from.data(), {1}},
                         .device = {to.data(), {1}},
                         .extents = {bytes},
                         .element_bytes = 1};
  ports.device.wait(ports.device.scatter({&copy, 1}));
}

TEST(MemoryMeter, counts_concurrent_copies_together_and_the_largest_transfer) {
  Bytes staging(500);
  Bytes target(500);
  const auto part = [&](std::size_t begin, std::size_t size) {
    return MutableByteSpan(staging).subspan(begin, size);
  };
  EXPECT_EQ(load_peak([&](const Ports&, ReadFile& file) {
              file.read_at(0, part(0, 100));
              file.read_at(0, part(200, 70));
            }),
            100U);
  EXPECT_EQ(load_peak([&](const Ports& ports, ReadFile& file) {
              file.read_at(0, part(0, 100));
              scatter(ports, part(0, 80), target);
              file.read_at(0, part(0, 120));
              scatter(ports, part(0, 120), target);
            }),
            120U)
      << "one buffer, used twice";
  EXPECT_EQ(load_peak([&](const Ports& ports, ReadFile& file) {
              file.read_at(0, part(0, 100));
              scatter(ports, part(0, 100), target);
              file.read_at(0, part(200, 120));
              scatter(ports, part(200, 120), target);
              file.read_at(0, part(400, 30));
            }),
            250U)
      << "two buffers, and one that passes";
}

TEST(MemoryMeter, holds_what_a_leaf_has_beside_the_jobs_memory) {
  Bytes own(100);
  Bytes beside(70);
  const auto leaf = [](Bytes& bytes) {
    TensorLeaf made{.key = "k", .dtype = DType::kInt8, .shape = {std::ssize(bytes)}};
    made.pieces = {contiguous_piece(Box::whole(made.shape))};
    made.data = bytes.data();
    return made;
  };
  const std::vector<ByteSpan> memory = {own};
  const auto peaks = [&](std::string_view phase, Bytes& held) {
    SimStore store;
    MemoryPeaks found;
    World world({.world_size = 1}, store);
    world.run([&](Ports& ports, GlobalRank) {
      MemoryMeter meter(ports);
      StateDict leaves;
      leaves.tensors = {leaf(held)};
      meter.set_own(memory, leaves);
      begin_phase(meter.ports().trace, phase);
      found = meter.peaks();
    });
    return found;
  };
  EXPECT_EQ(peaks(phase::kRead, own).load, 0U);
  EXPECT_EQ(peaks(phase::kRead, beside).load, 70U);
  EXPECT_EQ(peaks(phase::kStage, own).stage, 0U);
  EXPECT_EQ(peaks(phase::kStage, beside).stage, 70U);
}

struct Case {
  std::uint64_t staging_max;
  std::uint64_t batch;
  LoadChecksums checksums;
  Reads reads = Reads::kByEach;
};

const Case kCases[] = {
    {8U << 20U, 1U << 20U, LoadChecksums::kIgnored},
    {8U << 20U, 1U << 20U, LoadChecksums::kVerified},
    {16384, 8192, LoadChecksums::kVerified},
    {8192, 8192, LoadChecksums::kIgnored},
    {8192, 8192, LoadChecksums::kIgnored, Reads::kOncePerJob},
    {8192, 8192, LoadChecksums::kVerified, Reads::kOncePerJob},
};

/// One rank's results of a save and of a load, with the measured memory peaks and the declared
/// bounds.
struct Held {
  LifeEnd::Rank save;
  LifeEnd::Rank load;
};

std::vector<Held> run(const Case& row, const Policies& policies, std::uint64_t seed) {
  SimStore store;
  LifePlan plan{.checksums = row.checksums,
                .seed = seed,
                .save = policies.save,
                .load = policies.load,
                .reads = row.reads,
                .staging_max = row.staging_max,
                .batch = row.batch};
  const LifeEnd saved = save_step(1, store, plan);
  const LifeEnd loaded = load_newest(store, plan);
  std::vector<Held> held;
  for (std::size_t r = 0; r < saved.ranks.size(); ++r) {
    EXPECT_FALSE(saved.ranks[r].error || loaded.ranks[r].error);
    EXPECT_EQ(loaded.ranks[r].step, 1);
    held.push_back({saved.ranks[r], loaded.ranks[r]});
  }
  return held;
}

TEST(MemoryMeter, a_save_and_a_load_hold_something_and_no_more_than_they_say) {
  for (const Case& row : kCases) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      for (const Held& held : run(row, {}, seed)) {
        SCOPED_TRACE("batches of " + std::to_string(row.batch));
        EXPECT_GT(held.save.peaks.snapshot, 0U);
        EXPECT_GE(held.save.peaks.stage, held.save.peaks.snapshot);
        EXPECT_LE(held.save.peaks.stage, held.save.bound);
        EXPECT_LT(held.save.bound, 2 * held.save.tensor_bytes);
        EXPECT_GT(held.load.peaks.load, 0U);
        EXPECT_LE(held.load.peaks.load, held.load.bound);
        EXPECT_GT(held.load.peaks.wire, 0U);
      }
    }
  }
}

TEST(MemoryMeter, counts_what_a_collective_brings_to_a_load) {
  EXPECT_EQ(load_peak([](const Ports& ports, ReadFile& file) {
              Bytes share(100);
              file.read_at(0, share);
              ports.fabric.communicator(Group::world(1))->all_gather(share);
              ports.fabric.communicator(Group::world(1))->all_gather(ByteSpan(share).first(60));
            }),
            200U);
}

TEST(MemoryMeter, tells_whether_what_two_ranks_need_was_read_once) {
  const auto bytes = [](Reads reads, const Policies& policies) {
    std::uint64_t sum = 0;
    for (const Held& held : run({8192, 8192, LoadChecksums::kVerified, reads}, policies, 0)) {
      sum += held.load.bytes_read;
    }
    return sum;
  };
  Policies unshared;
  mutant_named("load-read-by-each").apply(unshared);
  EXPECT_LT(bytes(Reads::kOncePerJob, {}), bytes(Reads::kByEach, {}));
  EXPECT_EQ(bytes(Reads::kOncePerJob, unshared), bytes(Reads::kByEach, {}));
}

TEST(MemoryMeter, sees_a_save_that_clones_all_and_a_load_with_a_second_copy) {
  Policies cloning;
  mutant_named("load-peak/save-clone").apply(cloning);
  Policies keeping;
  mutant_named("load-peak").apply(keeping);
  for (const Case& row : kCases) {
    for (const Held& held : run(row, cloning, 0)) {
      EXPECT_GT(held.save.peaks.stage, held.save.bound) << row.batch;
    }
    for (const Held& held : run(row, keeping, 0)) {
      EXPECT_GT(held.load.peaks.load, held.load.bound) << row.batch;
    }
  }
}

}  // namespace
}  // namespace reprise::sim

// Tests the state that several threads of a rank share on lanes with real threads. The job's thread
// and the background work of its saves use the same faults and meters at the same time.
// ThreadSanitizer checks these tests.
#include <gtest/gtest.h>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/api/calls.hpp"
#include "core/load/load.hpp"
#include "reprise/save.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/faults/memory_meter.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/round_trip.hpp"

namespace reprise::sim {
namespace {

using contracts::run_ranks;
using contracts::TemporaryDirectory;

constexpr std::int32_t kRanks = 2;
constexpr std::int64_t kSaves = 6;

void give_no_life() { FAIL() << "no death was planned"; }

/// A rank of a job that saves while it trains. All its saves are in one queue.
class SavingRank {
 public:
  SavingRank(const Ports& ports, FaultBook& book)
      : book_(book),
        faulty_(ports, book, {.die = give_no_life, .sleep = [](std::uint64_t) {}}),
        group_(ports.fabric.communicator(Group::world(kRanks))),
        job_({{"rows", DType::kFloat32, {90, 70}, Placement({{"dp", 0}})},
              {"whole", DType::kInt64, {700}, {}}},
             testing_job::mesh_of({{"dp", kRanks}}), ports.fabric.rank()) {
    testing_job::fill(job_.state);
    job_.state.common = Dict{{"iteration", Value(std::int64_t{0})}};
  }

  void run(std::size_t in_flight) {
    SaveQueue queue(in_flight);
    while (step_.value < kSaves) {
      ++step_.value;
      save(queue);
      train();
      queue.poll();
    }
    queue.finalize();
  }

  int stood = 0;
  int failed = 0;

 private:
  void save(SaveQueue& queue) {
    const auto meter = std::make_shared<MemoryMeter>(faulty_.ports());
    meters_.push_back(meter);
    meter->set_own(job_.state);
    const SaveOptions options{
        .directory = "run", .step = step_.value, .staging_bytes = 8192, .batch_bytes = 4096};
    Job saving = job_over(meter->ports(), group_, memory_);
    queue.begin(
        options, [&] { return begin_save(saving, job_.state, options); },
        [this, meter](const EndedSave& end) {
          ++(end.error ? failed : stood);
          if (end.error) return;
          EXPECT_LE(meter->peaks().stage, end.result.bound_staging);
        });
  }

  /// Changes the job's elements. Also reads state that background work may be changing at the same
  /// time.
  void train() {
    testing_job::each_element(job_.state, [](const TensorLeaf&, std::byte* element, std::uint64_t) {
      element[0] ^= std::byte{0x25};
    });
    for (const auto& meter : meters_) EXPECT_LT(meter->peaks().stage, 1U << 20U);
    EXPECT_EQ(book_.states().size(), 1U);
    EXPECT_FALSE(book_.ended(GlobalRank{0}));
  }

  FaultBook& book_;
  FaultyPorts faulty_;
  std::shared_ptr<Communicator> group_;
  std::shared_ptr<JobMemory> memory_ = std::make_shared<JobMemory>();
  testing_job::RankState job_;
  Step step_ = {};
  std::vector<std::shared_ptr<MemoryMeter>> meters_;  ///< kept until all background work is done
};

TEST(SharedPorts, the_job_and_its_background_share_faults_and_meters__2_ranks) {
  for (const std::size_t in_flight : {1, 3}) {
    const TemporaryDirectory directory;
    FaultBook book({{.kind = FaultKind::kWriteError,
                     .place = {.rank = {1}, .nth = 9, .file = FileKind::kPayload}}});
    run_ranks(kRanks, directory.path(), [&](const Ports& ports) {
      SavingRank rank(ports, book);
      book.arm(0, ports.fabric.rank());
      rank.run(in_flight);
      EXPECT_EQ(rank.failed, 1);
      EXPECT_EQ(rank.stood, kSaves - 1);
    });
    EXPECT_TRUE(book.states().front().fired);
  }
}

/// Memory of the host that a load must not read into directly, as if it were a GPU's.
class FarDevice final : public Device {
 public:
  std::string name() const override { return host_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override { return host_.gather(copies); }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    return host_.scatter(copies);
  }
  void wait(DeviceEvent event) override { host_.wait(event); }

 private:
  HostDevice host_{"far", 0};
};

TEST(SharedPorts, a_load_reads_in_threads_and_ahead_of_its_rounds__2_ranks) {
  const TemporaryDirectory directory;
  const auto job_on = [](const Ports& ports) {
    return std::make_unique<testing_job::RankState>(
        std::vector<testing_job::TensorSpec>{
            {"large", DType::kFloat32, {90, 700}, Placement({{"dp", 0}})},
            {"rows", DType::kFloat32, {90, 7}, Placement({{"dp", 0}})},
            {"whole", DType::kInt64, {7000}, {}},
            {"small", DType::kInt64, {30}, {}}},
        testing_job::mesh_of({{"dp", kRanks}}), ports.fabric.rank());
  };
  run_ranks(kRanks, directory.path(), [&](const Ports& ports) {
    const auto job = job_on(ports);
    testing_job::fill(job->state);
    job->state.common = Dict{{"iteration", Value(std::int64_t{1})}};
    const auto group = ports.fabric.communicator(Group::world(kRanks));
    Save::begin(ports, group, job->state, {.directory = "run", .step = 1}).finish();
  });
  for (const Reads reads : {Reads::kByEach, Reads::kOncePerJob}) {
    for (const LoadChecksums checksums : {LoadChecksums::kIgnored, LoadChecksums::kVerified}) {
      FaultBook book({});
      run_ranks(kRanks, directory.path(), [&](const Ports& host) {
        FarDevice device;
        ThreadTasks tasks(4);
        const Ports far{host.store, host.fabric, device, tasks, host.trace};
        FaultyPorts faulty(far, book, {.die = give_no_life, .sleep = [](std::uint64_t) {}});
        MemoryMeter meter(faulty.ports());
        const auto job = job_on(host);
        const auto group = host.fabric.communicator(Group::world(kRanks));
        const LoadResult report = load(
            meter.ports(), *group, job->state,
            {.directory = "run", .checksums = checksums, .reads = reads, .staging_bytes = 32768});
        EXPECT_EQ(testing_job::wrong_elements(job->state), 0U);
        EXPECT_LE(meter.peaks().load, report.bound_staging);
      });
    }
  }
}

}  // namespace
}  // namespace reprise::sim

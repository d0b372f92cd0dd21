// Tests that recording ports pass every call on, so they satisfy the contracts of what they record,
// and that they record whose calls belong together.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/adapters/posix/posix_store.hpp"
#include "driver/ranks/recorded_fabric.hpp"
#include "driver/ranks/recorded_store.hpp"
#include "sim/world/world.hpp"
#include "tests/contracts/fabric_contract.hpp"
#include "tests/contracts/store_contract.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::contracts {
namespace {

/// Keeps what a rank recorded.
struct Tape {
  std::vector<sim::Slice> slices;
  sim::Recorder recorder{sim::Recorder::Sink{
      .begun = [](std::uint64_t, const sim::Slice&) {},
      .slice = [this](std::uint64_t, const sim::Slice& slice) { slices.push_back(slice); },
      .instant = [](const sim::Instant&) {}}};
  std::uint64_t time = 0;

  Tape() {
    recorder.attach({.now_ns = [this] { return ++time; },
                     .running = [] { return std::size_t{0}; },
                     .is_dead = [](GlobalRank) { return false; }});
  }
};

struct RecordedStores {
  TemporaryDirectory directory;
  Tape tape;
  PosixStore posix{directory.path()};
  std::unique_ptr<Store> make() {
    return std::make_unique<driver::RecordedStore>(posix, tape.recorder, GlobalRank{0});
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Recorded, StoreContract, RecordedStores);

/// Runs the body on the recorded fabrics of a simulated world.
void run_recorded(std::int32_t ranks, const std::function<void(Fabric&, Tape&)>& body) {
  sim::SimStore store;
  sim::World world({.world_size = ranks}, store);
  const auto result = world.run([&body](Ports& ports, GlobalRank) {
    Tape tape;
    driver::RecordedFabric recorded("fabric", ports.fabric, tape.recorder);
    body(recorded, tape);
  });
  EXPECT_FALSE(result.deadlock) << result.deadlock->what();
  for (const auto& rank : result.ranks) {
    EXPECT_EQ(rank.end, sim::RankEnd::kReturned) << rank.message;
  }
}

template <std::int32_t kWorldSize>
struct RecordedRanks {
  void run(const std::function<void(Fabric&)>& body) {
    run_recorded(kWorldSize, [&body](Fabric& fabric, Tape&) { body(fabric); });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(RecordedOneRank, FabricContract, RecordedRanks<1>);
INSTANTIATE_TYPED_TEST_SUITE_P(RecordedFourRanks, FabricContract, RecordedRanks<4>);

using Meetings = std::set<sim::Meeting>;

Meetings meetings_of(const std::vector<sim::Slice>& slices) {
  Meetings meetings;
  for (const auto& slice : slices) {
    if (slice.meeting) meetings.insert(*slice.meeting);
  }
  EXPECT_EQ(meetings.size(), slices.size()) << "a call has none, or one that another has";
  return meetings;
}

TEST(RecordedFabric, numbers_each_call_alike_on_its_members_and_unlike_all_others) {
  std::map<GlobalRank, Meetings> in_pairs;
  std::map<GlobalRank, Meetings> in_world;
  run_recorded(4, [&](Fabric& fabric, Tape& tape) {
    const GlobalRank own = fabric.rank();
    const std::int32_t first = own.value / 2 * 2;
    for (int time = 0; time < 2; ++time) {  // two communicators of the same group
      const auto pair = fabric.communicator(Group({{first}, {first + 1}}));
      pair->barrier();
      pair->all_gather(as_bytes(tag(own)));
    }
    in_pairs[own] = meetings_of(std::exchange(tape.slices, {}));
    fabric.communicator(Group::world(4))->barrier();
    in_world[own] = meetings_of(tape.slices);
  });
  EXPECT_EQ(in_pairs[{0}].size(), 6U);
  EXPECT_EQ(in_pairs[{0}], in_pairs[{1}]);
  EXPECT_EQ(in_pairs[{2}], in_pairs[{3}]);
  for (std::int32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(in_world[{rank}], in_world[{0}]);
  Meetings all = in_pairs[{0}];
  all.insert(in_pairs[{2}].begin(), in_pairs[{2}].end());
  all.insert(in_world[{0}].begin(), in_world[{0}].end());
  EXPECT_EQ(all.size(), 6U + 6U + 2U);
}

TEST(RecordedFabric, tells_fabrics_of_a_rank_and_operations_at_one_place_apart) {
  sim::SimStore store;
  sim::World world({.world_size = 1}, store);
  world.run([](Ports& ports, GlobalRank) {
    Meetings all;
    for (const char* name : {"fabric", "data"}) {
      for (const bool barrier : {true, false}) {
        Tape tape;
        driver::RecordedFabric recorded(name, ports.fabric, tape.recorder);
        const auto comm = recorded.communicator(Group::world(1));
        tape.slices.clear();
        barrier ? comm->barrier() : static_cast<void>(comm->all_gather(as_bytes("x")));
        all.merge(meetings_of(tape.slices));
      }
    }
    EXPECT_EQ(all.size(), 4U);
  });
}

TEST(RecordedStore, records_what_a_call_moves_and_that_it_failed) {
  const TemporaryDirectory directory;
  PosixStore posix(directory.path());
  Tape tape;
  driver::RecordedStore store(posix, tape.recorder, GlobalRank{5});
  const auto file = store.create("a");
  file->write_at(0, as_bytes("seven b"));
  file->close();
  EXPECT_THROW(store.open("none"), Error);
  std::vector<std::string> told;
  for (const auto& slice : tape.slices) {
    EXPECT_EQ(slice.rank, GlobalRank{5});
    EXPECT_LT(slice.begin_ns, slice.end_ns);
    told.push_back(slice.name + " " + slice.detail + " " + std::to_string(slice.bytes) +
                   (slice.cut ? " failed" : ""));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"create a 0", "write a 7", "close a 0",
                                            "open none 0 failed"}));
}

}  // namespace
}  // namespace reprise::contracts

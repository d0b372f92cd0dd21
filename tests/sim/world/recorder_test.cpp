// Tests the recorder of a simulated life. Recording must change nothing, every slice must end, and
// a dead rank must record nothing.

#include "sim/world/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/world/world.hpp"

namespace reprise::sim {
namespace {

using testing::HasSubstr;

using RankMain = std::function<void(World&, Ports&, GlobalRank)>;

struct Recorded {
  RunResult result;
  Recording recording;

  std::vector<Slice> slices_of(std::int32_t rank) const {
    std::vector<Slice> own;
    for (const auto& slice : recording.slices) {
      if (slice.rank.value == rank) own.push_back(slice);
    }
    return own;
  }
  std::vector<Slice> named(const std::string& name) const {
    std::vector<Slice> found;
    for (const auto& slice : recording.slices) {
      if (slice.name == name) found.push_back(slice);
    }
    return found;
  }
};

Recorded record(const WorldOptions& given, const RankMain& rank_main,
                std::size_t slices_max = Recorder::kSlicesMax) {
  SimStore store;
  Recorder recorder(slices_max);
  WorldOptions options = given;
  options.recorder = &recorder;
  World world(options, store);
  RunResult result =
      world.run([&](Ports& ports, GlobalRank rank) { rank_main(world, ports, rank); });
  return {std::move(result), recorder.take()};
}

void begin(Ports& ports, std::string_view phase, const std::string& step = "") {
  ports.trace.event({.phase = phase, .detail = step, .moment = Moment::kBegin});
}
void end(Ports& ports, std::string_view phase, const std::string& step = "") {
  ports.trace.event({.phase = phase, .detail = step, .bytes = 5, .moment = Moment::kEnd});
}

void write_file(Store& store, const std::string& path) {
  const auto file = store.create(path);
  file->write_at(0, as_bytes("seven b"));
  file->close();
}

void busy(World& /*world*/, Ports& ports, GlobalRank rank) {
  const auto all = ports.fabric.communicator(Group::world(ports.fabric.world_size()));
  begin(ports, "write");
  const auto task =
      ports.tasks.start([&] { write_file(ports.store, "file" + std::to_string(rank.value)); });
  all->barrier();
  task->wait();
  end(ports, "write");
  begin(ports, "commit");
  begin(ports, "commit", "swap_in");
  ports.store.stat("file0");
  end(ports, "commit", "swap_in");
  end(ports, "commit");
  all->barrier();
}

TEST(Recorder, changes_neither_the_events_of_a_life_nor_its_time) {
  const Recorded recorded = record({.seed = 3, .world_size = 4}, busy);
  SimStore store;
  World world({.seed = 3, .world_size = 4}, store);
  const RunResult plain =
      world.run([&](Ports& ports, GlobalRank rank) { busy(world, ports, rank); });
  EXPECT_GT(plain.events, 50U);
  EXPECT_EQ(recorded.result.event_hash, plain.event_hash);
  EXPECT_EQ(recorded.result.duration_ns, plain.duration_ns);
  EXPECT_EQ(recorded.result.decisions, plain.decisions);
  EXPECT_EQ(recorded.recording.duration_ns, plain.duration_ns);
}

TEST(Recorder, every_collective_is_a_slice_of_each_member_and_they_overlap) {
  const Recorded recorded = record({.seed = 3, .world_size = 4}, busy);
  std::map<Meeting, std::vector<Slice>> calls;
  for (const auto& slice : recorded.recording.slices) {
    if (slice.kind != SliceKind::kCollective) continue;
    ASSERT_TRUE(slice.meeting);
    EXPECT_EQ(slice.detail, "{0 1 2 3}");
    calls[*slice.meeting].push_back(slice);
  }
  ASSERT_EQ(calls.size(), 3U);  // the communicator and two barriers
  for (const auto& [meeting, slices] : calls) {
    ASSERT_EQ(slices.size(), 4U);
    std::set<std::int32_t> ranks;
    std::uint64_t last_begin = 0;
    std::uint64_t first_end = ~std::uint64_t{0};
    for (const auto& slice : slices) {
      ranks.insert(slice.rank.value);
      last_begin = std::max(last_begin, slice.begin_ns);
      first_end = std::min(first_end, slice.end_ns);
      EXPECT_EQ(slice.name, slices.front().name);
      EXPECT_FALSE(slice.cut);
    }
    EXPECT_EQ(ranks.size(), 4U);
    EXPECT_LT(last_begin, first_end) << "nobody leaves before the last one came";
  }
}

TEST(Recorder, phases_hold_steps_and_store_calls_with_path_size_and_fiber) {
  const Recorded recorded = record({.seed = 3, .world_size = 2}, busy);
  const auto steps = recorded.named("swap_in");
  const auto commits = recorded.named("commit");
  ASSERT_EQ(steps.size(), 2U);
  ASSERT_EQ(commits.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(steps[i].kind, SliceKind::kStep);
    EXPECT_EQ(steps[i].detail, "commit");
    EXPECT_EQ(commits[i].bytes, 5U);
    const auto own = std::find_if(commits.begin(), commits.end(),
                                  [&](const Slice& one) { return one.rank == steps[i].rank; });
    EXPECT_GE(steps[i].begin_ns, own->begin_ns);
    EXPECT_LE(steps[i].end_ns, own->end_ns);
  }
  std::set<std::uint64_t> ends;
  std::size_t calls = 0;
  for (const auto& slice : recorded.recording.slices) {
    if (slice.kind != SliceKind::kStore) continue;
    ++calls;
    ends.insert(slice.end_ns);
    EXPECT_GE(slice.end_ns - slice.begin_ns, Scheduler::kSwitchNs);
    const bool behind = slice.name != "stat";
    EXPECT_EQ(slice.fiber >= 2, behind) << "files are written by background tasks";
    if (slice.name == "write") {
      EXPECT_EQ(slice.bytes, 7U);
      EXPECT_EQ(slice.detail, "file" + std::to_string(slice.rank.value));
    }
  }
  EXPECT_EQ(calls, 8U);
  EXPECT_EQ(ends.size(), calls) << "each call takes effect in a switch of its own";
}

/// Calls ports as its rank's stack unwinds.
struct LastWords {
  explicit LastWords(Ports& own) : ports(own) {}
  ~LastWords() {
    try {
      ports.trace.event({.phase = "plan", .detail = {}, .moment = Moment::kBegin});
    } catch (...) {
    }
    try {
      ports.store.list("last words");
    } catch (...) {
    }
  }
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  Ports& ports;
};

TEST(Recorder, a_rank_killed_in_a_phase_ends_its_slices_and_records_no_more) {
  const auto rank_main = [](World& world, Ports& ports, GlobalRank rank) {
    const auto all = ports.fabric.communicator(Group::world(2));
    const LastWords words(ports);
    begin(ports, "commit");
    begin(ports, "commit", "swap_in");
    if (rank.value == 0) {
      // The rank dies in its background while it waits in a collective.
      const auto task = ports.tasks.start([&] {
        for (int i = 0; i < 20; ++i) ports.store.stat("x");
        world.kill(rank);
      });
      all->barrier();
    }
    for (int i = 0; i < 100; ++i) ports.store.stat("y");
    all->barrier();
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Recorded recorded = record({.seed = seed, .world_size = 2}, rank_main);
    ASSERT_EQ(recorded.result.ranks[0].end, RankEnd::kKilled);
    const auto& instants = recorded.recording.instants;
    ASSERT_GE(instants.size(), 1U);
    EXPECT_EQ(instants[0].name, "killed");
    EXPECT_EQ(instants[0].rank.value, 0);
    const std::uint64_t death = instants[0].at_ns;
    ASSERT_LT(death + 50 * Scheduler::kSwitchNs, recorded.recording.duration_ns);
    std::set<std::string> cut;
    for (const auto& slice : recorded.slices_of(0)) {
      EXPECT_LE(slice.end_ns, death) << slice.name;
      EXPECT_NE(slice.name, "plan");
      EXPECT_NE(slice.name, "list");
      if (slice.cut) {
        cut.insert(slice.name);
        EXPECT_EQ(slice.end_ns, death);
      }
    }
    EXPECT_EQ(cut, (std::set<std::string>{"commit", "swap_in", "barrier"}));
  }
}

TEST(Recorder, hanging_ranks_end_their_slices_and_name_what_they_wait_for) {
  const Recorded recorded =
      record({.seed = 1, .world_size = 3}, [](World&, Ports& ports, GlobalRank rank) {
        const auto all = ports.fabric.communicator(Group::world(3));
        begin(ports, "plan");
        if (rank.value == 2) return;
        for (int i = 0; i < 50; ++i) ports.store.stat("x");
        all->all_gather({});
      });
  ASSERT_TRUE(recorded.result.deadlock);
  const auto waits = recorded.named("all_gather");
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].meeting, waits[1].meeting);
  for (const auto& wait : waits) {
    EXPECT_TRUE(wait.cut);
    EXPECT_EQ(wait.end_ns, recorded.recording.duration_ns);
  }
  ASSERT_EQ(recorded.recording.instants.size(), 2U);
  for (const auto& instant : recorded.recording.instants) {
    EXPECT_EQ(instant.name, "hung");
    EXPECT_THAT(instant.detail, HasSubstr("rank 0 waits in all_gather #1 of group {0 1 2}"));
  }
  for (const auto& plan : recorded.named("plan")) {
    EXPECT_EQ(plan.end_ns == recorded.recording.duration_ns, plan.rank.value != 2)
        << "rank 2 has returned before";
  }
}

TEST(Recorder, a_rank_has_no_part_in_a_call_that_its_peers_do_not_make) {
  const Recorded recorded =
      record({.seed = 5, .world_size = 2}, [](World&, Ports& ports, GlobalRank rank) {
        const auto all = ports.fabric.communicator(Group::world(2));
        if (rank.value == 1) {
          all->barrier();
        } else {
          all->all_gather({});
        }
      });
  const auto barriers = recorded.named("barrier");
  const auto gathers = recorded.named("all_gather");
  ASSERT_EQ(barriers.size() + gathers.size(), 2U);
  EXPECT_NE(barriers[0].meeting.has_value(), gathers[0].meeting.has_value());
  EXPECT_TRUE(barriers[0].cut && gathers[0].cut);
  ASSERT_EQ(recorded.recording.instants.size(), 2U);
  EXPECT_EQ(recorded.recording.instants[0].name, "failed");
  EXPECT_THAT(recorded.recording.instants[0].detail, HasSubstr("COLLECTIVE_MISMATCH"));
}

TEST(Recorder, a_failed_phase_ends_at_the_next_one_of_the_same_save) {
  Recorder recorder;
  SimStore store;
  World world({.world_size = 1, .recorder = &recorder}, store);
  const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
    const auto of_save = [&](std::int64_t step, const std::function<void()>& events) {
      recorder.within(rank, Step{step});
      events();
      recorder.within(rank, {});
    };
    of_save(1, [&] { begin(ports, "write"); });
    ports.store.stat("a");
    of_save(1, [&] { begin(ports, "vote"); });  // and fails; the files are still written
    ports.store.stat("b");
    of_save(2, [&] { begin(ports, "plan"); });
    ports.store.stat("c");
    of_save(1, [&] { begin(ports, "commit"); });
    ports.store.stat("d");
    recorder.save_ended(rank, Step{1});
    ports.store.stat("e");
    of_save(2, [&] { end(ports, "plan"); });
  });
  const Recorded recorded{result, recorder.take()};
  std::map<std::string, std::uint64_t> at;
  for (const auto& slice : recorded.recording.slices) {
    if (slice.kind == SliceKind::kStore) at[slice.detail] = slice.end_ns;
  }
  EXPECT_EQ(recorded.named("vote").at(0).end_ns, at["c"]);
  EXPECT_EQ(recorded.named("write").at(0).end_ns, at["d"]);
  EXPECT_EQ(recorded.named("commit").at(0).end_ns, at["d"]);
  EXPECT_EQ(recorded.named("plan").at(0).end_ns, at["e"]);
  EXPECT_FALSE(recorded.named("plan").at(0).cut);
  EXPECT_TRUE(recorded.named("vote").at(0).cut);
  EXPECT_EQ(recorded.named("vote").at(0).save, Step{1});
}

TEST(Recorder, keeps_the_slices_that_ended_last_and_counts_the_others) {
  const auto rank_main = [](World&, Ports& ports, GlobalRank) {
    begin(ports, "plan");
    for (int i = 0; i < 100; ++i) ports.store.stat(std::to_string(i));
    end(ports, "plan");
  };
  const Recorded recorded = record({.world_size = 1}, rank_main, 10);
  ASSERT_EQ(recorded.recording.slices.size(), 10U);
  EXPECT_EQ(recorded.recording.left_out, 91U);
  EXPECT_EQ(recorded.recording.slices.front().name, "plan");
  EXPECT_EQ(recorded.recording.slices[1].detail, "91");
  EXPECT_EQ(recorded.recording.slices.back().detail, "99");
}

/// Records what one rank does in a time that passes with each look at the clock, as real time does.
std::vector<Slice> recorded_in_real_time(const std::function<void(Recorder&)>& life) {
  std::vector<Slice> slices;
  Recorder recorder(
      Recorder::Sink{.begun = [](std::uint64_t, const Slice&) {},
                     .slice = [&](std::uint64_t, const Slice& slice) { slices.push_back(slice); },
                     .instant = [](const Instant&) {}});
  std::uint64_t time = 0;
  recorder.attach({.now_ns = [&time] { return ++time; },
                   .running = [] { return std::size_t{0}; },
                   .is_dead = [](GlobalRank) { return false; }});
  recorder.within({0}, Step{4});
  recorder.phase({0}, {.phase = "commit", .moment = Moment::kBegin});
  recorder.phase({0}, {.phase = "commit", .detail = "tracker", .moment = Moment::kBegin});
  life(recorder);
  return slices;
}

TEST(Recorder, a_step_that_is_cut_ends_at_the_same_time_as_its_phase) {
  const std::vector<std::pair<std::string, std::function<void(Recorder&)>>> ends = {
      {"death", [](Recorder& recorder) { recorder.died({0}); }},
      {"the end of the save", [](Recorder& recorder) { recorder.save_ended({0}, Step{4}); }},
      {"a phase that follows", [](Recorder& recorder) {
         recorder.phase({0}, {.phase = "plan", .moment = Moment::kBegin});
       }}};
  for (const auto& [what, end] : ends) {
    SCOPED_TRACE(what);
    const auto slices = recorded_in_real_time(end);
    ASSERT_EQ(slices.size(), 2U);
    EXPECT_EQ(slices[0].end_ns, slices[1].end_ns);
    EXPECT_TRUE(slices[0].cut && slices[1].cut);
  }
}

}  // namespace
}  // namespace reprise::sim

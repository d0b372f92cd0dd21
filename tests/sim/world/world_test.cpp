// Tests simulated worlds. Runs with the same seed must be equal, and runs with different seeds must
// differ. Crashes, deadlocks and mismatches must be reported as verdicts.
#include "sim/world/world.hpp"
#include "core/base/codes.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <stdexcept>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "sim/world/sim_device.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::sim {
namespace {

using contracts::code_of;
using testing::HasSubstr;

void write(Store& store, const std::string& path, std::string_view text) {
  const auto file = store.create(path);
  file->write_at(0, as_bytes(text));
  file->sync();
  file->close();
}

// Runs a small job that uses every port.
void busy_rank(Ports& ports, GlobalRank rank) {
  const auto comm = ports.fabric.communicator(Group::world(ports.fabric.world_size()));
  const std::string path = "file" + std::to_string(rank.value);
  const auto task = ports.tasks.start([&] { write(ports.store, path, "from " + path); });
  std::vector<std::int64_t> state = {rank.value, 7};
  std::vector<std::int64_t> staging(2);
  const std::vector<GatherCopy> copies = {{{reinterpret_cast<const std::byte*>(state.data()), {1}},
                                           {reinterpret_cast<std::byte*>(staging.data()), {1}},
                                           {2},
                                           8}};
  ports.device.wait(ports.device.gather(copies));
  comm->all_reduce(Reduce::kSum, staging);
  ports.trace.event({.phase = "write", .detail = path, .bytes = 10});
  task->wait();
  comm->barrier();
  read_all(ports.store, "file0", 100);
}

RunResult run_busy(std::uint64_t seed) {
  SimStore store;
  World world({.seed = seed, .world_size = 4}, store);
  return world.run(busy_rank);
}

TEST(World, same_seed_gives_the_same_events_again) {
  const auto first = run_busy(3);
  const auto second = run_busy(3);
  EXPECT_GT(first.events, 50U);
  EXPECT_EQ(first.event_hash, second.event_hash);
  EXPECT_EQ(first.duration_ns, second.duration_ns);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(first.ranks[rank].event_hash, second.ranks[rank].event_hash);
    EXPECT_EQ(first.ranks[rank].trace.size(), 1U);
    EXPECT_EQ(first.ranks[rank].trace[0].phase, "write");
  }
}

// Returns the hash of a run in another process, where the heap has a different layout.
std::uint64_t hash_in_child(std::uint64_t seed, std::size_t ballast) {
  std::array<int, 2> ends{};
  CHECK(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    const std::vector<std::string> other_heap(ballast, std::string(100, 'x'));
    const std::uint64_t hash = run_busy(seed).event_hash;
    const bool written = ::write(ends[1], &hash, sizeof(hash)) == sizeof(hash);
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::uint64_t hash = 0;
  EXPECT_EQ(::read(ends[0], &hash, sizeof(hash)), static_cast<ssize_t>(sizeof(hash)));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return hash;
}

TEST(World, same_seed_gives_the_same_events_in_other_processes) {
  const auto here = run_busy(11).event_hash;
  EXPECT_EQ(hash_in_child(11, 0), here);
  EXPECT_EQ(hash_in_child(11, 5000), here);
}

TEST(World, different_seeds_interleave_differently) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) hashes.insert(run_busy(seed).event_hash);
  EXPECT_EQ(hashes.size(), 20U);
}

TEST(World, race_is_won_by_different_ranks_under_different_seeds) {
  std::set<std::string> winners;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SimStore store;
    World world({.seed = seed, .world_size = 3}, store);
    world.run([](Ports& ports, GlobalRank rank) {
      write(ports.store, "last", std::to_string(rank.value));
    });
    winners.emplace(as_text(read_all(store, "last", 10)));
  }
  EXPECT_EQ(winners, (std::set<std::string>{"0", "1", "2"}));
}

TEST(World, device_copies_are_late_and_targets_poisoned_until_awaited) {
  SimStore store;
  World world({}, store);
  world.run([](Ports& ports, GlobalRank) {
    std::vector<std::byte> state(4, std::byte{1});
    std::vector<std::byte> staging(4);
    const std::vector<GatherCopy> out = {{{state.data(), {1}}, {staging.data(), {1}}, {4}, 1}};
    const auto event = ports.device.gather(out);
    EXPECT_EQ(staging, std::vector<std::byte>(4, SimDevice::kUngathered));
    state[0] = std::byte{9};  // the copy is not made yet, so it must contain this change
    ports.device.wait(event);
    EXPECT_EQ(staging[0], std::byte{9});
    const std::vector<ScatterCopy> in = {{{staging.data(), {1}}, {state.data(), {1}}, {4}, 1}};
    staging[1] = std::byte{5};
    const auto scattered = ports.device.scatter(in);
    EXPECT_EQ(state, std::vector<std::byte>(4, SimDevice::kUnscattered));
    ports.device.wait(scattered);
    EXPECT_EQ(state[1], std::byte{5});
  });
}

TEST(World, a_copy_that_nobody_waits_for_touches_no_freed_memory) {
  SimStore store;
  World world({}, store);
  world.run([](Ports& ports, GlobalRank) {
    std::vector<std::byte> state(4, std::byte{1});
    std::vector<std::byte> staging(8);
    const auto gather_to = [&](std::size_t at) {
      const std::vector<GatherCopy> out = {{{state.data(), {1}}, {&staging[at], {1}}, {4}, 1}};
      return ports.device.gather(out);
    };
    gather_to(0);
    ports.device.wait(gather_to(4));
    const std::vector<std::byte> first(staging.begin(), staging.begin() + 4);
    EXPECT_EQ(first, std::vector<std::byte>(4, SimDevice::kUngathered));
    EXPECT_EQ(staging[4], std::byte{1});
  });
}

TEST(World, late_background_work_runs_only_when_somebody_waits_for_it) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SimStore store;
    World world({.seed = seed, .world_size = 2, .background = Background::kLate}, store);
    const auto result = world.run([](Ports& ports, GlobalRank) {
      const auto all = ports.fabric.communicator(Group::world(2));
      std::vector<int> order;
      const auto first = ports.tasks.start([&order] { order.push_back(1); });
      const auto second = ports.tasks.start([&order, &first] {
        first->wait();
        order.push_back(2);
      });
      for (int i = 0; i < 5; ++i) all->barrier();
      EXPECT_FALSE(first->done() || second->done());
      second->wait();
      EXPECT_EQ(order, (std::vector<int>{1, 2}));
      const auto third = ports.tasks.start([&order] { order.push_back(3); });
      EXPECT_EQ(order.size(), 2U) << "its destructor must wait for it";
    });
    for (const auto& rank : result.ranks) EXPECT_EQ(rank.end, RankEnd::kReturned) << rank.message;
  }
}

TEST(World, late_background_work_dies_with_its_rank) {
  SimStore store;
  World world({.world_size = 2, .background = Background::kLate}, store);
  bool ran = false;
  const auto result = world.run([&](Ports& ports, GlobalRank rank) {
    if (rank.value == 1) return;
    const auto task = ports.tasks.start([&ran] { ran = true; });
    world.kill(rank);
  });
  EXPECT_EQ(result.ranks[0].end, RankEnd::kKilled);
  EXPECT_FALSE(ran);
  EXPECT_FALSE(result.deadlock);
}

TEST(World, ranks_that_wait_for_each_other_are_a_verdict_that_names_them) {
  SimStore store;
  World world({.seed = 1, .world_size = 3}, store);
  const auto result = world.run([](Ports& ports, GlobalRank rank) {
    const auto all = ports.fabric.communicator(Group::world(3));
    all->barrier();
    if (rank.value == 2) return;  // rank 2 does not make the second call
    if (rank.value == 0) all->all_gather(as_bytes("x"));
    if (rank.value == 1) {
      ports.fabric.communicator(Group({GlobalRank{1}, GlobalRank{0}}));
    }
  });
  ASSERT_TRUE(result.deadlock);
  EXPECT_EQ(result.deadlock->code(), passed_on::kHang);
  EXPECT_THAT(result.deadlock->what(), HasSubstr("rank 0 waits in all_gather #2 of group {0 1 2}"));
  EXPECT_THAT(result.deadlock->what(), HasSubstr("rank 1 waits in communicator #0 of group {1 0}"));
  EXPECT_EQ(result.ranks[0].end, RankEnd::kHung);
  EXPECT_EQ(result.ranks[0].error->code(), passed_on::kHang);
  EXPECT_EQ(result.ranks[2].end, RankEnd::kReturned);
}

TEST(World, rank_that_polls_for_ever_is_a_verdict) {
  SimStore store;
  World world({.world_size = 2, .switches_max = 1000}, store);
  const auto result = world.run([](Ports& ports, GlobalRank rank) {
    while (rank.value == 0 && !ports.store.stat("never")) {
    }
  });
  ASSERT_TRUE(result.deadlock);
  EXPECT_EQ(result.ranks[0].end, RankEnd::kHung);
  EXPECT_EQ(result.ranks[1].end, RankEnd::kReturned);
}

TEST(World, different_operations_of_a_group_mismatch_on_every_member) {
  SimStore store;
  World world({.seed = 5, .world_size = 3}, store);
  const auto result = world.run([](Ports& ports, GlobalRank rank) {
    const auto comm = ports.fabric.communicator(Group::world(3));
    if (rank.value == 1) {
      comm->barrier();
    } else {
      comm->all_gather({});
    }
  });
  for (const auto& rank : result.ranks) {
    ASSERT_EQ(rank.end, RankEnd::kFailed);
    EXPECT_EQ(rank.error->code(), Code::kCollectiveMismatch);
    EXPECT_THAT(rank.error->what(), HasSubstr("call #1 of group {0 1 2}"));
    EXPECT_THAT(rank.error->what(), HasSubstr("barrier"));
    EXPECT_THAT(rank.error->what(), HasSubstr("all_gather"));
  }
}

TEST(World, calls_with_another_length_kind_or_root_mismatch) {
  using Call = void (*)(Communicator&, std::int64_t);
  const std::vector<Call> calls = {
      [](Communicator& comm, std::int64_t rank) {
        comm.all_reduce(Reduce::kSum, std::vector<std::int64_t>(static_cast<std::size_t>(rank)));
      },
      [](Communicator& comm, std::int64_t rank) {
        comm.all_reduce(rank == 0 ? Reduce::kMin : Reduce::kMax, std::vector<std::int64_t>(1));
      },
      [](Communicator& comm, std::int64_t rank) {
        comm.broadcast({static_cast<std::int32_t>(rank)}, {});
      },
      [](Communicator& comm, std::int64_t rank) {
        comm.all_gather_on_device(8 + static_cast<std::uint64_t>(rank), Bytes(8));
      }};
  for (const auto call : calls) {
    SimStore store;
    World world({.world_size = 2, .device_fabric = true}, store);
    const auto result = world.run([call](Ports& ports, GlobalRank rank) {
      call(*ports.data->communicator(Group::world(2)), rank.value);
    });
    for (const auto& rank : result.ranks) {
      ASSERT_EQ(rank.end, RankEnd::kFailed);
      EXPECT_EQ(rank.error->code(), Code::kCollectiveMismatch);
    }
  }
}

TEST(World, peers_of_a_failed_rank_get_its_message_and_no_rank_waits) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimStore store;
    World world({.seed = seed, .world_size = 3}, store);
    const auto result = world.run([](Ports& ports, GlobalRank rank) {
      const auto comm = ports.fabric.communicator(Group::world(3));
      if (rank.value == 1) throw Error(Code::kNoSpace, "the disk is full");
      comm->barrier();
    });
    EXPECT_FALSE(result.deadlock);
    EXPECT_EQ(result.ranks[1].error->code(), Code::kNoSpace);
    for (const std::size_t peer : {0U, 2U}) {
      ASSERT_EQ(result.ranks[peer].end, RankEnd::kFailed);
      EXPECT_EQ(result.ranks[peer].error->code(), Code::kPeerFailed);
      EXPECT_THAT(result.ranks[peer].error->what(), HasSubstr("the disk is full"));
      EXPECT_EQ(result.ranks[peer].error->place().rank, GlobalRank{1});
    }
  }
}

TEST(World, unexpected_exceptions_are_defects_and_peers_learn_of_them) {
  SimStore store;
  World world({.world_size = 2}, store);
  const auto result = world.run([](Ports& ports, GlobalRank rank) {
    CHECK(rank.value == 0);
    ports.fabric.communicator(Group::world(2));
  });
  EXPECT_EQ(result.ranks[1].end, RankEnd::kDefect);
  EXPECT_THAT(result.ranks[1].message, HasSubstr("CHECK failed"));
  EXPECT_EQ(result.ranks[0].error->code(), Code::kPeerFailed);
}

TEST(World, round_that_a_member_joined_before_it_died_is_completed) {
  SimStore store;
  World world({.seed = 2, .world_size = 2}, store);
  const auto result = world.run([&world](Ports& ports, GlobalRank rank) {
    const auto comm = ports.fabric.communicator(Group::world(2));
    EXPECT_EQ(comm->all_gather(as_bytes("x")).size(), 2U);
    if (rank.value == 1) world.kill(rank);
    EXPECT_EQ(code_of([&] { comm->barrier(); }), Code::kPeerFailed);
    // A broken communicator stays broken.
    EXPECT_EQ(code_of([&] { comm->barrier(); }), Code::kPeerFailed);
  });
  EXPECT_EQ(result.ranks[0].end, RankEnd::kReturned);
  EXPECT_EQ(result.ranks[1].end, RankEnd::kKilled);
}

// Its destructor tries to change the store. An engine's destructor does this when it cleans up.
struct CleansUp {
  Ports& ports;
  int& ran;
  ~CleansUp() {
    ++ran;
    for (const auto& call : std::vector<std::function<void()>>{
             [this] { ports.store.remove("precious"); }, [this] { ports.store.create("new"); },
             [this] { ports.tasks.start([] {}); }}) {
      EXPECT_EQ(code_of(call), Code::kPeerFailed);
    }
  }
};

TEST(World, dead_ranks_destructors_run_and_change_nothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimStore store;
    write(store, "precious", "x");
    World world({.seed = seed, .world_size = 2}, store);
    int ran = 0;
    const auto result = world.run([&](Ports& ports, GlobalRank rank) {
      if (rank.value == 0) {
        ports.store.stat("a");
        world.kill(GlobalRank{1});
        return;
      }
      const CleansUp main_guard{ports, ran};
      const auto task = ports.tasks.start([&] {
        const CleansUp task_guard{ports, ran};
        for (;;) ports.store.stat("b");
      });
      const auto file = ports.store.create("open");
      for (;;) {
        try {
          ports.store.open("none");
        } catch (const Error&) {
          ports.store.stat("c");  // a rank may be killed inside a catch block
        }
      }
    });
    EXPECT_EQ(result.ranks[1].end, RankEnd::kKilled) << result.ranks[1].message;
    EXPECT_TRUE(store.stat("precious"));
    EXPECT_FALSE(store.stat("new"));
    EXPECT_LE(ran, 2);
  }
}

TEST(World, background_work_that_kills_its_rank_unwinds_before_its_stack) {
  SimStore store;
  World world({.seed = 4, .world_size = 2}, store);
  std::vector<std::string> order;
  struct Says {
    std::vector<std::string>& order;
    const char* who;
    ~Says() { order.emplace_back(who); }
  };
  const auto result = world.run([&](Ports& ports, GlobalRank rank) {
    if (rank.value == 1) return;
    const Says main_says{order, "main"};
    const auto task = ports.tasks.start([&] {
      const Says task_says{order, "task"};
      world.kill(rank);
    });
    task->wait();
  });
  EXPECT_EQ(result.ranks[0].end, RankEnd::kKilled);
  EXPECT_EQ(order, (std::vector<std::string>{"task", "main"}));
}

TEST(World, slow_rank_costs_its_peers_the_deadline_and_virtual_time_only) {
  SimStore store;
  World world({.world_size = 2, .deadline_ns = 1'000'000'000}, store);
  const auto result = world.run([&world](Ports& ports, GlobalRank rank) {
    const auto comm = ports.fabric.communicator(Group::world(2));
    const auto before = world.clock().now_ns();
    if (rank.value == 1) world.sleep(3'600'000'000'000);
    if (rank.value == 1) {
      EXPECT_GE(world.clock().now_ns(), before + 3'600'000'000'000);
    }
    comm->barrier();
  });
  ASSERT_EQ(result.ranks[0].end, RankEnd::kFailed);
  EXPECT_EQ(result.ranks[0].error->code(), Code::kDeadline);
  EXPECT_THAT(result.ranks[0].error->what(), HasSubstr("barrier"));
  EXPECT_THAT(result.ranks[0].error->what(), HasSubstr("from rank 1"));
  EXPECT_EQ(result.ranks[0].error->place().rank, GlobalRank{0});
}

TEST(World, store_passes_on_to_the_next_life) {
  SimStore store;
  for (std::int32_t life = 0; life < 3; ++life) {
    World world({.seed = 9, .world_size = 2}, store);
    const auto result = world.run([life](Ports& ports, GlobalRank rank) {
      const std::string path = "r" + std::to_string(rank.value);
      if (life > 0) {
        EXPECT_EQ(as_text(read_all(ports.store, path, 9)), std::to_string(life - 1));
      }
      write_atomically(ports.store, path, as_bytes(std::to_string(life)));
    });
    EXPECT_EQ(result.ranks[0].end, RankEnd::kReturned);
    store.crash();
  }
}

TEST(World, many_ranks_and_switches_are_affordable) {
  SimStore store;
  World world({.world_size = 128}, store);
  const auto result = world.run([](Ports& ports, GlobalRank) {
    const auto comm = ports.fabric.communicator(Group::world(128));
    for (int i = 0; i < 20; ++i) comm->barrier();
  });
  EXPECT_FALSE(result.deadlock);
  EXPECT_EQ(result.events, 128U * 21U);
}

}  // namespace
}  // namespace reprise::sim

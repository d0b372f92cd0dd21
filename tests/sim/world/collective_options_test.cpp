// Tests the public API on two ranks. If the ranks pass different options, or if one rank can't
// accept its options, the call must end in the same way on both ranks.

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/api/calls.hpp"
#include "reprise/reprise.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"
#include "tests/fixtures/complaint.hpp"

namespace reprise::collective_options_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Returns the state, moved out of `state`. The test uses `state` again afterwards.
State taken_from(State& state) { return std::move(state); }

/// Runs `program` on two simulated ranks. Returns the text of each rank's error.
std::vector<std::string> on_two_ranks(
    const std::function<void(Job&, State&, bool first)>& program) {
  sim::SimStore store("sim:");
  sim::World world({.seed = 3, .world_size = 2}, store);
  std::vector<std::string> complaints(2);
  world.run([&](Ports& ports, GlobalRank rank) {
    Job job(borrowed_ports(ports));
    std::vector<float> w(2, 0.5F);
    State state;
    state.add("w", sharded({4}, Mesh({{"dp", 2}}), {{"dp", 0}}, rank), w.data());
    complaints[static_cast<std::size_t>(rank.value)] =
        complaint([&] { program(job, state, rank == GlobalRank{0}); });
  });
  return complaints;
}

TEST(CollectiveOptions, that_differ_are_named_on_both_ranks) {
  const auto saved = on_two_ranks([](Job& job, State& state, bool first) {
    save(job, state, {.directory = "run", .step = first ? 1 : 2});
  });
  EXPECT_THAT(saved, testing::Each(AllOf(HasSubstr("USAGE"), HasSubstr("'step' is '1'"),
                                         HasSubstr("'2' on rank 1"))));
  const auto loaded = on_two_ranks([](Job& job, State& state, bool first) {
    save(job, state, {.directory = "run"});
    load(
        job, state,
        {.directory = "run", .strictness = first ? Strictness::kRaiseAll : Strictness::kIgnoreAll});
  });
  EXPECT_THAT(loaded, testing::Each(AllOf(HasSubstr("USAGE"), HasSubstr("strictness"))));
}

TEST(CollectiveOptions, what_one_rank_can_not_do_is_refused_by_both) {
  const auto saved = on_two_ranks([](Job& job, State& state, bool first) {
    save(job, state, {.directory = "run", .staging_bytes = first ? 4096 : 0});
  });
  EXPECT_THAT(saved, testing::Each(AllOf(HasSubstr("USAGE"), HasSubstr("staging_bytes"))));
  const auto in_batches = on_two_ranks([](Job& job, State& state, bool first) {
    save(job, state, {.directory = "run", .batch_bytes = first ? 4096U : 0U});
  });
  EXPECT_THAT(in_batches, testing::Each(AllOf(HasSubstr("USAGE"), HasSubstr("batch_bytes"))));
  const auto read = on_two_ranks([](Job& job, State& state, bool first) {
    save(job, state, {.directory = "run", .step = 1});
    read_common(job, "run", first ? "iter_%07d" : "no number");
  });
  EXPECT_THAT(read, testing::Each(AllOf(HasSubstr("USAGE"), HasSubstr("step_names"))));
}

TEST(CollectiveOptions, a_state_that_one_rank_has_moved_from_is_refused_by_both) {
  const auto says = testing::Each(HasSubstr("USAGE: state: it was moved from"));
  const auto saved = on_two_ranks([](Job& job, State& state, bool first) {
    const State taken = first ? taken_from(state) : State();
    save(job, state, {.directory = "run"});
  });
  EXPECT_THAT(saved, says);
  const auto loaded = on_two_ranks([](Job& job, State& state, bool first) {
    save(job, state, {.directory = "run"});
    const State taken = first ? taken_from(state) : State();
    load(job, state, {.directory = "run"});
  });
  EXPECT_THAT(loaded, says);
}

TEST(CollectiveOptions, equal_options_are_taken) {
  const auto done = on_two_ranks([](Job& job, State& state, bool /*first*/) {
    save(job, state, {.directory = "run", .step = 1, .keep = 1});
    load(job, state, {.directory = "run", .excused = {"a", "b"}});
  });
  EXPECT_THAT(done, testing::Each(std::string()));
}

}  // namespace
}  // namespace reprise::collective_options_test

// Tests the protocols' tables: what a run without faults does is allowed, and nothing next to it.
#include "properties/protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace reprise::protocol_test {
namespace {

using ::testing::HasSubstr;
using Events = std::vector<std::string>;

/// Appends the begin and the end of each step.
void add_steps(Events& events, const std::string& phase, const std::vector<std::string>& steps) {
  events.push_back("+" + phase);
  for (const auto& step : steps) {
    events.push_back("+" + phase + "/" + step);
    events.push_back("-" + phase + "/" + step);
  }
  events.push_back("-" + phase);
}

/// Returns the events of a save of the rank that runs the protocols.
Events save_of_leader() {
  Events events = {"+plan", "-plan"};
  add_steps(events, "prepare",
            {"make_root", "lock", "restore_replaced", "sync_root", "clear", "make_saving"});
  for (const auto* one : {"+stage", "-stage", "+write", "+vote", "-write", "-vote"}) {
    events.emplace_back(one);
  }
  add_steps(events, "commit",
            {"payload", "common_state", "metadata", "backend_info", "manifest", "sync_directory",
             "read_back", "swap_in", "sync_parent", "confirm", "tracker", "remove_replaced"});
  add_steps(events, "retention",
            {"clear_removing", "choose", "set_aside", "sync_root", "unmark", "remove"});
  return events;
}

const Events kSaveOfMember = {"+plan",   "-plan",   "+prepare",   "-prepare",  "+stage", "-stage",
                              "+write",  "+vote",   "-vote",      "+vote",     "-write", "-vote",
                              "+commit", "-commit", "+retention", "-retention"};
const Events kLoad = {"+locate",  "-locate",    "+metadata",  "-metadata", "+common",
                      "-common",  "+load_plan", "-load_plan", "+read",     "-read",
                      "+objects", "-objects",   "+common",    "-common"};
const Events kDamagedLoad = {"+locate",   "-locate",    "+metadata",  "passed over", "+metadata",
                             "-metadata", "+load_plan", "-load_plan", "+read",       "passed over",
                             "+metadata", "-metadata",  "+load_plan", "-load_plan",  "+read",
                             "-read",     "+objects",   "-objects",   "+common",     "-common"};

/// Returns the first complaint about these events. Empty if all are allowed and complete the walk.
std::string complaint(Protocol protocol, const Events& events) {
  ProtocolWalk walk(protocol);
  for (const auto& event : events) {
    if (const auto said = walk.take(event)) return *said;
  }
  return walk.is_complete() ? "" : "it ends in " + walk.state();
}

TEST(Protocol, allows_what_a_run_without_faults_does) {
  EXPECT_EQ(complaint(Protocol::kSave, save_of_leader()), "");
  EXPECT_EQ(complaint(Protocol::kSave, kSaveOfMember), "");
  EXPECT_EQ(complaint(Protocol::kLoad, kLoad), "");
  EXPECT_EQ(complaint(Protocol::kLoad, kDamagedLoad), "");
  EXPECT_EQ(complaint(Protocol::kRerun, {"start NOT_RUNNING_YET", "iteration NOT_RUNNING_YET",
                                         "save", "exit 16 WILL_RERUN_FROM_CHECKPOINT", "save"}),
            "");
  EXPECT_EQ(complaint(Protocol::kRerun,
                      {"load WILL_RERUN_FROM_CHECKPOINT", "exit 17 RERUNNING_FROM_CHECKPOINT"}),
            "");
}

TEST(Protocol, a_missing_swapped_or_repeated_event_is_contradicted) {
  const Events right = save_of_leader();
  for (std::size_t i = 0; i < right.size(); ++i) {
    SCOPED_TRACE(right[i]);
    Events changed = right;
    // Retention may end in the middle of any of its steps.
    const bool may_be_absent = right[i] == "-retention/remove";
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(complaint(Protocol::kSave, changed).empty(), may_be_absent) << "left out";
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), {right[i], right[i]});
    EXPECT_NE(complaint(Protocol::kSave, changed), "") << "repeated";
    if (i + 1 == right.size()) break;
    changed = right;
    std::swap(changed[i], changed[i + 1]);
    EXPECT_NE(complaint(Protocol::kSave, changed), "") << "swapped with the next";
  }
}

/// Moves both events of a step before those of an earlier step.
Events with_early(Events events, const std::string& step, const std::string& before) {
  const auto from = std::find(events.begin(), events.end(), "+commit/" + step);
  const Events moved(from, from + 2);
  events.erase(from, from + 2);
  const auto to = std::find(events.begin(), events.end(), "+commit/" + before);
  events.insert(to, moved.begin(), moved.end());
  return events;
}

TEST(Protocol, an_early_tracker_is_named_with_the_state_and_allowed_events) {
  EXPECT_EQ(complaint(Protocol::kSave, with_early(save_of_leader(), "tracker", "swap_in")),
            "the save was in the state 'commit/read_back done', in which '+commit/tracker' is not "
            "allowed; allowed: +commit/swap_in");
}

TEST(Protocol, optional_steps_may_be_left_out_and_the_others_not) {
  const std::vector<std::string> optional = {"payload", "common_state", "backend_info", "manifest",
                                             "tracker"};
  for (const auto* step :
       {"payload", "common_state", "metadata", "backend_info", "manifest", "sync_directory",
        "read_back", "swap_in", "sync_parent", "confirm", "tracker", "remove_replaced"}) {
    Events events = save_of_leader();
    const auto from = std::find(events.begin(), events.end(), "+commit/" + std::string(step));
    events.erase(from, from + 2);
    const bool may = std::find(optional.begin(), optional.end(), step) != optional.end();
    EXPECT_EQ(complaint(Protocol::kSave, events).empty(), may) << step;
  }
}

TEST(Protocol, errors_of_retention_do_not_fail_the_save) {
  Events events = save_of_leader();
  const auto failed = std::find(events.begin(), events.end(), "-retention/unmark");
  events.erase(failed, events.end());
  events.emplace_back("-retention");
  EXPECT_EQ(complaint(Protocol::kSave, events), "");
}

TEST(Protocol, a_walk_complains_once) {
  ProtocolWalk walk(Protocol::kLoad);
  EXPECT_THAT(walk.take("+read").value(), HasSubstr("the load was in the state 'new'"));
  EXPECT_FALSE(walk.take("+read"));
  EXPECT_FALSE(walk.is_complete());
}

TEST(Protocol, events_of_other_phases_are_ignored) {
  ProtocolWalk walk(Protocol::kLoad);
  EXPECT_FALSE(walk.take(TraceEvent{.phase = "signature"}));
  EXPECT_FALSE(walk.take(TraceEvent{.phase = "load", .detail = "a note"}));
  EXPECT_EQ(walk.state(), "new");
  EXPECT_FALSE(walk.take(TraceEvent{.phase = "locate", .moment = Moment::kBegin}));
  EXPECT_EQ(walk.state(), "locate");
}

TEST(Protocol, the_rerun_machine_is_saved_only_where_it_can_go_on) {
  EXPECT_THAT(
      complaint(Protocol::kRerun, {"start NOT_RUNNING_YET", "exit 17 RERUNNING_IN_PLACE", "save"}),
      HasSubstr("the rerun machine was in the state 'exit 17'"));
  EXPECT_NE(complaint(Protocol::kRerun, {"start RERUNNING_IN_PLACE"}), "");
  EXPECT_NE(complaint(Protocol::kRerun,
                      {"start NOT_RUNNING_YET", "iteration WILL_RERUN_FROM_CHECKPOINT"}),
            "");
}

TEST(Protocol, each_state_but_the_last_has_a_move) {
  for (const auto protocol : {Protocol::kSave, Protocol::kLoad}) {
    const std::string last = protocol == Protocol::kSave ? "retained" : "loaded";
    const auto moves = moves_of(protocol);
    std::set<std::string> states;
    for (const ProtocolMove& move : moves) states.insert({move.from, move.to});
    ASSERT_GT(states.size(), 5U);
    for (const auto& state : states) {
      const bool has = std::any_of(moves.begin(), moves.end(),
                                   [&](const ProtocolMove& move) { return move.from == state; });
      EXPECT_EQ(has, state != last) << state;
    }
  }
}

}  // namespace
}  // namespace reprise::protocol_test

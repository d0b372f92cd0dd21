// Tests every kind of fault at every point of a save and of a load, on two ranks with the real
// engine. Only three outcomes are allowed. The operation succeeds; or it fails with the same error
// on all ranks and the previous state remains; or all ranks refuse the content with a named reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "core/save/phases.hpp"
#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

constexpr std::int32_t kRanks = 2;

/// How the life with the fault ends: the processes end, or the machine loses power.
enum class Cut { kProcesses, kPower };

/// Returns true if this kind of fault falsely reports success. A save may miss such a fault, but
/// the next load must detect it.
bool lies(FaultKind kind) {
  switch (kind) {
    case FaultKind::kShortWrite:
    case FaultKind::kFlipWrite:
    case FaultKind::kLostSync:
    case FaultKind::kLostRename:
    case FaultKind::kFleetingRename:
      return true;
    default:
      return false;
  }
}

class Outcomes {
 public:
  /// Number of cases with each kind of fault and each outcome.
  std::map<std::string, std::map<std::string, int>> counts;
  int cases = 0;

  void count(FaultKind kind, const std::string& outcome) {
    ++counts[std::string(name_of(kind))][outcome];
    ++cases;
  }
  void print(const std::string& title) const {
    std::cout << title << ": " << cases << " cases\n";
    for (const auto& [kind, outcomes] : counts) {
      std::cout << "  " << kind << ":";
      for (const auto& [outcome, times] : outcomes) std::cout << "  " << outcome << " " << times;
      std::cout << "\n";
    }
  }
};

/// Requires that each rank ends as the fault plans, and that the surviving ranks either all succeed
/// or all have the same error. Returns the code of that error.
std::optional<Code> common_end(const LifeEnd& life, const FaultSpec& fault) {
  EXPECT_FALSE(life.hung) << life.verdict;
  std::optional<Code> code;
  bool one_succeeded = false;
  bool one_failed = false;
  for (std::size_t r = 0; r < life.ranks.size(); ++r) {
    const LifeEnd::Rank& rank = life.ranks[r];
    EXPECT_NE(rank.end, RankEnd::kDefect) << rank.message;
    if (rank.end == RankEnd::kKilled) {
      EXPECT_TRUE(ends_life(fault.kind) && life.faults[0].fired);
      EXPECT_EQ(static_cast<std::int32_t>(r), fault.place.rank.value);
      continue;
    }
    one_succeeded = one_succeeded || !rank.error;
    one_failed = one_failed || rank.error;
    if (!rank.error) continue;
    EXPECT_NE(rank.error->code(), Code::kInternal) << rank.error->what();
    if (code) {
      EXPECT_EQ(*code, rank.error->code()) << rank.error->what();
    }
    code = rank.error->code();
  }
  EXPECT_FALSE(one_succeeded && one_failed) << "a split";
  return code;
}

/// Loads the newest checkpoint. Returns its step or the code of the error, which must be the same
/// on all ranks.
std::string loaded(SimStore& store, std::int32_t ranks = kRanks) {
  const LifeEnd life = load_newest(store, {.ranks = ranks});
  const auto code = common_end(life, {});
  if (code) return std::string(name_of(*code));
  EXPECT_TRUE(life.ranks[0].step) << "the load returned wrong bytes without an error";
  for (const auto& rank : life.ranks) EXPECT_EQ(rank.step, life.ranks[0].step);
  return "step " + std::to_string(life.ranks[0].step.value_or(-1));
}

void end(SimStore& store, Cut cut) {
  if (cut == Cut::kPower) {
    store.crash();
  } else {
    store.sync_all();
  }
}

/// Saves step 1, saves step 2 with this fault, and then loads. Returns false if the save never
/// reached the call at which the fault takes effect.
bool try_save(const FaultSpec& fault, Cut cut, Outcomes& outcomes) {
  SimStore store;
  save_step(1, store);
  store.crash();
  const LifeEnd life = save_step(2, store, {.faults = {fault}});
  const FaultState& state = life.faults[0];
  SCOPED_TRACE(to_string(fault) + (cut == Cut::kPower ? ", power cut: " : ": ") + state.where);
  EXPECT_TRUE(state.armed);
  EXPECT_TRUE(state.reached || !state.fired);
  const auto code = common_end(life, fault);
  if (!state.fired) {
    EXPECT_FALSE(code);
    return false;
  }
  const bool all_dead_or_failed =
      code || std::all_of(life.ranks.begin(), life.ranks.end(),
                          [](const LifeEnd::Rank& rank) { return rank.end == RankEnd::kKilled; });
  end(store, cut);
  const std::string found = loaded(store);
  const bool whole = found == "step 1" || found == "step 2";
  if (all_dead_or_failed) {
    EXPECT_TRUE(whole) << found;
  } else if (!lies(fault.kind)) {
    EXPECT_EQ(found, "step 2");
  }
  outcomes.count(fault.kind, (code ? std::string(name_of(*code)) : "saved") + ", " + found);
  // A save of the next step must succeed despite the leftovers.
  const LifeEnd next = save_step(3, store);
  EXPECT_FALSE(common_end(next, {}));
  store.crash();
  EXPECT_EQ(loaded(store), "step 3");
  return true;
}

bool try_load(const FaultSpec& fault, Outcomes& outcomes) {
  SimStore store;
  save_step(1, store);
  save_step(2, store);
  store.crash();
  const LifeEnd life = load_newest(store, {.faults = {fault}});
  const FaultState& state = life.faults[0];
  SCOPED_TRACE(to_string(fault) + " in a load: " + state.where);
  const auto code = common_end(life, fault);
  if (!state.fired) {
    EXPECT_FALSE(code);
    return false;
  }
  for (const auto& rank : life.ranks) {
    if (rank.end != RankEnd::kReturned) continue;
    EXPECT_EQ(rank.step, 2) << "the load returned wrong bytes without an error";
  }
  store.crash();
  EXPECT_EQ(loaded(store), "step 2") << "a load changed the checkpoint";
  outcomes.count(fault.kind, code ? std::string(name_of(*code)) : "loaded");
  return true;
}

constexpr FaultKind kSaveKinds[] = {
    FaultKind::kCrash,      FaultKind::kWriteError,         FaultKind::kNoSpace,
    FaultKind::kShortWrite, FaultKind::kTornWrite,          FaultKind::kFlipWrite,
    FaultKind::kSyncError,  FaultKind::kDirectorySyncError, FaultKind::kLostSync,
    FaultKind::kLostRename, FaultKind::kFleetingRename};
constexpr FaultKind kMeetingKinds[] = {FaultKind::kLate, FaultKind::kLost, FaultKind::kFails};
constexpr FaultKind kReadKinds[] = {FaultKind::kCrash, FaultKind::kReadError, FaultKind::kFlipRead};

/// Calls attempt(0), attempt(1), ... until one of the calls returns false. Returns how many
/// returned true.
template <class Attempt>
int each_place(const Attempt& attempt) {
  int places = 0;
  while (!testing::Test::HasFailure() && attempt(places)) ++places;
  return places;
}

TEST(FaultOutcomes, of_every_call_of_a_save) {
  Outcomes outcomes;
  for (const FaultKind kind : kSaveKinds) {
    for (std::int32_t rank = 0; rank < kRanks; ++rank) {
      for (const Cut cut : {Cut::kProcesses, Cut::kPower}) {
        const int places = each_place([&](int nth) {
          return try_save({.kind = kind,
                           .place = {.rank = {rank}, .nth = nth},
                           .bit = 7919U * static_cast<unsigned>(nth + 1)},
                          cut, outcomes);
        });
        const bool leader_alone = kind == FaultKind::kDirectorySyncError ||
                                  kind == FaultKind::kLostRename ||
                                  kind == FaultKind::kFleetingRename;
        EXPECT_GT(places, leader_alone && rank > 0 ? -1 : 0) << name_of(kind) << " " << rank;
      }
    }
  }
  outcomes.print("save, every call");
}

TEST(FaultOutcomes, of_every_collective_of_a_save_and_a_load) {
  Outcomes saves;
  Outcomes loads;
  for (const FaultKind kind : kMeetingKinds) {
    for (std::int32_t rank = 0; rank < kRanks; ++rank) {
      for (const std::uint64_t delay : {kDeadlineNs / 10 * 9, kDeadlineNs * 2}) {
        const auto spec = [&](int nth) {
          return FaultSpec{.kind = kind, .place = {.rank = {rank}, .nth = nth}, .delay_ns = delay};
        };
        EXPECT_GT(each_place([&](int nth) { return try_save(spec(nth), Cut::kPower, saves); }), 3);
        EXPECT_GT(each_place([&](int nth) { return try_load(spec(nth), loads); }), 3);
      }
    }
  }
  saves.print("save, every collective");
  loads.print("load, every collective");
}

TEST(FaultOutcomes, of_every_call_of_a_load) {
  Outcomes outcomes;
  for (const FaultKind kind : kReadKinds) {
    for (std::int32_t rank = 0; rank < kRanks; ++rank) {
      for (const std::uint64_t bit : {0U, 1237U, 40009U, 2468U, 91U}) {
        if (kind != FaultKind::kFlipRead && bit > 0) continue;
        const int places = each_place([&](int nth) {
          return try_load({.kind = kind, .place = {.rank = {rank}, .nth = nth}, .bit = bit},
                          outcomes);
        });
        EXPECT_GT(places, 0) << name_of(kind) << " " << rank;
      }
    }
  }
  outcomes.print("load, every call");
}

/// The phases and steps in the trace of a rank's save.
using Steps = std::set<std::pair<std::string, std::string>>;

Steps steps_of_save(std::int32_t rank) {
  SimStore store;
  World world({.world_size = kRanks}, store);
  const RunResult result = world.run([&](Ports& ports, GlobalRank own) {
    SmallState state(own, kRanks);
    state.become(1);
    SaveOptions options;
    options.directory = kRoot;
    options.step = 1;
    const auto group = ports.fabric.communicator(Group::world(kRanks));
    Save::begin(ports, group, state.leaves(), options).finish();
  });
  Steps steps;
  for (const auto& event : result.ranks[static_cast<std::size_t>(rank)].trace) {
    if (event.moment == Moment::kBegin) steps.emplace(event.phase, event.detail);
  }
  return steps;
}

TEST(FaultOutcomes, of_a_crash_before_during_and_after_every_phase_and_step) {
  Outcomes saves;
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    const Steps steps = steps_of_save(rank);
    for (const auto phase : phases_of_save()) {
      if (phase == phase::kRetention) continue;  // no save of this test requests retention
      EXPECT_TRUE(steps.contains({std::string(phase), ""})) << phase << " on rank " << rank;
    }
    for (const auto& begun : steps) {
      const auto& phase = begun.first;
      const auto& step = begun.second;
      for (const auto moment : {FaultMoment::kBefore, FaultMoment::kDuring, FaultMoment::kAfter}) {
        for (const Cut cut : {Cut::kProcesses, Cut::kPower}) {
          const int places = each_place([&](int nth) {
            return try_save(
                {.kind = FaultKind::kCrash,
                 .place =
                     {.rank = {rank}, .phase = phase, .step = step, .moment = moment, .nth = nth}},
                cut, saves);
          });
          const bool no_call = moment == FaultMoment::kDuring && (step == "manifest");
          if (!no_call) {
            EXPECT_GT(places, 0) << phase << "/" << step << " " << name_of(moment);
          }
        }
      }
    }
  }
  saves.print("save, crash at every phase and step");
  Outcomes loads;
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    for (const auto phase : phases_of_load()) {
      for (const auto moment : {FaultMoment::kBefore, FaultMoment::kDuring, FaultMoment::kAfter}) {
        const int places = each_place([&](int nth) {
          return try_load({.kind = FaultKind::kCrash,
                           .place = {.rank = {rank},
                                     .phase = std::string(phase),
                                     .moment = moment,
                                     .nth = nth}},
                          loads);
        });
        EXPECT_GT(places, 0) << phase << " " << name_of(moment) << " on rank " << rank;
      }
    }
  }
  loads.print("load, crash at every phase");
}

}  // namespace
}  // namespace reprise::sim

// Compares the rerun machine with an independent table (rerun_table) after every step. Whatever
// results the ranks see, the machine and the table must be in the same state, decide on the same
// next move, exit with the same code, and store the same data.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "core/base/check.hpp"
#include "core/base/codes.hpp"
#include "reprise/error.hpp"
#include "sim/job/rerun/rerun_machine.hpp"
#include "tests/sim/job/rerun_table.hpp"

namespace reprise::sim {
namespace {

using rerun_table::Blame;
using rerun_table::Kind;
using rerun_table::Mode;
using rerun_table::Move;
using rerun_table::Place;
using rerun_table::Saw;
using rerun_table::Sight;
using rerun_table::State;
using rerun_table::Stored;
using rerun_table::Tally;
using rerun_table::Verdict;
using rerun_table::Walk;
using rerun_table::Want;

// --- the terms of the machine and of the table --------------------------------------------------

RerunMode machine_mode(Mode mode) {
  return mode == Mode::kOff        ? RerunMode::kDisabled
         : mode == Mode::kValidate ? RerunMode::kValidateResults
                                   : RerunMode::kReportDeterminismStats;
}

int number(RerunState state) { return static_cast<int>(state); }
int number(State state) { return static_cast<int>(state); }

RerunDiagnosis machine_diagnosis(Blame blame) {
  switch (blame) {
    case Blame::kNone:
      return RerunDiagnosis::kNone;
    case Blame::kTransient:
      return RerunDiagnosis::kTransientError;
    case Blame::kPersistent:
      return RerunDiagnosis::kPersistentError;
    case Blame::kCorrect:
      return RerunDiagnosis::kCorrectResult;
  }
  return RerunDiagnosis::kNone;
}

/// Returns the worst diagnosis over all ranks. The order from worst to best is: persistent error,
/// transient error, correct result.
RerunDiagnosis gravest(const Walk& walk, std::size_t ranks) {
  for (const Blame blame : {Blame::kPersistent, Blame::kTransient, Blame::kCorrect}) {
    for (std::size_t r = 0; r < ranks; ++r) {
      if (walk.blame(r) == blame) return machine_diagnosis(blame);
    }
  }
  return RerunDiagnosis::kNone;
}

/// Returns a value that this rank rejects: NaN on odd ranks, and on even ranks a number that
/// differs from rank to rank.
double bad_value(std::size_t rank) {
  return rank % 2 == 1 ? std::numeric_limits<double>::quiet_NaN()
                       : 100.0 + static_cast<double>(rank);
}

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

bool same_context(const FaultContext& a, const FaultContext& b) {
  const bool same_result = a.initial_result.has_value() == b.initial_result.has_value() &&
                           (!a.initial_result || same_bits(*a.initial_result, *b.initial_result));
  const auto same_flag = [&](Vote vote) { return a.votes.has(vote) == b.votes.has(vote); };
  return same_result && a.failed == b.failed && a.device == b.device && same_flag(Vote::kRerun) &&
         same_flag(Vote::kCheckpoint) && same_flag(Vote::kRestartAgain) &&
         same_flag(Vote::kContinue);
}

// --- all choices --------------------------------------------------------------------------------

/// Runs a story repeatedly, until every possible sequence of its choices has been tried once.
class Choices {
 public:
  std::size_t pick(std::size_t among) {
    if (at_ == made_.size()) made_.push_back({among, 0});
    return made_[at_++].chosen;
  }
  bool yes() { return pick(2) == 1; }
  bool next() {
    at_ = 0;
    while (!made_.empty() && made_.back().chosen + 1 == made_.back().among) made_.pop_back();
    if (made_.empty()) return false;
    ++made_.back().chosen;
    return true;
  }
  std::string text() const {
    std::string out;
    for (const auto& choice : made_) out += std::to_string(choice.chosen) + ' ';
    return out;
  }

 private:
  struct Choice {
    std::size_t among;
    std::size_t chosen;
  };
  std::vector<Choice> made_;
  std::size_t at_ = 0;
};

// --- machine and table, side by side ------------------------------------------------------------

struct Account {
  Tally tally;
  std::int64_t stories = 0;
  std::int64_t comparisons = 0;  ///< number of values compared between machine and table
  std::int64_t crashes = 0;      ///< number of crashes; each is followed by a restart
  std::size_t last_edge = 0;     ///< the latest edge at which a story crashed
  std::vector<std::string> differences;
};

/// The data that a save stored.
struct OnDisk {
  Stored kind = Stored::kNothing;
  Walk walk;  ///< the walk when it was saved
  Value common;
  std::vector<Value> objects;
  std::vector<FaultContext> faults;
  std::vector<int> devices;  ///< the devices used when it was saved
  Layout layout;
  std::int64_t iteration = 0;
};

struct Crash {};

class Lockstep {
 public:
  Lockstep(Mode mode, std::size_t ranks, const RerunPolicy& policy, Account& account)
      : account_(account),
        policy_(policy),
        walk_(mode, ranks, account.tally),
        disk_{.walk = walk_,
              .common = {},
              .objects = {},
              .faults = {},
              .devices = std::vector<int>(ranks),
              .layout = {}} {
    layout_.dp = static_cast<std::int32_t>(ranks);
    devices_.resize(ranks);
    start(mode);
  }

  const Walk& walk() const { return walk_; }
  std::size_t ranks() const { return machines_.size(); }
  bool suspect(std::size_t rank) const { return walk_.suspect(rank); }

  /// Makes the process die after `edges` more edges. An edge is a point at which a crash is
  /// possible: the end of a step, or a point within a save.
  void die_after(std::size_t edges) { edges_left_ = dies_after_ = edges; }

  void begin() {
    const Verdict expected = walk_.ask();
    CHECK(expected.move == Move::kRun);
    for (auto& machine : machines_) machine.begin(completed_ + 1);
    compare();
    edge();
  }

  /// Lets this rank validate three results in one pass: the result under test, another one before
  /// it, and another one after it. Only the result under test is ever run again. The result before
  /// it is always accepted. The result after it is rejected only if the result under test is
  /// rejected.
  void see(std::size_t rank, const Sight& sight) {
    auto& machine = machines_[rank];
    const auto lines = machine.log().size();
    const double beside = 1.0 + 0.125 * number(walk_.state());
    const double value = sight.saw == Saw::kAccepted ? 2.0
                         : sight.saw == Saw::kOther  ? 7.0
                                                     : bad_value(rank);
    const bool rejected = sight.saw == Saw::kRejected || sight.saw == Saw::kSame;
    machine.validate({.value = beside, .rejected = false, .message = "before", .fatal = true});
    machine.validate({.value = value,
                      .rejected = rejected,
                      .message = "result",
                      .fatal = sight.kind == Kind::kFatal});
    const bool second = sight.saw == Saw::kRejected && walk_.mode() == Mode::kValidate;
    machine.validate({.value = beside, .rejected = second, .message = "result", .fatal = true});
    const std::string status = walk_.see(rank, sight);
    const std::size_t more = machine.log().size() - lines;
    if (more != (status.empty() ? 0U : 1U)) {
      differ("rank " + std::to_string(rank) + " wrote " + std::to_string(more) + " lines, not '" +
             status + "'");
    } else if (more == 1 &&
               machine.log().back().find("status=" + status + " ") == std::string::npos) {
      differ("the line " + machine.log().back() + " is not of " + status);
    }
    compare_rank(rank);
    edge();
  }

  /// Ends a pass for all ranks at once, and compares the state of each rank with the table.
  Verdict end() {
    RerunVotes world;
    for (const auto& machine : machines_) world = world | machine.votes();
    const Verdict expected = walk_.ask();
    for (std::size_t r = 0; r < ranks(); ++r) {
      const RunEnd end = machines_[r].end_run(world);
      Verdict got{.state = static_cast<State>(number(machines_[r].state())),
                  .move = Move::kRun,
                  .put_back = end.rewind};
      if (!end.again) {
        const auto exit = machines_[r].conclude();
        got.state = static_cast<State>(number(machines_[r].state()));
        got.move = exit ? Move::kLeave : Move::kUpdate;
        if (exit) {
          got.code = exit->code;
          got.save = exit->save;
          // A rank that exits in order to restart on another device has no diagnosis yet.
          const auto known =
              exit->code == kExitAfterDiagnosis ? gravest(walk_, ranks()) : RerunDiagnosis::kNone;
          if (exit->diagnosis != known) {
            differ("rank " + std::to_string(r) + " leaves with " +
                   std::string(name_of(exit->diagnosis)));
          }
          if (exit->why.empty()) differ("it leaves without a word");
        }
      }
      if (!(got == expected)) {
        std::ostringstream text;
        text << "rank " << r << ": " << got << "; the table: " << expected;
        differ(text.str());
      }
    }
    if (expected.move == Move::kUpdate) ++completed_;
    compare();
    edge();
    return expected;
  }

  /// Simulates the job's save. Depending on the machine's state, stores the common part once and
  /// one object for each rank, or stores nothing.
  void save() {
    disk_ = {.kind = walk_.stored(),
             .walk = walk_,
             .common = Dict{},
             .objects = {},
             .faults = {},
             .devices = devices_,
             .layout = layout_,
             .iteration = completed_};
    if (disk_.kind != Stored::kNothing) {
      disk_.common = Dict{{"rerun_state_machine", encode(machines_.front().snapshot())}};
      for (const auto& machine : machines_) {
        disk_.objects.push_back(machine.encode_object({data()}));
        disk_.faults.push_back(machine.fault());
      }
    }
    edge();
  }

  /// Starts a new process on these devices; state that was not stored is lost.
  void restart(Mode mode, const std::vector<Place>& places, const Layout& layout, bool crashed) {
    const bool same = layout == disk_.layout;
    walk_ = Walk::restarted(disk_.walk, crashed ? nullptr : &walk_, mode, disk_.kind, same);
    for (std::size_t r = 0; r < ranks(); ++r) {
      if (places[r] == Place::kElsewhere) devices_[r] = ++last_device_;
      if (places[r] == Place::kThere) devices_[r] = disk_.devices[r];
    }
    layout_ = layout;
    completed_ = disk_.iteration;
    start(mode);
    load(same);
    compare();
  }
  void restart(const std::vector<Place>& places) { restart(walk_.mode(), places, layout_, false); }

  void restart_after_crash() {
    ++account_.crashes;
    account_.last_edge = std::max(account_.last_edge, dies_after_);
    edges_left_.reset();
    restart(walk_.mode(), std::vector<Place>(ranks(), Place::kElsewhere), layout_, true);
  }

  const Layout& layout() const { return layout_; }
  void differ(const std::string& what) { account_.differences.push_back(what); }

 private:
  void edge() {
    if (!edges_left_) return;
    if (*edges_left_ == 0) throw Crash{};
    --*edges_left_;
  }

  void start(Mode mode) {
    machines_.clear();
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      machines_.emplace_back(
          RerunSetup{.mode = machine_mode(mode),
                     .place = {static_cast<std::int32_t>(r)},
                     .rank = {static_cast<std::int32_t>(r) + 2},
                     .device = "node" + std::to_string(r) + ":" + std::to_string(devices_[r])},
          policy_);
    }
  }

  void load(bool same_layout) {
    if (disk_.kind == Stored::kNothing) return;
    const auto snapshot = rerun_of(disk_.common);
    if (!snapshot) return differ("the common part was stored and is not there");
    for (std::size_t r = 0; r < ranks(); ++r) {
      const auto decided = policy_.restored(
          {snapshot->mode, snapshot->state, snapshot->iteration, {{.layout = disk_.layout}}},
          {machines_[r].mode(), {{.layout = layout_}}});
      const bool pending = disk_.kind == Stored::kContext;
      const bool taken = walk_.state() == State::kPending;
      if (decided.restore != taken) differ("restored, or not, against the table");
      if (!taken && decided.note.empty() == pending) differ("told, or not, against the table");
      compare_data(r, decided.restore);
      if (!decided.restore) continue;
      machines_[r].restore(*snapshot, disk_.objects[r]);
      if (!same_context(machines_[r].fault(), disk_.faults[r])) {
        differ("rank " + std::to_string(r) + " came back with another fault");
      }
      if (machines_[r].iteration() != snapshot->iteration) differ("another iteration came back");
    }
    CHECK(same_layout || walk_.state() == State::kIdle);
  }

  void compare() {
    for (std::size_t r = 0; r < ranks(); ++r) compare_rank(r);
  }

  void compare_rank(std::size_t rank) {
    ++account_.comparisons;
    const auto& machine = machines_[rank];
    const auto wants = [&](Vote vote, Want want) {
      if (machine.votes().has(vote) != walk_.wants(rank, want)) {
        differ("rank " + std::to_string(rank) + " in state " +
               std::string(name_of(machine.state())) + " wants otherwise (" +
               std::to_string(static_cast<int>(want)) + ")");
      }
    };
    if (number(machine.state()) != number(walk_.state())) differ("another state");
    if (machine.mode() != machine_mode(walk_.mode())) differ("another mode");
    if (walk_.state() == State::kFirstPass) {
      wants(Vote::kRerun, Want::kRerun);
      wants(Vote::kFail, Want::kStop);
    }
    if (walk_.state() == State::kInPlace) wants(Vote::kCheckpoint, Want::kCheckpoint);
    if (walk_.state() == State::kFromDisk) wants(Vote::kRestartAgain, Want::kRestart);
    if (walk_.state() == State::kInPlace || walk_.state() == State::kFromDisk) {
      wants(Vote::kContinue, Want::kContinue);
    }
    if (machine.diagnosis() != machine_diagnosis(walk_.blame(rank))) {
      differ("rank " + std::to_string(rank) + " says " + std::string(name_of(machine.diagnosis())));
    }
    compare_stored(machine);
  }

  /// Compares what the machine and the table would store if the job saved at this point.
  void compare_stored(const RerunMachine& machine) {
    const Stored expected = walk_.stored();
    const bool emitted =
        policy_.emitted(machine.mode(), machine.state(), CheckpointFormat::kTorchDist);
    if (emitted != (expected != Stored::kNothing)) differ("emits, or not, against the table");
    if (policy_.emitted(machine.mode(), machine.state(), CheckpointFormat::kTorch))
      differ("emits in format torch");
    if (expected == Stored::kNothing) return;
    try {
      const auto snapshot = machine.snapshot();
      if (expected == Stored::kForbidden) differ("a state is stored that can't be resumed");
      if (number(snapshot.state) != number(walk_.state()) || snapshot.mode != machine.mode() ||
          snapshot.iteration != machine.iteration()) {
        differ("stores another state than its own");
      }
    } catch (const Error& error) {
      if (error.code() != passed_on::kIllegalStatePersisted || expected != Stored::kForbidden) {
        differ(std::string("can't be stored: ") + error.what());
      }
    }
    if (expected == Stored::kSentinel) compare_sentinel(machine);
  }

  /// Requires that a save between iterations stores the machine as idle and without a batch, even
  /// if the last iteration was rejected.
  void compare_sentinel(const RerunMachine& machine) {
    static const Value idle =
        Dict{{"rerun_requested", false},
             {"checkpoint_requested", false},
             {"restart_again_requested", false},
             {"continue_requested", false},
             {"error_injector_checkpoint",
              Dict{{"error_injection_rate", 0},
                   {"error_injection_type", encode(RerunDiagnosis::kTransientError)},
                   {"injected_error_type", NoneType{}}}},
             {"failed_validation_call", NoneType{}},
             {"initial_result", NoneType{}},
             {"suspicious_node", NoneType{}},
             {"suspicious_device", NoneType{}},
             {"data_iterator_checkpoints", NoneType{}},
             {"large_value_counts", Dict{}},
             {"max_values", Dict{}}};
    if (!(machine.encode_object({data()}) == idle)) differ("a sentinel is not idle");
  }

  /// Returns the data position of a rank in the current iteration; between iterations, in the last
  /// one.
  DataPosition data() const {
    return {.cursor = kBatch * (completed_ + 1), .kept = {{kBatch * completed_, kBatch}}};
  }

  /// Requires that the restored data position uses either the stored batches or the cursor, never
  /// both.
  void compare_data(std::size_t rank, bool taken) {
    const std::int64_t consumed = kBatch * disk_.iteration;
    const DataPosition expected = taken
                                      ? DataPosition{consumed + kBatch, {{consumed, kBatch}}, true}
                                      : DataPosition{consumed, {}, false};
    const auto found = policy_.data(
        {.restored = taken, .object = &disk_.objects[rank], .consumed_samples = consumed});
    if (!(found == expected)) differ("batches of another place");
  }

  static constexpr std::int64_t kBatch = 8;  ///< number of samples in an iteration

  Account& account_;
  RerunPolicy policy_;
  Walk walk_;
  OnDisk disk_;
  Layout layout_;
  std::vector<int> devices_;
  int last_device_ = 0;
  std::vector<RerunMachine> machines_;
  std::int64_t completed_ = 0;
  std::optional<std::size_t> edges_left_;
  std::size_t dies_after_ = 0;
};

// --- stories ------------------------------------------------------------------------------------

using Story = void (*)(Choices&, Lockstep&);

void quiet_iteration(Lockstep& world) {
  world.begin();
  for (;;) {
    for (std::size_t r = 0; r < world.ranks(); ++r) world.see(r, {});
    if (world.end().move != Move::kRun) return;
  }
}

Account all_stories(Mode mode, std::size_t ranks, Story story, const RerunPolicy& policy = {}) {
  Account account;
  Choices choices;
  do {
    const auto before = account.differences.size();
    try {
      Lockstep world(mode, ranks, policy, account);
      story(choices, world);
    } catch (const std::exception& error) {
      account.differences.push_back(error.what());
    }
    ++account.stories;
    if (account.differences.size() > before) {
      account.differences[before] += "; choices " + choices.text();
    }
    if (account.differences.size() > 20) break;
  } while (choices.next());
  return account;
}

void expect_same(const Account& account) {
  EXPECT_TRUE(account.differences.empty())
      << account.differences.size()
      << " differences: " << testing::PrintToString(account.differences);
}

/// Any subset of the ranks rejects a result. Each result is fatal or not, and recurs or does not.
/// After a restart, each suspicious rank is on its old device or on another one.
void one_rejected_iteration(Choices& choices, Lockstep& world) {
  quiet_iteration(world);
  world.save();
  world.begin();
  std::vector<Sight> again(world.ranks());
  for (std::size_t r = 0; r < world.ranks(); ++r) {
    const auto what = choices.pick(5);
    const Kind kind = what >= 3 ? Kind::kMild : Kind::kFatal;
    if (what > 0) again[r] = {what % 2 == 1 ? Saw::kSame : Saw::kOther, Place::kThere, kind};
    world.see(r, {what > 0 ? Saw::kRejected : Saw::kAccepted, Place::kThere, kind});
  }
  Verdict verdict = world.end();
  if (verdict.move != Move::kRun) return quiet_iteration(world);
  for (std::size_t r = 0; r < world.ranks(); ++r) world.see(r, again[r]);
  verdict = world.end();
  if (verdict.move == Move::kUpdate) return quiet_iteration(world);
  if (!verdict.save) return;
  world.save();
  std::vector<Place> places(world.ranks(), Place::kElsewhere);
  for (std::size_t r = 0; r < world.ranks(); ++r) {
    if (world.suspect(r) && choices.yes()) places[r] = Place::kThere;
  }
  world.restart(places);
  world.begin();
  for (std::size_t r = 0; r < world.ranks(); ++r) {
    Sight sight;
    if (world.suspect(r)) {
      sight = {choices.yes() ? Saw::kSame : Saw::kOther, places[r], Kind::kFatal};
      if (world.ranks() == 2 && choices.yes())
        sight.kind = Kind::kMild;  // not all kinds, since there would be too many stories
    }
    world.see(r, sight);
  }
  world.end();
}

/// Some ranks reject a result. After that, the job restarts up to three times. In each of these
/// restarts, either all of these ranks are on their old devices, or only the first of them is, or
/// none is. In one more restart, all ranks are on other devices.
void restarts_in_the_same_place(Choices& choices, Lockstep& world) {
  quiet_iteration(world);
  world.begin();
  std::vector<std::size_t> suspects;
  for (std::size_t r = 0; r < world.ranks(); ++r) {
    if (choices.yes()) suspects.push_back(r);
    world.see(r, {suspects.empty() || suspects.back() != r ? Saw::kAccepted : Saw::kRejected});
  }
  if (world.end().move != Move::kRun) return;
  for (std::size_t r = 0; r < world.ranks(); ++r) world.see(r, {Saw::kSame});
  world.end();
  world.save();
  for (auto times = choices.pick(4); times > 0; --times) {
    std::vector<Place> places(world.ranks(), Place::kElsewhere);
    const auto stay = choices.pick(3);
    for (std::size_t s = 0; s < suspects.size(); ++s) {
      if (s < stay || stay == 2) places[suspects[s]] = Place::kThere;
    }
    world.restart(places);
    world.begin();
    for (std::size_t r = 0; r < world.ranks(); ++r) world.see(r, {Saw::kSame, places[r]});
    world.end();
  }
  world.restart(std::vector<Place>(world.ranks(), Place::kElsewhere));
  world.begin();
  for (std::size_t r = 0; r < world.ranks(); ++r) {
    const bool same = world.suspect(r) && choices.yes();
    world.see(r, {same ? Saw::kSame : Saw::kOther, Place::kElsewhere});
  }
  world.end();
}

/// In each state of the machine, each rank may see any possible result, fatal or not, or no result
/// at all. There are other iterations and restarts in between.
void anything(Choices& choices, Lockstep& world) {
  const auto kind = [&] { return choices.yes() ? Kind::kMild : Kind::kFatal; };
  std::vector<Place> places(world.ranks(), Place::kElsewhere);
  for (int move = 0; move < 5; ++move) {
    world.begin();
    const bool blind = world.walk().mode() == Mode::kReport && choices.yes();
    Verdict verdict;
    do {
      const bool first = world.walk().state() == State::kFirstPass;
      for (std::size_t r = 0; r < world.ranks() && !blind; ++r) {
        Sight sight;
        if (first && choices.yes()) {
          // The kind of a first result matters only if the mode is off. In the other modes, only
          // the kind of the re-run's result matters.
          const bool off = world.walk().mode() == Mode::kOff;
          sight = {Saw::kRejected, places[r], off ? kind() : Kind::kFatal};
        }
        if (!first && world.suspect(r)) {
          sight = {choices.yes() ? Saw::kSame : Saw::kOther, places[r], kind()};
        }
        world.see(r, sight);
      }
      verdict = world.end();
    } while (verdict.move == Move::kRun);
    if (verdict.move == Move::kUpdate) continue;
    if (verdict.save) world.save();
    places.assign(world.ranks(), choices.yes() ? Place::kThere : Place::kElsewhere);
    world.restart(places);
  }
}

/// No story has more edges than this, so a crash can be placed at every edge, even the last.
constexpr std::size_t kEdges = 40;

/// The process dies at any edge. Then the job continues from whatever was stored before.
void crash_anywhere(Choices& choices, Lockstep& world) {
  world.die_after(choices.pick(kEdges));
  try {
    const bool saved = choices.yes();
    if (saved) world.save();
    one_rejected_iteration(choices, world);
    return;
  } catch (const Crash&) {
    world.restart_after_crash();
  }
  if (world.walk().state() != State::kPending) {
    quiet_iteration(world);
    quiet_iteration(world);
    return;
  }
  world.begin();
  for (std::size_t r = 0; r < world.ranks(); ++r) {
    world.see(r, {Saw::kSame, Place::kElsewhere, Kind::kFatal});
  }
  world.end();
}

/// A job loads a checkpoint. The job and the checkpoint can have any mode, and their layouts can
/// differ. The checkpoint is idle or records a fault.
void loads_of_all_kinds(Choices& choices, Lockstep& world) {
  static const std::vector<Layout> layouts = [] {
    const auto with = [](auto change) {
      Layout layout;
      layout.dp = 2;
      change(layout);
      return layout;
    };
    return std::vector<Layout>{
        with([](Layout&) {}),
        with([](Layout& l) { l.dp = 4; }),
        with([](Layout& l) { l.dp = 1, l.tp = 2; }),
        with([](Layout& l) { l.dp = 1, l.pp = 2; }),
        with([](Layout& l) { l.dp = 1, l.cp = 2; }),
        with([](Layout& l) { l.ep = 2; }),
        with([](Layout& l) { l.order = "dp-tp-cp-ep-pp"; }),
    };
  }();
  quiet_iteration(world);
  if (world.walk().mode() == Mode::kValidate && choices.yes()) {
    world.begin();
    world.see(0, {});
    world.see(1, {Saw::kRejected});
    world.end();
    world.see(0, {});
    world.see(1, {Saw::kSame});
    world.end();
  }
  world.save();
  const auto mode = static_cast<Mode>(choices.pick(3));
  const auto& layout = layouts[choices.pick(layouts.size())];
  world.restart(mode, {Place::kElsewhere, Place::kElsewhere}, layout, false);
  if (world.walk().state() == State::kIdle) quiet_iteration(world);
}

// --- what must hold -----------------------------------------------------------------------------

TEST(RerunLockstep, AnySubsetOfFourRanksRejectsAndEachRankIsTheFaultyOne) {
  const auto account = all_stories(Mode::kValidate, 4, one_rejected_iteration);
  expect_same(account);
  // Each of the 4 ranks sees one of 5 results: accepted, or rejected as fatal or mild, which recurs
  // or does not recur. This gives 5^4 = 625 stories. A story ends in a fault save if no result is
  // mild (3^4 = 81 stories) and at least one result recurs (all but 2^4 = 16 of the 81). Each of
  // these stories continues after the restart. The number of continuations is a product: 4 for each
  // rank whose result recurred, and 2 for each rank whose rejected result did not recur.
  EXPECT_EQ(account.stories, 625 - (81 - 16) + (7 * 7 * 7 * 7 - 3 * 3 * 3 * 3));
  EXPECT_GT(account.comparisons, 100'000);
}

TEST(RerunLockstep, RestartsOnTheSameDeviceUpToThreeTimes) {
  const auto account = all_stories(Mode::kValidate, 4, restarts_in_the_same_place);
  expect_same(account);
  // In 1 story, no rank rejects. In all other stories, a non-empty subset of the ranks rejects.
  // These stories have 0 to 3 restarts with 3 choices each. At their end, each rank that rejected
  // has 2 choices.
  EXPECT_EQ(account.stories, 1 + (1 + 3 + 9 + 27) * (81 - 1));
}

TEST(RerunLockstep, EveryTransitionAndEveryPairOfConsecutiveOnes) {
  Tally all;
  for (const Mode mode : {Mode::kOff, Mode::kValidate, Mode::kReport}) {
    const auto account = all_stories(mode, 1, anything);
    expect_same(account);
    all.rank_rows.insert(account.tally.rank_rows.begin(), account.tally.rank_rows.end());
    all.world_rows.insert(account.tally.world_rows.begin(), account.tally.world_rows.end());
    all.pairs.insert(account.tally.pairs.begin(), account.tally.pairs.end());
  }
  EXPECT_EQ(all.rank_rows.size(), rerun_table::rank_rows().size());
  EXPECT_EQ(all.world_rows.size(), rerun_table::world_rows().size());
  EXPECT_EQ(all.pairs, rerun_table::possible_pairs());
  EXPECT_EQ(all.pairs.size(), 25U);
}

TEST(RerunLockstep, ACrashOnEachEdgeLeavesWhatTheTableSays) {
  std::vector<std::int64_t> crashes;
  for (const Mode mode : {Mode::kOff, Mode::kValidate, Mode::kReport}) {
    const auto account = all_stories(mode, 2, crash_anywhere);
    expect_same(account);
    EXPECT_LT(account.last_edge, kEdges - 1) << "stories have edges without a crash";
    crashes.push_back(account.crashes);
  }
  EXPECT_EQ(crashes, (std::vector<std::int64_t>{323, 985, 629}));
}

TEST(RerunLockstep, WhatAJobOfAnyModeMakesOfAnyCheckpointUnderAnyLayout) {
  std::int64_t stories = 0;
  for (const Mode mode : {Mode::kOff, Mode::kValidate, Mode::kReport}) {
    const auto account = all_stories(mode, 2, loads_of_all_kinds);
    expect_same(account);
    stories += account.stories;
  }
  EXPECT_EQ(stories, 4 * 3 * 7);
}

TEST(RerunLockstep, TheDecisionsAtTheEndOfARunForAllVotesThatRanksMayCast) {
  const std::array words = {
      std::pair{Vote::kRerun, Want::kRerun}, std::pair{Vote::kContinue, Want::kContinue},
      std::pair{Vote::kCheckpoint, Want::kCheckpoint},
      std::pair{Vote::kRestartAgain, Want::kRestart}, std::pair{Vote::kFail, Want::kStop}};
  int checked = 0;
  for (const auto& row : rerun_table::world_rows()) {
    // A pass never ends in these states.
    if (row.state == State::kIdle || row.state == State::kPending) continue;
    for (unsigned bits = 0; bits < 32; ++bits) {
      RerunVotes votes;
      std::set<Want> wanted;
      for (std::size_t w = 0; w < words.size(); ++w) {
        if ((bits >> w & 1U) == 0) continue;
        votes.add(words[w].first);
        wanted.insert(words[w].second);
      }
      if (!row.holds(row.mode, row.state, wanted)) continue;
      const auto mode = machine_mode(row.mode);
      const auto end = end_of_run(static_cast<RerunState>(number(row.state)), mode, votes);
      const auto leaving = leave_or_go_on(end.next, mode, votes);
      ++checked;
      EXPECT_EQ(number(end.next), number(row.next));
      EXPECT_EQ(end.again, row.move == Move::kRun);
      EXPECT_EQ(end.rewind, row.put_back);
      if (end.again) continue;
      EXPECT_EQ(leaving.has_value(), row.move == Move::kLeave);
      if (!leaving) continue;
      EXPECT_EQ(leaving->code, row.code);
      EXPECT_EQ(leaving->save, row.save);
    }
  }
  EXPECT_EQ(checked, 6 * 32) << "every state in which a run can end, with all votes";
}

/// Tests machines that make one wrong decision each. In at least one story, each machine must
/// differ from the table.
TEST(RerunLockstep, SeesEachDecisionThatIsMadeWrongly) {
  using S = RerunState;
  struct Broken {
    std::string_view what;
    void (*spoil)(RerunPolicy&);
  };
  const std::vector<Broken> machines = {
      {"a checkpoint beats going on",
       [](RerunPolicy& p) {
         p.end = [](S s, RerunMode m, RerunVotes v) {
           if (s != S::kRerunningInPlace || !v.has(Vote::kCheckpoint)) return end_of_run(s, m, v);
           return RunEnd{.next = S::kWillRerunFromCheckpoint, .rewind = true};
         };
       }},
      {"going on beats another restart",
       [](RerunPolicy& p) {
         p.end = [](S s, RerunMode m, RerunVotes v) {
           if (s != S::kRerunningFromCheckpoint || !v.has(Vote::kContinue))
             return end_of_run(s, m, v);
           return RunEnd{};
         };
       }},
      {"no rerun in place",
       [](RerunPolicy& p) {
         p.end = [](S s, RerunMode m, RerunVotes v) {
           if (s == S::kInitialRun && v.has(Vote::kRerun)) {
             return RunEnd{.next = S::kWillRerunFromCheckpoint, .rewind = true};
           }
           return end_of_run(s, m, v);
         };
       }},
      {"streams are not put back",
       [](RerunPolicy& p) {
         p.end = [](S s, RerunMode m, RerunVotes v) {
           RunEnd end = end_of_run(s, m, v);
           end.rewind = false;
           return end;
         };
       }},
      {"what is not fatal stops, too",
       [](RerunPolicy& p) {
         p.judged = [](const Reached& r) {
           Reached fatal = r;
           fatal.fatal = true;
           return judge_again(fatal);
         };
       }},
      {"any device will do",
       [](RerunPolicy& p) {
         p.judged = [](const Reached& r) {
           Reached elsewhere = r;
           elsewhere.same_device = false;
           return judge_again(elsewhere);
         };
       }},
      {"every rerun has another result",
       [](RerunPolicy& p) {
         p.judged = [](const Reached& r) {
           Reached other = r;
           other.reproduced = false;
           return judge_again(other);
         };
       }},
      {"a save before 17",
       [](RerunPolicy& p) {
         p.leaving = [](S s, RerunMode m, RerunVotes v) {
           auto leaving = leave_or_go_on(s, m, v);
           if (leaving) leaving->save = true;
           return leaving;
         };
       }},
      {"no save before 16",
       [](RerunPolicy& p) {
         p.leaving = [](S s, RerunMode m, RerunVotes v) {
           auto leaving = leave_or_go_on(s, m, v);
           if (leaving) leaving->save = false;
           return leaving;
         };
       }},
      {"16 for 17",
       [](RerunPolicy& p) {
         p.leaving = [](S s, RerunMode m, RerunVotes v) {
           auto leaving = leave_or_go_on(s, m, v);
           if (leaving) leaving->code = kExitForRerun;
           return leaving;
         };
       }},
      {"goes on although it is fatal and the machine is off",
       [](RerunPolicy& p) {
         p.leaving = [](S s, RerunMode m, RerunVotes v) {
           return m == RerunMode::kDisabled ? std::nullopt : leave_or_go_on(s, m, v);
         };
       }},
      {"any state is stored", [](RerunPolicy& p) { p.persisted = [](S) { return true; }; }},
      {"a fault is not stored",
       [](RerunPolicy& p) { p.persisted = [](S s) { return s == S::kNotRunningYet; }; }},
      {"no sentinel",
       [](RerunPolicy& p) {
         p.emitted = [](RerunMode m, S s, CheckpointFormat format) {
           return s != S::kNotRunningYet && emits(m, s, format);
         };
       }},
      {"emits although it is off",
       [](RerunPolicy& p) { p.emitted = [](RerunMode, S, CheckpointFormat) { return true; }; }},
      {"an idle state is restored",
       [](RerunPolicy& p) {
         p.restored = [](const StoredRerun&, const OwnRerun&) {
           return Restoring{.restore = true};
         };
       }},
      {"nothing is restored",
       [](RerunPolicy& p) {
         p.restored = [](const StoredRerun&, const OwnRerun&) { return Restoring{}; };
       }},
      {"batches from the cursor although there are buffers",
       [](RerunPolicy& p) {
         p.data = [](const LoadedData& l) { return DataPosition{.cursor = l.consumed_samples}; };
       }},
      {"batches from the buffers and from the cursor",
       [](RerunPolicy& p) {
         p.data = [](const LoadedData& l) {
           DataPosition both = buffers_or_cursor(l);
           both.cursor = l.consumed_samples;
           return both;
         };
       }},
      {"another order of ranks is the same layout",
       [](RerunPolicy& p) {
         p.restored = [](const StoredRerun& stored, const OwnRerun& own) {
           StoredRerun same = stored;
           same.modules.front().layout.order = own.modules.front().layout.order;
           return restore_or_ignore(same, own);
         };
       }},
      {"another cp or ep is the same layout",
       [](RerunPolicy& p) {
         p.restored = [](const StoredRerun& stored, const OwnRerun& own) {
           StoredRerun same = stored;
           const Layout& a = stored.modules.front().layout;
           const Layout& b = own.modules.front().layout;
           if (a.tp == b.tp && a.pp == b.pp && a.dp * a.cp == b.dp * b.cp) {
             same.modules = own.modules;
           }
           return restore_or_ignore(same, own);
         };
       }},
  };
  for (const auto& machine : machines) {
    RerunPolicy policy;
    machine.spoil(policy);
    std::size_t differences = 0;
    for (const Mode mode : {Mode::kOff, Mode::kValidate}) {
      differences += all_stories(mode, 2, one_rejected_iteration, policy).differences.size();
      differences += all_stories(mode, 2, loads_of_all_kinds, policy).differences.size();
    }
    if (differences == 0) {
      differences += all_stories(Mode::kValidate, 1, anything, policy).differences.size();
    }
    EXPECT_GT(differences, 0U) << machine.what;
  }
}

}  // namespace
}  // namespace reprise::sim

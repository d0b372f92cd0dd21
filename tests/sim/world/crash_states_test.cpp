// Enumerates what a crash may leave. At each change that any rank makes to the store, every subset
// of the changes that were not synced is a state. A new job must load one committed checkpoint from
// it, the same on all ranks, and must be able to save.
//
// One and two ranks are swept in full. Three and four ranks are pruned: below a directory that is
// being written or removed either all unsynced changes survive or none, because no reader goes
// there. The full sweep shows that this loses no outcome.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/hash.hpp"
#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/save_seamed.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/mutants/protocol_steps.hpp"
#include "sim/world/copy_tree.hpp"
#include "sim/world/world.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/sim/world/mortal_ports.hpp"
#include "tests/sim/world/tiny_job.hpp"

namespace reprise::sim::crash_states_test {
namespace {

struct SaveOf {
  std::int64_t step;
  std::int64_t generation;
  std::optional<std::int32_t> keep = {};
};

/// The saves before the crash, and the save that a crash cuts off.
struct History {
  const char* name;
  std::vector<SaveOf> before;
  SaveOf last;
  std::set<std::int64_t> allowed;  ///< generations that may be loaded; 0 for no checkpoint at all
};

const std::vector<History>& histories() {
  static const std::vector<History> all = {
      {"the first save", {}, {1, 1}, {0, 1}},
      {"over the directory that the tracker names", {{1, 1}}, {1, 2}, {1, 2}},
      {"keep 1", {{1, 1}}, {2, 2, 1}, {1, 2}},
      {"keep 2 of four", {{1, 1}, {2, 2}, {3, 3}}, {4, 4, 2}, {3, 4}},
  };
  return all;
}

void save(const Ports& ports, const SaveOf& what, const SaveSeams& seams) {
  const TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), what.generation);
  SaveOptions options;
  options.directory = "run";
  options.step = what.step;
  options.keep = what.keep;
  begin_save(ports, all_ranks(ports), job.state, options, {}, seams).finish();
}

using Program = std::function<void(const Ports&)>;

/// Runs the program on all ranks. Throws the first error of a rank; INTERNAL for a failed check.
void run_on(SimStore& store, std::int32_t ranks, const Program& program) {
  World world({.seed = 5, .world_size = ranks}, store);
  const RunResult result = world.run([&](Ports& ports, GlobalRank) { program(ports); });
  for (const auto& rank : result.ranks) {
    if (rank.error) throw *rank.error;
    if (rank.end != RankEnd::kReturned) throw Error(Code::kInternal, rank.message);
  }
}

/// Goes through all sequences of answers to questions that may depend on the answers before.
class Decisions {
 public:
  bool decide() {
    if (at_ == taken_.size()) taken_.push_back(false);
    return taken_[at_++];
  }
  /// Goes to the next sequence. False if there is none left.
  bool advance() {
    at_ = 0;
    while (!taken_.empty() && taken_.back()) taken_.pop_back();
    if (taken_.empty()) return false;
    taken_.back() = true;
    return true;
  }

 private:
  std::vector<bool> taken_;
  std::size_t at_ = 0;
};

/// Which changes share one decision: those for which the function returns the same text. Changes
/// without a text are decided one by one.
using Together = std::optional<std::string> (*)(const UnsyncedChange&);

/// The blocks of one file share a decision. tests/sim/world/sim_store_test.cpp tests single blocks.
std::optional<std::string> each_change(const UnsyncedChange& change) {
  if (change.kind != UnsyncedChange::Kind::kBlock) return std::nullopt;
  return "bytes of " + change.path;
}

/// Returns the part of the path up to a directory that is being written or removed.
std::optional<std::string> hidden_directory(const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string above = path.substr(0, end);
    const auto name = aside_name(above.substr(above.rfind('/') + 1));
    if (name && (name->suffix == kSavingSuffix || name->suffix == kRemovingSuffix)) return above;
  }
  return std::nullopt;
}

std::optional<std::string> pruned(const UnsyncedChange& change) {
  const auto hidden = hidden_directory(change.path);
  return hidden ? hidden : each_change(change);
}

/// A pruning that is wrong: it also takes the changes in a visible checkpoint together.
std::optional<std::string> pruned_too_much(const UnsyncedChange& change) {
  return change.path.find("/iter_") == std::string::npos
             ? each_change(change)
             : std::optional(change.path.substr(0, change.path.find('/', 4)));
}

void add_tree(Store& store, const std::string& directory, Hasher& hasher) {
  for (const Entry& entry : store.list(directory)) {
    const std::string path = join_path(directory, entry.name);
    hasher.text(path);
    if (entry.directory) {
      add_tree(store, path, hasher);
    } else {
      hasher.bytes(read_all(store, path, 1U << 20U));
    }
  }
}

std::uint64_t fingerprint(Store& store) {
  Hasher hasher;
  add_tree(store, "", hasher);
  return hasher.digest();
}

/// True if a directory that was set aside is still there. If a crash takes the mark of such a
/// directory but not its files, nobody may remove it: it could be a user's.
bool has_leftovers(SimStore& store) {
  if (!store.stat("run")) return false;
  const auto entries = store.list("run");
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return aside_name(entry.name).has_value(); });
}

/// The states that a crash may leave: at each place, and the stores of all.
struct States {
  std::vector<std::pair<std::string, std::set<std::uint64_t>>> places;
  std::map<std::uint64_t, SimStore> stores;
  std::size_t visited = 0;           ///< states before equal ones were joined
  std::vector<std::string> exposed;  ///< unsynced changes in a directory as it became visible
};

class Sweep {
 public:
  Sweep(const History& history, std::int32_t ranks, Together together, const SaveSeams& seams = {},
        StoreCapabilities kind = {.exchange = true})
      : history_(history), ranks_(ranks), together_(together), seams_(seams), store_("sim:", kind) {
    for (const SaveOf& one : history.before) {
      run_on(store_, ranks, [&one](const Ports& ports) { save(ports, one, {}); });
    }
    store_.sync_all();
  }

  /// Runs the last save and collects the states before each change, and after the last.
  States states() {
    States found;
    run_on(store_, ranks_, [&](const Ports& ports) {
      MortalPorts mortal(ports, [&found, this](const MortalPlace& place) {
        if (place.what == "begins" || place.what == "ends") return Deed::kDone;
        collect(place.text(), found);
        if (place.what == "publish" || place.what == "replace") look_inside(place, found);
        return Deed::kDone;
      });
      save(mortal.ports(), history_.last, seams_);
    });
    collect("the end", found);
    return found;
  }

  /// Returns what a new job finds: the generation that it loads, or what is wrong.
  std::string outcome(SimStore& store) const {
    try {
      const std::int64_t now = generation_at(store, "run");
      if (!history_.allowed.contains(now)) return "loads generation " + std::to_string(now);
      for (const Generation& there : generations(store, "run")) {
        if (there.committed && generation_at(store, there.directory) <= 0) {
          return there.directory + " is a mix";
        }
      }
      run_on(store, ranks_, [](const Ports& ports) { save(ports, {9, 9, 1}, {}); });
      if (generation_at(store, "run") != 9) return "can't save any more";
      return "generation " + std::to_string(now);
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  void collect(const std::string& place, States& found) const {
    auto& here = found.places.emplace_back(place, std::set<std::uint64_t>()).second;
    Decisions decisions;
    do {
      std::map<std::string, bool> shared;
      SimStore left = store_.crashed([&](const UnsyncedChange& change) {
        const auto text = together_(change);
        if (!text) return decisions.decide();
        const auto [one, is_new] = shared.try_emplace(*text, false);
        if (is_new) one->second = decisions.decide();
        return one->second;
      });
      ++found.visited;
      const std::uint64_t print = fingerprint(left);
      here.insert(print);
      found.stores.try_emplace(print, std::move(left));
    } while (decisions.advance());
  }

  /// Notes what is not synced in a directory of a save that is about to become visible.
  void look_inside(const MortalPlace& place, States& found) const {
    if (place.step != "swap_in") return;
    static_cast<void>(store_.crashed([&found](const UnsyncedChange& change) {
      const auto hidden = hidden_directory(change.path);
      if (hidden && hidden->find(kSavingSuffix) != std::string::npos) {
        found.exposed.push_back(change.path);
      }
      return true;
    }));
  }

  std::int64_t generation_at(SimStore& store, const std::string& path) const {
    std::set<std::int64_t> found;
    try {
      run_on(store, ranks_, [&](const Ports& ports) { found.insert(loaded(ports, path)); });
    } catch (const Error& error) {
      if (error.code() == Code::kNotFound && history_.allowed.contains(0)) return 0;
      throw;
    }
    return found.size() == 1 ? *found.begin() : -1;
  }

  const History& history_;
  std::int32_t ranks_;
  Together together_;
  SaveSeams seams_;
  SimStore store_;
};

struct Outcomes {
  std::vector<std::pair<std::string, std::set<std::string>>> at;  ///< place, outcomes
  std::set<std::string> all;
  std::set<std::string> last;  ///< after the save has ended
  std::size_t visited = 0;
  std::size_t distinct = 0;
  std::size_t leftovers = 0;  ///< states from which a save leaves a directory that was set aside
  std::vector<std::string> exposed;
};

Outcomes outcomes_of(Sweep sweep) {
  States states = sweep.states();
  std::map<std::uint64_t, std::string> known;
  Outcomes outcomes;
  for (auto& [print, store] : states.stores) {
    known[print] = sweep.outcome(store);
    outcomes.leftovers += has_leftovers(store) ? 1 : 0;
  }
  for (const auto& [place, prints] : states.places) {
    std::set<std::string> here;
    for (const std::uint64_t print : prints) here.insert(known[print]);
    outcomes.all.insert(here.begin(), here.end());
    outcomes.last = here;
    outcomes.at.emplace_back(place, std::move(here));
  }
  outcomes.visited = states.visited;
  outcomes.distinct = states.stores.size();
  outcomes.exposed = std::move(states.exposed);
  return outcomes;
}

void expect_one_whole_checkpoint(const History& history, const Outcomes& outcomes) {
  for (const auto& [place, here] : outcomes.at) {
    for (const std::string& one : here) {
      EXPECT_TRUE(one.starts_with("generation ")) << history.name << ", " << place << ": " << one;
    }
  }
  EXPECT_EQ(outcomes.last,
            std::set<std::string>{"generation " + std::to_string(history.last.generation)})
      << history.name << ": a save that ended well";
  EXPECT_EQ(outcomes.exposed, std::vector<std::string>()) << history.name;
}

constexpr std::array kStores = {StoreCapabilities{.exchange = true},
                                StoreCapabilities{.exchange = false}};

TEST(CrashStates, every_surviving_subset_leaves_one_whole__1_and_2_ranks) {
  std::size_t distinct = 0;
  for (const History& history : histories()) {
    for (const StoreCapabilities& kind : kStores) {
      for (const std::int32_t ranks : {1, 2}) {
        const Outcomes full = outcomes_of(Sweep(history, ranks, each_change, {}, kind));
        expect_one_whole_checkpoint(history, full);
        const Outcomes few = outcomes_of(Sweep(history, ranks, pruned, {}, kind));
        EXPECT_EQ(full.at, few.at) << history.name << ": the pruning loses an outcome";
        EXPECT_GT(full.distinct, 2 * few.distinct) << history.name;
        distinct += full.distinct;
        std::cout << history.name << ", " << ranks << " ranks, "
                  << (kind.exchange ? "exchange" : "rename") << ": " << full.distinct
                  << " states of " << full.visited << ", pruned " << few.distinct
                  << "; with leftovers " << full.leftovers << "\n";
      }
    }
  }
  EXPECT_GT(distinct, 1000U);
}

TEST(CrashStates, every_pruned_state_leaves_one_whole__3_and_4_ranks) {
  std::size_t distinct = 0;
  for (const History& history : histories()) {
    for (const StoreCapabilities& kind : kStores) {
      for (const std::int32_t ranks : {3, 4}) {
        const Outcomes few = outcomes_of(Sweep(history, ranks, pruned, {}, kind));
        expect_one_whole_checkpoint(history, few);
        EXPECT_GT(few.all.size(), 1U) << history.name << ": the old and the new are both seen";
        distinct += few.distinct;
        std::cout << history.name << ", " << ranks << " ranks, "
                  << (kind.exchange ? "exchange" : "rename") << ": " << few.distinct
                  << " states of " << few.visited << "\n";
      }
    }
  }
  EXPECT_GT(distinct, 500U);
}

/// Commits without syncing the names in the new directory before it becomes visible.
Steps names_unsynced(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  Steps steps = commit_part(store, target, content, role);
  std::erase_if(steps, [](const ProtocolStep& step) { return step.name == "sync_directory"; });
  return steps;
}

TEST(CrashStates, a_directory_that_becomes_visible_unsynced_is_seen__3_ranks) {
  SaveSeams seams;
  seams.commit = names_unsynced;
  const Outcomes outcomes = outcomes_of(Sweep(histories()[1], 3, pruned, seams));
  EXPECT_FALSE(outcomes.exposed.empty());
  EXPECT_GT(outcomes.all.size(), 2U) << "some state has no whole checkpoint";
}

TEST(CrashStates, a_tracker_renamed_before_its_sync_is_seen__3_ranks) {
  Policies historical;
  mutant_named("tracker-synced-after-rename").apply(historical);
  const Outcomes outcomes = outcomes_of(Sweep(histories()[2], 3, pruned, historical.save));
  EXPECT_GT(outcomes.all.size(), 2U) << "some state has no tracker";
}

TEST(CrashStates, pruning_that_loses_outcomes_differs_from_the_sweep__1_rank) {
  SaveSeams seams;
  seams.commit = names_unsynced;
  const Outcomes full = outcomes_of(Sweep(histories()[1], 1, each_change, seams));
  EXPECT_EQ(full.at, outcomes_of(Sweep(histories()[1], 1, pruned, seams)).at);
  EXPECT_NE(full.at, outcomes_of(Sweep(histories()[1], 1, pruned_too_much, seams)).at);
}

}  // namespace
}  // namespace reprise::sim::crash_states_test

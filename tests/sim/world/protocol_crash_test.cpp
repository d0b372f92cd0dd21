// Simulates a crash of each rank at every point of every protocol. The points are each begin and
// end that the engine traces, and each change of the store in between. A crash kills the process or
// cuts the power. Other runs make one of these changes fail, or make a rename report success
// without being done. Afterwards, all ranks of a new job must load the same committed checkpoint,
// and the job must be able to save.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <set>

#include "core/api/calls.hpp"
#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/load/load.hpp"
#include "core/load/load_seamed.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/retention.hpp"
#include "core/save/save_seamed.hpp"
#include "reprise/save.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/copy_tree.hpp"
#include "sim/world/world.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/sim/world/mortal_ports.hpp"
#include "tests/sim/world/tiny_job.hpp"

namespace reprise::sim {
namespace {

/// What happens at a point. With kKill and kPowerCut, the rank dies. With kError, a call fails.
/// With kLost, a rename reports success but is not done.
enum class End { kKill, kPowerCut, kError, kLost };

const char* name_of(End end) {
  switch (end) {
    case End::kKill:
      return "is killed";
    case End::kPowerCut:
      return "has a power cut";
    case End::kError:
      return "has no space";
    case End::kLost:
      return "loses a rename";
  }
  return "";
}

bool dies(End end) { return end == End::kKill || end == End::kPowerCut; }

bool is_change_of_names(const std::string& call) {
  return call == "publish" || call == "replace" || call == "put_aside";
}

/// Returns true if this kind of end is possible at this point.
bool possible(End end, const MortalPlace& place) {
  const bool call = place.what != "begins" && place.what != "ends";
  if (end == End::kError) return call;
  if (end == End::kLost) return is_change_of_names(place.what);
  return true;
}

struct SaveOf {
  std::int64_t step = 1;
  std::int64_t generation = 1;
  std::optional<std::int32_t> keep = {};
};

using Steps = std::vector<Step>;

/// Makes one save. `damaged` lists the steps whose checkpoints were found damaged by an earlier
/// load.
void save(const Ports& ports, const SaveOf& what, const SaveSeams& seams = {},
          const Steps& damaged = {}) {
  const TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), what.generation);
  SaveOptions options;
  options.directory = "run";
  options.step = what.step;
  options.keep = what.keep;
  begin_save(ports, all_ranks(ports), job.state, options, {.damaged = damaged}, seams).finish();
}

/// The saves of a job that continues while they are in flight. Right after it begins each save, the
/// job changes its state and polls.
struct Beside {
  std::vector<SaveOf> saves = {};
  std::size_t in_flight = 1;
  Background background = Background::kAnyTime;
};

void save(const Ports& ports, const Beside& beside) {
  constexpr std::int64_t kTrainedOn = -7;
  constexpr int kPolls = 3;
  SaveQueue queue(beside.in_flight);
  Job saving = job_over(ports, all_ranks(ports));
  for (const SaveOf& what : beside.saves) {
    TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), what.generation);
    const SaveOptions options{.directory = "run", .step = what.step, .keep = what.keep};
    queue.begin(
        options, [&] { return begin_save(saving, job.state, options); },
        [](const EndedSave& end) {
          if (end.error) throw Error(*end.error);
        });
    std::fill(job.elements.begin(), job.elements.end(), kTrainedOn);
    for (int i = 0; i < kPolls; ++i) queue.poll();
  }
  queue.finalize();
}

struct Loaded {
  std::int64_t generation;  ///< -1 if the state mixes generations
  Steps damaged;
};

Loaded load(const Ports& ports, const std::string& path, reprise::Fallback fallback) {
  constexpr std::int64_t kNothing = -2;
  TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), kNothing);
  LoadOptions options;
  options.directory = path;
  options.fallback = fallback;
  const auto ask = [&job](const Candidate&) { return Wanted{&job.state, {}}; };
  const LoadResult report = reprise::load(ports, *all_ranks(ports), options, ask);
  Loaded loaded{job.generation().value_or(-1), {}};
  for (const std::int64_t step : report.damaged) loaded.damaged.push_back(Step{step});
  return loaded;
}

/// A test case: the saves before the crash, the saves that the crash interrupts, and the allowed
/// results.
struct History {
  const char* name;
  std::vector<SaveOf> before;
  std::optional<std::int64_t> damaged = {};  ///< step whose payload is damaged before the run
  std::optional<SaveOf> unfinished = {};     ///< a save that was interrupted earlier
  bool loads = false;                        ///< true if the job loads before it saves
  std::optional<SaveOf> saves = {};
  /// Generations that a load is allowed to find after the crash; 0 means that there is no
  /// checkpoint.
  std::set<std::int64_t> allowed = {};
  /// Steps whose checkpoints must exist after the last save. If such a step was already saved
  /// before, its checkpoint must be whole after every crash.
  std::vector<std::int64_t> left = {};
  Beside beside = {};

  /// Returns the last save.
  std::optional<SaveOf> last() const {
    return beside.saves.empty() ? saves : std::optional(beside.saves.back());
  }
  bool is_saved(std::int64_t step) const {
    return (saves && saves->step == step) ||
           std::any_of(beside.saves.begin(), beside.saves.end(),
                       [step](const SaveOf& one) { return one.step == step; });
  }

  reprise::Fallback fallback() const {
    return damaged ? reprise::Fallback::kNewestWhole : reprise::Fallback::kNone;
  }
};

const std::vector<History>& histories() {
  static const std::vector<History> all = {
      {.name = "the first save",
       .before = {},
       .saves = SaveOf{1, 1},
       .allowed = {0, 1},
       .left = {1}},
      {.name = "another iteration",
       .before = {{1, 1}},
       .saves = SaveOf{2, 2},
       .allowed = {1, 2},
       .left = {1, 2}},
      {.name = "over the directory that the tracker names",
       .before = {{1, 1}},
       .saves = SaveOf{1, 2},
       .allowed = {1, 2},
       .left = {1}},
      {.name = "keep 1",
       .before = {{1, 1}},
       .saves = SaveOf{2, 2, 1},
       .allowed = {1, 2},
       .left = {2}},
      {.name = "keep 2 of four",
       .before = {{1, 1}, {2, 2}, {3, 3}},
       .saves = SaveOf{4, 4, 2},
       .allowed = {3, 4},
       .left = {3, 4}},
      {.name = "keep 1 beside a newer one that was not finished",
       .before = {{1, 1}},
       .unfinished = SaveOf{4, 4},
       .saves = SaveOf{2, 2, 1},
       .allowed = {1, 2},
       .left = {2}},
      {.name = "a load", .before = {{1, 1}, {2, 2}}, .loads = true, .allowed = {2}, .left = {1, 2}},
      {.name = "a load that falls back, and the save after it, keep 1",
       .before = {{1, 1}, {2, 2}},
       .damaged = 2,
       .loads = true,
       .saves = SaveOf{2, 3, 1},
       .allowed = {1, 3},
       .left = {2}},
      {.name = "the same, and the save is of an iteration in between",
       .before = {{1, 1}, {3, 3}},
       .damaged = 3,
       .loads = true,
       .saves = SaveOf{2, 2, 1},
       .allowed = {1, 2},
       .left = {2, 3}},
      {.name = "a load that falls back, and the save after it, keep 2",
       .before = {{1, 1}, {2, 2}, {3, 3}},
       .damaged = 3,
       .loads = true,
       .saves = SaveOf{4, 4, 2},
       .allowed = {2, 4},
       .left = {2, 3, 4}},
      {.name = "the same, keep 1",
       .before = {{1, 1}, {2, 2}, {3, 3}},
       .damaged = 3,
       .loads = true,
       .saves = SaveOf{4, 4, 1},
       .allowed = {2, 4},
       .left = {4}},
      {.name = "the same, keep 3, and there is one less",
       .before = {{1, 1}, {2, 2}, {3, 3}},
       .damaged = 3,
       .loads = true,
       .saves = SaveOf{4, 4, 3},
       .allowed = {2, 4},
       .left = {1, 2, 3, 4}},
      {.name = "the same, keep 2, and the save is of an iteration in between",
       .before = {{1, 1}, {2, 2}, {5, 5}},
       .damaged = 5,
       .loads = true,
       .saves = SaveOf{4, 4, 2},
       .allowed = {2, 4},
       .left = {2, 4, 5}},
      {.name = "a save beside training",
       .before = {{1, 1}},
       .allowed = {1, 2},
       .left = {1, 2},
       .beside = {.saves = {{2, 2}}}},
      {.name = "two in flight, keep 1",
       .before = {{1, 1}},
       .allowed = {1, 2, 3},
       .left = {3},
       .beside = {.saves = {{2, 2, 1}, {3, 3, 1}}, .in_flight = 2}},
      {.name = "two in flight, which are written as late as may be, keep 2",
       .before = {{1, 1}},
       .allowed = {1, 2, 3},
       .left = {2, 3},
       .beside = {.saves = {{2, 2, 2}, {3, 3, 2}},
                  .in_flight = 2,
                  .background = Background::kLate}},
      {.name = "two of one step, of which the second waits for the first",
       .before = {{1, 1}},
       .allowed = {1, 2, 3},
       .left = {1, 2},
       .beside = {.saves = {{2, 2}, {2, 3}}, .in_flight = 2, .background = Background::kLate}},
  };
  return all;
}

/// Kinds of stores. They replace a tree in one step, by two renames, or by one conditional put.
/// Stores of the third kind also have lists that lag behind.
enum class Kind { kExchange, kRename, kPut };
constexpr std::array kKinds = {Kind::kExchange, Kind::kRename, Kind::kPut};

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kExchange:
      return "store that exchanges";
    case Kind::kRename:
      return "store that only renames";
    case Kind::kPut:
      return "store without rename";
  }
  return "";
}

StoreCapabilities capabilities_of(Kind kind) {
  const bool puts = kind == Kind::kPut;
  return {.exchange = kind != Kind::kRename, .renames = !puts, .lists_lag = puts};
}

struct Setting {
  Kind kind = Kind::kExchange;
  std::int32_t ranks = 1;
  GlobalRank victim = {0};
  End end = End::kKill;
  Background background = Background::kAnyTime;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  return out << name_of(setting.kind) << ", " << setting.ranks << " ranks, rank "
             << setting.victim.value << " " << name_of(setting.end);
}

using Program = std::function<void(const Ports&)>;

/// Runs the program on all ranks. Requires that every rank reaches the end of the program.
void run_whole(SimStore& store, std::int32_t ranks, const Program& program,
               Background background = Background::kAnyTime) {
  World world({.seed = 5, .world_size = ranks, .background = background}, store);
  const RunResult result = world.run([&](Ports& ports, GlobalRank) { program(ports); });
  for (const auto& rank : result.ranks) {
    if (rank.error) throw *rank.error;
    ASSERT_EQ(rank.end, RankEnd::kReturned) << rank.message;
  }
}

struct CutOff {
  std::vector<MortalPlace> passed;  ///< points that the victim reached, in order
  bool finished = false;            ///< true if the program ended normally on all ranks
};

/// Runs the program. When the victim reaches the point with the index `last`, the event
/// `setting.end` happens. If the victim never reaches that point, the program runs to its end on
/// all ranks.
CutOff run_until(SimStore& store, const Setting& setting, std::size_t last,
                 const Program& program) {
  CutOff run;
  World world({.seed = 5, .world_size = setting.ranks, .background = setting.background}, store);
  const auto die = [&] {
    for (std::int32_t r = 0; setting.end == End::kPowerCut && r < setting.ranks; ++r) {
      if (GlobalRank{r} != setting.victim) world.kill({r});
    }
    world.kill(setting.victim);
  };
  const auto meet = [&] {
    if (setting.end == End::kLost) return Deed::kClaimed;
    if (setting.end == End::kError) throw Error(Code::kNoSpace, "the disk is full");
    die();
    return Deed::kDone;
  };
  const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
    MortalPorts mortal(ports, [&, rank](const MortalPlace& place) {
      if (rank != setting.victim || run.passed.size() > last) return Deed::kDone;
      run.passed.push_back(place);
      return run.passed.size() > last ? meet() : Deed::kDone;
    });
    program(mortal.ports());
  });
  run.finished = true;
  for (const auto& rank : result.ranks) {
    EXPECT_NE(rank.end, RankEnd::kDefect) << rank.message;
    EXPECT_NE(rank.end, RankEnd::kHung);
    run.finished = run.finished && rank.end == RankEnd::kReturned;
  }
  if (run.passed.size() > last && setting.end == End::kPowerCut) store.crash();
  if (run.passed.size() > last) store.pass_term();  // the lease ends before the next job begins
  return run;
}

constexpr std::size_t kForEver = std::size_t{1} << 30U;
constexpr std::size_t kBeforeCommit = 30;  // index of a point before the commit of the save

class ProtocolCrash {
 public:
  ProtocolCrash(const History& history, Setting setting, const SaveSeams& seams = {})
      : history_(history), setting_(setting), seams_(seams) {
    setting_.background = history.beside.background;
    for (const SaveOf& one : history.before) {
      run_whole(before_, setting.ranks, [&one](const Ports& ports) { save(ports, one); });
    }
    if (history.damaged) change_payload(*history.damaged);
    if (history.unfinished) {
      run_until(before_, {Kind::kExchange, setting.ranks}, kBeforeCommit,
                [&](const Ports& ports) { save(ports, *history.unfinished); });
    }
    before_.sync_all();
  }

  /// Returns all points that the victim reaches in a complete run.
  std::vector<MortalPlace> places() {
    SimStore store = fresh();
    return run_until(store, setting_, kForEver, program()).passed;
  }

  /// Returns the steps whose checkpoints are in the store after a run without a crash.
  std::vector<std::int64_t> left() {
    SimStore store = fresh();
    run_whole(store, setting_.ranks, program(), setting_.background);
    store.show_current_names();
    std::vector<std::int64_t> steps;
    for (const Generation& there : generations(store, "run")) {
      if (there.committed) steps.push_back(there.step.value);
    }
    return steps;
  }

  /// Simulates a crash at the beginning of the commit step named `step`. Returns the generation
  /// found afterwards in the directory of the saved iteration.
  std::int64_t generation_at(const std::string& step) {
    const auto passed = places();
    const auto place = std::find_if(passed.begin(), passed.end(), [&step](const MortalPlace& at) {
      return at.step == step && at.what == "begins";
    });
    SimStore store = fresh();
    run_until(store, setting_, static_cast<std::size_t>(place - passed.begin()), program());
    return found(store, CommitTarget::iteration("run", Step{history_.saves->step}).directory);
  }

  /// Simulates a crash at this point, and then a recovery. Returns what is wrong afterwards; empty
  /// if nothing is.
  std::string crash_at(std::size_t place) {
    SimStore store = fresh();
    const bool finished = run_until(store, setting_, place, program()).finished;
    return complaint(store, finished);
  }

  /// Kills a first life at one point. A second life then repeats the save and dies at another
  /// point. At that time, the names that the first life changed are visible but not durable.
  std::string crash_twice(std::size_t first, std::size_t second) {
    SimStore store = fresh();
    Setting killed = setting_;
    killed.end = End::kKill;
    run_until(store, killed, first, program());
    const bool finished = run_until(store, setting_, second, program()).finished;
    return complaint(store, finished);
  }

 private:
  Program program() const {
    return [this](const Ports& ports) {
      Steps damaged;
      if (history_.loads) damaged = load(ports, "run", history_.fallback()).damaged;
      if (history_.saves) save(ports, *history_.saves, seams_, damaged);
      if (!history_.beside.saves.empty()) save(ports, history_.beside);
    };
  }

  SimStore fresh() {
    SimStore store("sim:", capabilities_of(setting_.kind), ++stores_);
    copy_tree({before_}, {store});
    store.sync_all();
    store.show_current_names();
    return store;
  }

  void change_payload(std::int64_t step) {
    const std::string path = CommitTarget::iteration("run", Step{step}).directory + "/__0_0.distcp";
    Bytes content = read_all(before_, path, 1U << 20U);
    // Only elements of the rank have this value, so no other bytes change.
    for (std::size_t i = 0; i + 8 <= content.size(); ++i) {
      if (load_le<std::int64_t>(ByteSpan(content).subspan(i)) == step) content[i] ^= std::byte{8};
    }
    write_durably(before_, path, content);
  }

  /// Returns the generation that a load finds; 0 if there is no checkpoint at all. Throws if the
  /// load throws.
  std::int64_t found(SimStore& store, const std::string& path) {
    std::set<std::int64_t> found;
    try {
      run_whole(store, setting_.ranks, [&](const Ports& ports) {
        found.insert(load(ports, path, history_.fallback()).generation);
      });
    } catch (const Error& error) {
      if (error.code() == Code::kNotFound && history_.allowed.contains(0)) return 0;
      throw;
    }
    return found.size() == 1 ? *found.begin() : -1;
  }

  /// Returns what is wrong with the store; empty if nothing is. `finished` is true if the save
  /// returned normally.
  std::string complaint(SimStore& store, bool finished) {
    try {
      const std::int64_t now = found(store, "run");
      if (finished && history_.last() && now != history_.last()->generation) {
        return "loads generation " + std::to_string(now) + " after a save that ended well";
      }
      if (!history_.allowed.contains(now)) return "loads generation " + std::to_string(now);
      for (const Generation& there : generations(store, "run")) {
        if (!there.committed || history_.damaged) continue;
        if (found(store, there.directory) <= 0) return there.directory + " is a mix";
      }
      for (const std::int64_t step : history_.left) {
        if (step == history_.damaged || history_.is_saved(step)) continue;
        if (found(store, CommitTarget::iteration("run", Step{step}).directory) != step) {
          return "keeps step " + std::to_string(step) + " no more";
        }
      }
      const SaveOf next{9, 9, 1};
      run_whole(store, setting_.ranks, [&](const Ports& ports) { save(ports, next, seams_); });
      const std::int64_t after = found(store, "run");
      if (after != 9) return "loads generation " + std::to_string(after) + " after the next save";
    } catch (const Error& error) {
      return error.what();
    }
    return left_of_a_removal(store);
  }

  /// Returns a complaint if an incomplete removal has left something behind; empty if nothing is
  /// left. If lists lag, the save may have missed some files. In that case, first makes one more
  /// save, which removes them. The markers of a removal are no reason to complain: they stay until
  /// a list shows that everything else is gone.
  std::string left_of_a_removal(SimStore& store) {
    const bool lags = store.capabilities().lists_lag;
    if (lags) {
      store.show_current_names();
      run_whole(store, setting_.ranks, [](const Ports& ports) { save(ports, {10, 10, 1}); });
      store.show_current_names();
    }
    for (const auto& entry : store.list("run")) {
      if (entry.name.find(kRemovingSuffix) == std::string::npos) continue;
      const auto inside = store.list(join_path("run", entry.name));
      const bool waits = lags && std::ranges::all_of(inside, is_mark, &Entry::name);
      if (!waits) return entry.name + " is left";
    }
    return "";
  }

  const History& history_;
  Setting setting_;
  SaveSeams seams_;
  SimStore before_ = SimStore("sim:");
  std::uint64_t stores_ = 0;  ///< number of stores made so far; the seed of the next store's lag
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const Kind kind : kKinds) {
    for (const auto& [ranks, victim] : {std::pair{1, 0}, {2, 0}, {2, 1}}) {
      for (const End end : {End::kKill, End::kPowerCut, End::kError, End::kLost}) {
        all.push_back({kind, ranks, {victim}, end});
      }
    }
  }
  return all;
}

class Histories : public testing::TestWithParam<std::size_t> {};

TEST_P(Histories, a_crash_or_failure_anywhere_leaves_one_whole_for_all_ranks) {
  const History& history = histories()[GetParam()];
  std::map<Kind, int> counts;  ///< number of crashes for each kind of store
  int failures = 0;
  for (const Setting& setting : settings()) {
    ProtocolCrash crash(history, setting);
    const std::vector<MortalPlace> places = crash.places();
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!possible(setting.end, places[i])) continue;
      SCOPED_TRACE(testing::Message() << history.name << ", " << setting << " at place " << i
                                      << ": " << places[i].text());
      ASSERT_EQ(crash.crash_at(i), "");
      ++(dies(setting.end) ? counts[setting.kind] : failures);
    }
  }
  const int without_rename = counts[Kind::kPut];
  const int crashes = counts[Kind::kExchange] + counts[Kind::kRename] + without_rename;
  std::cout << history.name << ": recovered from " << crashes << " crashes, " << without_rename
            << " of them without rename, and " << failures << " failed or lost calls\n";
  EXPECT_GE(crashes, history.last() ? 750 : 150);
  EXPECT_GE(without_rename, history.last() ? 250 : 50);
  EXPECT_GE(failures, history.last() ? 50 : 0);
}

TEST_P(Histories, an_undisturbed_run_leaves_exactly_what_is_to_be_kept) {
  const History& history = histories()[GetParam()];
  for (const std::int32_t ranks : {1, 2}) {
    for (const Kind kind : kKinds) {
      EXPECT_EQ(ProtocolCrash(history, {kind, ranks}).left(), history.left) << history.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ProtocolCrash, Histories,
                         testing::Range(std::size_t{0}, histories().size()));

/// Returns the points at which a step begins, because a crash there shows what the previous step
/// has left. Also returns the points at which a step moves or removes something.
std::vector<std::size_t> states(const std::vector<MortalPlace>& places) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool begins = places[i].what == "begins" && !places[i].step.empty();
    if (begins || is_change_of_names(places[i].what) || places[i].what == "remove")
      found.push_back(i);
  }
  return found;
}

TEST(ProtocolCrash, a_crash_while_clearing_leftovers_of_a_crash_leaves_one_too) {
  int crashes = 0;
  int without_rename = 0;
  for (const std::size_t h : {2, 3, 7}) {
    const History& history = histories()[h];
    for (const Kind kind : {Kind::kRename, Kind::kExchange, Kind::kPut}) {
      if (kind == Kind::kExchange && REPRISE_SANITIZED) continue;  // slow under sanitizers
      ProtocolCrash crash(history, {kind, 1, {0}, End::kPowerCut});
      const std::vector<MortalPlace> places = crash.places();
      for (const std::size_t first : states(places)) {
        for (const std::size_t second : states(places)) {
          SCOPED_TRACE(testing::Message() << history.name << " at " << places[first].text()
                                          << " and then at place " << second);
          ASSERT_EQ(crash.crash_twice(first, second), "");
          ++crashes;
          if (kind == Kind::kPut) ++without_rename;
        }
      }
    }
  }
  std::cout << crashes << " pairs of crashes recovered, " << without_rename
            << " of them without rename\n";
  EXPECT_GE(crashes, 1000);
  EXPECT_GE(without_rename, 500);
}

TEST(ProtocolCrash, what_the_tracker_is_about_to_name_would_survive_a_power_cut) {
  for (const Kind kind : kKinds) {
    for (const std::size_t h : {0, 1, 2}) {
      ProtocolCrash crash(histories()[h], {kind, 2, {0}, End::kPowerCut});
      EXPECT_EQ(crash.generation_at("tracker"), histories()[h].saves->generation)
          << histories()[h].name;
    }
  }
}

/// A mutant of the protocol, the history and the number of ranks that expose it, and the resulting
/// complaint.
struct Wrong {
  const char* mutant;
  std::size_t history;
  std::int32_t ranks;
  const char* complaint;
};

const Wrong kWrong[] = {
    {"tracker-before-payload", 1, 1, "TRACKER_DANGLING"},
    {"tracker-before-payload/at-schedule", 1, 1, "TRACKER_DANGLING"},
    {"tracker-written-by-nobody", 1, 1, "after the next save"},
    {"tracker-written-by-nobody/two", 1, 2, "TRACKER_DANGLING"},
    {"retention-before-durable", 3, 1, "TRACKER_DANGLING"},
    {"retention-before-durable/at-schedule", 3, 1, "TRACKER_DANGLING"},
    {"same-step-removed-first", 2, 1, "TRACKER_DANGLING"},
    {"retention-counts-unfinished", 5, 1, "TRACKER_DANGLING"},
    {"retention-counts-damaged", 9, 1, "iter_0000002"},
    {"retention-counts-damaged", 11, 2, "iter_0000001"},
};

TEST(ProtocolCrash, a_protocol_in_a_wrong_order_is_seen_at_some_crash) {
  for (const Wrong& wrong : kWrong) {
    Policies historical;
    mutant_named(wrong.mutant).apply(historical);
    int seen = 0;
    std::set<std::string> others;
    for (const End end : {End::kKill, End::kPowerCut}) {
      ProtocolCrash crash(histories()[wrong.history], {Kind::kExchange, wrong.ranks, {0}, end},
                          historical.save);
      const std::size_t places = crash.places().size();
      for (std::size_t i = 0; i < places; ++i) {
        const std::string complaint = crash.crash_at(i);
        if (complaint.find(wrong.complaint) != std::string::npos)
          ++seen;
        else if (!complaint.empty())
          others.insert(complaint);
      }
    }
    std::cout << wrong.mutant << ": seen at " << seen << " places\n";
    EXPECT_GT(seen, 0) << wrong.mutant << ": " << testing::PrintToString(others);
  }
}

/// Returns names in the order in which they first began. If `phase` is empty, these are the names
/// of all phases; otherwise, they are the names of the steps of that phase.
std::vector<std::string> names(const std::vector<MortalPlace>& places, const std::string& phase) {
  std::vector<std::string> found;
  for (const auto& place : places) {
    if (place.what != "begins") continue;
    if (phase.empty() ? !place.step.empty() : place.step.empty() || place.phase != phase) continue;
    const std::string& name = phase.empty() ? place.phase : place.step;
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  return found;
}

template <class Names>
std::vector<std::string> texts(const Names& names) {
  return {names.begin(), names.end()};
}

TEST(ProtocolCrash, the_traced_phases_and_steps_are_those_of_the_lists) {
  for (const auto& [ranks, rank] : {std::pair{1, 0}, {2, 0}, {2, 1}}) {
    ProtocolCrash crash(histories()[3], {Kind::kExchange, ranks, {rank}, End::kKill});
    const auto places = crash.places();
    EXPECT_EQ(names(places, ""), texts(phases_of_save())) << rank;
    const bool leads = rank == 0;
    using Texts = std::vector<std::string>;
    EXPECT_EQ(names(places, "prepare"), leads ? texts(kPrepareSteps) : Texts());
    EXPECT_EQ(names(places, "commit"), leads ? texts(kCommitSteps) : Texts());
    EXPECT_EQ(names(places, "retention"), leads ? texts(kRetentionSteps) : Texts());
    ProtocolCrash load(histories()[6], {Kind::kExchange, ranks, {rank}, End::kKill});
    const auto phases = names(load.places(), "");
    EXPECT_EQ(std::set<std::string>(phases.begin(), phases.end()),
              std::set<std::string>(phases_of_load().begin(), phases_of_load().end()));
  }
}

}  // namespace
}  // namespace reprise::sim

#include "driver/explore/explore.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "driver/explore/finding.hpp"
#include "driver/explore/marks.hpp"
#include "driver/random/draw.hpp"
#include "driver/runs/run_jobs.hpp"
#include "reports/cause.hpp"

namespace reprise::driver {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Timelines that are planned at once. What one of them shows is known only to later batches, so
/// the search takes the same course with any number of threads.
constexpr std::uint64_t kBatch = 16;
/// Two of five timelines begin anew. The other three branch if there is something to branch from.
constexpr std::uint64_t kOfTimelines = 5;
constexpr std::uint64_t kAnew = 2;
/// One of four branches starts from a tuple, and the others start from marks.
constexpr std::uint64_t kOfBranches = 4;
/// A behaviour that at most one of so many timelines that began anew has is worth branching from.
/// Branches do not count, because those that seek a rare behaviour would soon make it a common one.
constexpr std::uint64_t kRareOneIn = 50;
constexpr std::size_t kParentsMax = 8;
/// Three of four branches go on with lives of other timelines, so that one rare behaviour comes
/// after another. The fourth draws what comes next, because only a new plan or a new schedule shows
/// what no timeline reached.
constexpr std::uint64_t kOfCrossings = 4;
constexpr std::uint64_t kSeedMask = 0xffff'ffff;  // short seeds make recipes that people can type

/// A timeline to branch from, and the life in which it reached the behaviour.
struct Parent {
  Recipe recipe;
  std::size_t life = 0;
  std::uint64_t decisions = 0;  ///< of that life
};

/// A mark or tuple that was seen.
struct Behaviour {
  std::uint64_t hits = 0;      ///< timelines that reached it and began anew
  std::uint64_t branches = 0;  ///< timelines that branched from it
  std::vector<Parent> parents = {};
  /// Holds, for each life, the newest timeline that reached the behaviour there by itself.
  std::array<std::optional<Recipe>, kTimelineLives> newest = {};
};
using Behaviours = std::map<std::string, Behaviour>;

struct Planned {
  Recipe recipe;
  std::size_t from_life = 0;  ///< the first life that is not a repetition of the parent's
  bool branch = false;
};

class Search {
 public:
  explicit Search(const ExploreRequest& request) : request_(request) {
    for (const auto& name : request.marks.empty() ? all_marks() : request.marks) counts_[name] = 0;
    result_.coverage.seed = request.seed;
  }

  ExploreResult run() {
    const auto start = SteadyClock::now();
    const auto elapsed = [start] {
      return std::chrono::duration<double>(SteadyClock::now() - start).count();
    };
    while (!ends(elapsed())) {
      run_batch();
      request_.progress(result_.coverage.runs, elapsed());
    }
    result_.interrupted = request_.interrupted();
    result_.seconds = elapsed();
    add_point();
    for (const auto& [name, count] : counts_) result_.coverage.marks.push_back({name, count});
    result_.tuples = tuples_.size();
    return std::move(result_);
  }

 private:
  bool ends(double seconds) const {
    if (result_.coverage.runs >= request_.runs_max || request_.interrupted()) return true;
    if (request_.first_only && !result_.coverage.findings.empty()) return true;
    return request_.seconds_max > 0 && seconds >= request_.seconds_max;
  }

  void run_batch() {
    const std::uint64_t left = request_.runs_max - result_.coverage.runs;
    std::vector<Planned> batch;
    for (std::uint64_t i = 0; i < std::min(kBatch, left); ++i) {
      batch.push_back(plan(result_.coverage.runs + i));
    }
    std::vector<TimelineResult> seen(batch.size());
    run_jobs(batch.size(), request_.jobs,
             [&](std::size_t i) { seen[i] = request_.run(batch[i].recipe, request_.mutant); });
    for (std::size_t i = 0; i < batch.size(); ++i) take(batch[i], seen[i]);
  }

  // --- planning

  Planned plan(std::uint64_t number) {
    Stream random = Stream(request_.seed).split("timeline").split(number);
    const bool anew = request_.alone || number % kOfTimelines < kAnew;
    Behaviour* from = nullptr;
    if (!anew && chance(random, kOfBranches)) from = rarest(tuples_);
    if (!anew && from == nullptr) from = rarest(marks_);
    if (from == nullptr) {
      const std::uint64_t seed = seed_anew(random);
      return {.recipe = {.seed = seed, .choosing = choosing(random)}};
    }
    ++from->branches;
    const Parent& parent = one_of(random, from->parents);
    if (!chance(random, kOfCrossings)) {
      if (auto crossed = crossing(random, parent)) return std::move(*crossed);
    }
    const Split split = split_after(random, parent);
    return {.recipe = parent.recipe.branch(split), .from_life = split.life, .branch = true};
  }

  std::uint64_t seed_anew(Stream& random) const {
    std::uint64_t seed = random.next() & kSeedMask;
    while (!request_.subject.empty() && !is_about(seed, request_.subject)) {
      seed = random.next() & kSeedMask;
    }
    return seed;
  }

  static sim::Choosing choosing(Stream& random) {
    return chance(random, 4) ? sim::Choosing::kPriority : sim::Choosing::kUniform;
  }

  bool is_rare(const Behaviour& one) const {
    return !one.parents.empty() && one.hits * kRareOneIn <= std::max(anew_, kRareOneIn);
  }

  /// Goes on from the parent with lives of other timelines, in each of which one of them reached
  /// another rare behaviour. Returns nothing if no such life is known.
  std::optional<Planned> crossing(Stream& random, const Parent& parent) const {
    std::optional<Planned> planned;
    for (std::size_t life = parent.life + 1; life < kTimelineLives; ++life) {
      std::vector<const Recipe*> others;
      for (const auto& [name, one] : chance(random, kOfBranches) ? tuples_ : marks_) {
        if (is_rare(one) && one.newest[life]) others.push_back(&*one.newest[life]);
      }
      if (others.empty()) continue;
      if (!planned) planned = Planned{.recipe = parent.recipe, .from_life = life, .branch = true};
      planned->recipe = planned->recipe.cross(life, *one_of(random, others));
    }
    return planned;
  }

  /// Returns the behaviour with the least product of timelines that reached it and branches from
  /// it, so that each rare one gets its share and the rarest most. Null if none is rare.
  Behaviour* rarest(Behaviours& all) const {
    Behaviour* found = nullptr;
    const auto spent = [](const Behaviour& one) { return (one.hits + 1) * (one.branches + 1); };
    for (auto& [name, one] : all) {
      if (!is_rare(one)) continue;
      if (found == nullptr || spent(one) < spent(*found)) found = &one;
    }
    return found;
  }

  /// Splits after the life in which the parent reached the behaviour, or at some decision in it.
  static Split split_after(Stream& random, const Parent& parent) {
    Split split{.life = parent.life + 1, .seed = random.next() & kSeedMask};
    split.choosing = choosing(random);
    const bool room = split.life < kTimelineLives;
    if (room && (parent.decisions < 2 || !chance(random, 4))) return split;
    split.life = parent.life;
    split.decision = 1 + random.below(std::max<std::uint64_t>(parent.decisions, 2) - 1);
    return split;
  }

  // --- taking what was seen

  void take(const Planned& planned, const TimelineResult& seen) {
    auto& coverage = result_.coverage;
    ++coverage.runs;
    ++(planned.branch ? coverage.branches : anew_);
    if (!request_.mutant.empty() && !seen.unasked) ++result_.asked;
    note_size(planned, seen);
    std::set<std::string_view> reached;
    for (const auto& mark : seen.marks) reached.insert(mark.name);
    for (auto& [name, count] : counts_) count += reached.count(name);
    note(planned, seen, seen.marks, marks_);
    note(planned, seen, seen.tuples, tuples_);
    if (seen.verdict == reports::Verdict::kFail) note_failure(planned, seen);
    if (seen.verdict == reports::Verdict::kInconclusive) ++coverage.inconclusive;
    if (coverage.runs >= next_point_) add_point();
    request_.taken(planned.recipe, seen);
  }

  static void note(const Planned& planned, const TimelineResult& seen,
                   const std::vector<Sighting>& sightings, Behaviours& all) {
    std::set<std::string_view> known;
    for (const auto& sighting : sightings) {
      Behaviour& behaviour = all[sighting.name];
      const bool first = known.insert(sighting.name).second;
      const bool inherited = planned.branch && sighting.life < planned.from_life;
      if (inherited) continue;
      behaviour.newest.at(sighting.life) = planned.recipe;
      if (first) note_first(planned, seen, sighting.life, behaviour);
    }
  }

  static void note_first(const Planned& planned, const TimelineResult& seen, std::size_t life,
                         Behaviour& behaviour) {
    if (!planned.branch) ++behaviour.hits;
    const std::uint64_t decisions = life < seen.lives.size() ? seen.lives[life].decisions : 0;
    auto& parents = behaviour.parents;
    parents.push_back({planned.recipe, life, decisions});
    // The earlier a behaviour came, the more lives are left to go on with.
    std::stable_sort(parents.begin(), parents.end(),
                     [](const Parent& a, const Parent& b) { return a.life < b.life; });
    if (parents.size() > kParentsMax) parents.pop_back();
  }

  /// Notes the lives whose schedule is by priority from their first decision on. Lives that repeat
  /// those of a parent do not count again.
  void note_size(const Planned& planned, const TimelineResult& seen) {
    bool any = false;
    for (std::size_t i = planned.from_life; i < seen.lives.size(); ++i) {
      const auto splits = planned.recipe.schedule_of(i).splits;
      if (splits.size() != 1 || splits.front().choosing != sim::Choosing::kPriority) continue;
      any = true;
      LifeSize& largest = result_.largest;
      largest.decisions = std::max(largest.decisions, seen.lives[i].decisions);
      largest.fibers = std::max(largest.fibers, seen.lives[i].fibers);
    }
    if (any) ++result_.by_priority;
  }

  void note_failure(const Planned& planned, const TimelineResult& seen) {
    const std::string signature = reports::signature_of(seen.code, seen.reason);
    auto& findings = result_.coverage.findings;
    const auto known = std::find_if(findings.begin(), findings.end(), [&](const auto& finding) {
      return finding.signature == signature;
    });
    if (known != findings.end()) {
      ++known->count;
      return;
    }
    findings.push_back({.signature = signature,
                        .code = seen.code,
                        .reason = seen.reason,
                        .count = 1,
                        .at_run = result_.coverage.runs,
                        .recipe = to_string(planned.recipe)});
  }

  void add_point() {
    const std::uint64_t runs = result_.coverage.runs;
    auto& curve = result_.coverage.curve;
    if (!curve.empty() && curve.back().runs == runs) return;
    const auto reached = std::count_if(counts_.begin(), counts_.end(),
                                       [](const auto& mark) { return mark.second > 0; });
    curve.push_back({runs, static_cast<std::uint64_t>(reached), tuples_.size()});
    next_point_ = runs + std::max<std::uint64_t>(runs / 4, 10);
  }

  const ExploreRequest& request_;
  ExploreResult result_;
  std::map<std::string, std::uint64_t> counts_;  ///< timelines by mark, also those by a parent
  Behaviours marks_;
  Behaviours tuples_;
  std::uint64_t anew_ = 0;  ///< timelines that began anew
  std::uint64_t next_point_ = 10;
};

}  // namespace

ExploreResult explore(const ExploreRequest& request) { return Search(request).run(); }

double priority_bound(const LifeSize& largest) {
  const sim::SchedulePlan plan;
  const auto decisions = static_cast<double>(std::max(largest.decisions, plan.horizon));
  return 1 / (static_cast<double>(std::max<std::uint64_t>(largest.fibers, 1)) *
              std::pow(decisions, plan.depth - 1));
}

}  // namespace reprise::driver

#include "driver/exhaust/loading_world.hpp"

#include <algorithm>
#include <map>

#include "core/adapters/posix/host_device.hpp"

namespace reprise::driver {
namespace {

/// Arguments common to all loads under one layout.
struct Loads {
  const sim::Layout& layout;
  std::span<const SavedLayout> saved;
  const Subject& subject;
  const sim::Policies& policies;
  const PairEnded& ended;
  const std::function<bool()>& stop;
};

/// Assigns the pairs of one world to its ranks, one after another. All ranks are fibers of one
/// thread.
class Course {
 public:
  Course(const Loads& loads, std::size_t first)
      : loads_(loads), next_(first), end_(loads.saved.size()) {}

  /// Called by each rank before it loads a pair. Returns the pair's tally; null if the pair must
  /// not be loaded.
  PairTally* enter(std::size_t pair) {
    if (pair >= end_) return nullptr;
    const auto open = open_.find(pair);
    if (open != open_.end()) return &open->second;
    if (loads_.stop()) {
      end_ = pair;
      return nullptr;
    }
    const SavedLayout& saved = loads_.saved[pair];
    const PairRule rule = rule_for(saved.layout, loads_.layout, loads_.subject.sharding);
    return &open_.try_emplace(pair, saved, rule, loads_.layout.world_size()).first->second;
  }

  void leave(std::size_t pair) {
    const auto open = open_.find(pair);
    if (!open->second.complete()) return;
    loads_.ended(pair, open->second.result());
    open_.erase(open);
    next_ = pair + 1;
  }

  /// Makes this pair the last one.
  void end_after(std::size_t pair) { end_ = std::min(end_, pair + 1); }

  /// Returns the next pair to load. A pair that only some ranks completed is reported as wrong, and
  /// is not loaded again.
  std::size_t settle(const sim::RunResult& run) {
    if (open_.empty()) return next_;
    const std::size_t pair = open_.begin()->first;
    PairResult broken{.code = std::string(name_of(Code::kInternal))};
    try {
      require_returned(run);
      broken.what = "its ranks ended differently";
    } catch (const Error& error) {
      broken.code = name_of(error.code());
      broken.what = error.what();
    }
    loads_.ended(pair, broken);
    return pair + 1;
  }

 private:
  const Loads& loads_;
  std::size_t next_;
  std::size_t end_;
  std::map<std::size_t, PairTally> open_;
};

void load_one(const Loads& loads, const SavedLayout& saved, const Ports& given, GlobalRank rank,
              PairTally& tally) {
  HostDevice device("node0", rank.value);
  NoTrace trace;
  const Ports ports{*saved.store, given.fabric, device, given.tasks, trace};
  sim::TrainingJob job(loading_config(loads.subject, loads.layout), ports.fabric,
                       loads.policies.job);
  overwrite(job.model_space());
  sim::LoadRequest request;
  const Ask ask = [&](const Candidate& offered) {
    request = job.load_request({.common = offered.common, .catalog = &offered.catalog});
    overwrite(request.wanted);
    return Wanted{&request.wanted, request.excused};
  };
  load(ports, job.world(), {.directory = kExhaustCheckpoint}, ask, loads.policies.load,
       &saved.metadata);
  tally.delivered(rank, request.wanted);
  job.take(request.wanted);
  tally.took(rank, job.model_space());
}

/// Loads one pair after another on this rank. Stops after an error, because an error makes the
/// ranks' communicators unusable.
void rank_main(const Loads& loads, Course& course, std::size_t first, const Ports& ports,
               GlobalRank rank) {
  for (std::size_t pair = first; PairTally* tally = course.enter(pair); ++pair) {
    try {
      load_one(loads, loads.saved[pair], ports, rank, *tally);
    } catch (const Error& error) {
      tally->refused(rank, error);
      course.end_after(pair);
    }
    course.leave(pair);
  }
}

}  // namespace

void load_under(const sim::Layout& layout, std::span<const SavedLayout> saved,
                const Subject& subject, const sim::Policies& policies, const PairEnded& ended,
                const std::function<bool()>& stop) {
  const Loads loads{layout, saved, subject, policies, ended, stop};
  sim::SimStore unused;
  for (std::size_t next = 0; next < saved.size();) {
    if (stop()) return;
    Course course(loads, next);
    sim::World world({.world_size = layout.world_size()}, unused);
    next = course.settle(world.run(
        [&](const Ports& ports, GlobalRank rank) { rank_main(loads, course, next, ports, rank); }));
  }
}

}  // namespace reprise::driver

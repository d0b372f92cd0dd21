#include "core/adapters/posix/posix_store.hpp"
#include "core/base/hash.hpp"
#include "scenarios/driver/lane.hpp"
#include "scenarios/driver/rank_program.hpp"
#include "sim/world/copy_tree.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver {
namespace {

class SimLane final : public Lane {
 public:
  SimLane(const Scenario& scenario, const LaneOptions& options)
      : scenario_(scenario), options_(options) {
    if (!options.mutant.empty()) sim::mutant_named(options.mutant).apply(policies_);
  }

  IncarnationRecord run(std::size_t incarnation) override {
    const sim::Layout& layout = scenario_.incarnations[incarnation].layout;
    sim::WorldOptions world_options;
    world_options.seed = mix64(options_.seed, incarnation);
    world_options.world_size = layout.world_size();
    IncarnationRecord record;
    record.layout = to_string(layout);
    record.ranks.resize(static_cast<std::size_t>(layout.world_size()));
    sim::World world(world_options, store_);
    const sim::RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
      record.ranks[static_cast<std::size_t>(rank.value)] =
          run_rank(scenario_, incarnation, policies_, ports);
    });
    for (std::size_t r = 0; r < record.ranks.size(); ++r)
      take_end(result.ranks[r], record.ranks[r]);
    record.event_hash = hex(result.event_hash);
    store_.crash();  // an incarnation ends as hard as it can: what was not synced is gone
    return record;
  }

  void finish() override {
    if (options_.keep.empty()) return;
    PosixStore kept(options_.keep);
    sim::copy_tree({store_}, {kept, scenario_.name});
  }

 private:
  /// A rank that never came to write its record gets one from what the world saw of its end.
  static void take_end(const sim::RankOutcome& outcome, RankRecord& record) {
    if (outcome.end == sim::RankEnd::kReturned) return;
    record.ending = outcome.end == sim::RankEnd::kHung     ? Ending::kHung
                    : outcome.end == sim::RankEnd::kFailed ? Ending::kFailed
                    : outcome.end == sim::RankEnd::kDefect ? Ending::kDefect
                                                           : Ending::kLost;
    record.code = outcome.error ? std::string(name_of(outcome.error->code())) : "INTERNAL";
    record.message = outcome.error ? outcome.error->what() : outcome.message;
  }

  const Scenario& scenario_;
  LaneOptions options_;
  sim::Policies policies_;
  sim::SimStore store_;
};

}  // namespace

std::unique_ptr<Lane> make_sim_lane(const Scenario& scenario, const LaneOptions& options) {
  return std::make_unique<SimLane>(scenario, options);
}

}  // namespace reprise::driver

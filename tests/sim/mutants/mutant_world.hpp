#pragma once
// Runs two lives of a job in a simulated world, with the real engine: the first trains and saves,
// the second loads and continues. Collects the engine's refusals and the judges' findings.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/adapters/local/solo_fabric.hpp"
#include "properties/derived.hpp"
#include "properties/inventory.hpp"
#include "properties/replica_audit.hpp"
#include "properties/state_judge.hpp"
#include "sim/job/job.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim {

/// Settings of the job that saves and of the job that loads.
struct Lives {
  const char* model = "gpt-tiny";
  const char* save = "tp2 dp2";
  const char* sharding = "fully_reshardable";
  const char* load = "";           ///< layout of the load; empty if the same as `save`
  const char* load_sharding = "";  ///< sharding of the load; empty if the same as `sharding`
  std::int32_t ranks_per_node = 0;
  std::size_t dim = 0;
  std::vector<std::int32_t> ranks = {};         ///< ranks of both jobs; if empty, 0 .. n-1
  std::vector<ModuleConfig> modules = {};       ///< modules of both jobs; replace model and layout
  std::vector<ModuleConfig> load_modules = {};  ///< modules of the loading job, if they differ
  /// True if the loading job's parameter groups are in reverse order.
  bool plain_first_at_load = false;
  bool random_by_dp = false;
  std::vector<std::string> lacks = {};  ///< groups that no job passes to any call
  bool trains_before_load = false;      ///< true if the loading job has already trained
};

inline std::string or_else(std::string_view text, std::string_view otherwise) {
  return std::string(text.empty() ? otherwise : text);
}

inline std::ostream& operator<<(std::ostream& out, const Lives& lives) {
  if (!lives.modules.empty()) return out << to_string(lives.modules);
  return out << lives.model << ", " << lives.save << " " << lives.sharding << " -> "
             << or_else(lives.load, lives.save) << " "
             << or_else(lives.load_sharding, lives.sharding)
             << (lives.ranks.empty() ? "" : " on other ranks");
}

/// Maps the name of each code or verdict to the first message about it.
using Verdicts = std::map<std::string, std::string>;

class MutantWorld {
 public:
  static constexpr int kStepsBefore = 2;
  static constexpr int kStepsAfter = 1;
  static constexpr std::uint64_t kSeed = 7;

  MutantWorld(const Lives& lives, const Policies& policies) : lives_(lives), policies_(policies) {}

  Verdicts run() {
    live(config(kSeed, lives_.save, lives_.sharding), [this](TrainingJob& job, Ports& ports) {
      train(job, kStepsBefore);
      save(job, ports);
    });
    add(judge_replicas(pages_, Pages::kAll));
    saved_ = !refused_;
    if (saved_) {
      live(config(99, or_else(lives_.load, lives_.save),
                  or_else(lives_.load_sharding, lives_.sharding)),
           [this](TrainingJob& job, Ports& ports) {
             if (lives_.trains_before_load) job.step();
             load(job, ports);
             compare(job);
             train(job, kStepsAfter);
             compare(job);
           });
    }
    if (!refused_ && elements_ == 0) say("ORACLE_VACUOUS", "nothing was compared");
    return verdicts_;
  }

  /// True if run() wrote a checkpoint, whatever its content.
  bool saved() const { return saved_; }

 private:
  JobConfig config(std::uint64_t seed, const std::string& layout,
                   const std::string& sharding) const {
    std::vector<GlobalRank> ranks;
    for (const auto rank : lives_.ranks) ranks.push_back({rank});
    const bool loads = seed != kSeed;
    return {.makeup = {.model = lives_.model,
                       .layout = parse_layout(layout),
                       .ranks = ranks,
                       .modules = loads && !lives_.load_modules.empty() ? lives_.load_modules
                                                                        : lives_.modules},
            .training = {.seed = seed, .random_by_dp = lives_.random_by_dp},
            .checkpoint = {.optimizer_sharding = sharding_named(sharding),
                           .shard_dim = lives_.dim,
                           .plain_first = loads && lives_.plain_first_at_load},
            .groups = {.source = {groups_named(lives_.lacks)}},
            .hardware = {.ranks_per_node = lives_.ranks_per_node}};
  }

  void live(const JobConfig& job_config,
            const std::function<void(TrainingJob&, Ports&)>& rank_main) {
    const Group members = job_members(modules_of(job_config));
    const auto last = std::max_element(members.members().begin(), members.members().end());
    World world({.world_size = last->value + 1}, store_);
    const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
      if (!members.rank_of(rank)) return;
      TrainingJob job(job_config, ports.fabric, policies_.job);
      rank_main(job, ports);
    });
    for (const auto& rank : result.ranks) {
      if (rank.end == RankEnd::kReturned) continue;
      refused_ = true;
      say(rank.error ? std::string(name_of(rank.error->code())) : "a defect of ours",
          rank.error ? rank.error->what() : rank.message);
    }
  }

  void train(TrainingJob& job, int steps) {
    for (int i = 0; i < steps; ++i) {
      const StepRecord own = job.step();
      if (own == reference(own.step).record) continue;
      std::ostringstream text;
      text << own << " instead of " << reference(own.step).record;
      say("TRAJECTORY_DIVERGENCE", text.str());
    }
  }

  void save(TrainingJob& job, Ports& ports) {
    const StateDict live = job.live_state();
    const StateDict saved = job.state();
    pages_.push_back(audit_page(job.rank(), job.iteration(), saved));
    add(judge_inventory(keys_of(live), keys_of(saved), keys_of(job.load_template()), {}));
    add(judge_common_inventory(live.common, saved.common));
    SaveOptions options;
    options.directory = "run";
    options.step = job.iteration().value;
    sim::save(policies_, ports, job.world_group(), saved, options);
  }

  void load(TrainingJob& job, Ports& ports) {
    const auto common = read_common(ports.store, job.world(), "run", policies_.load.leader);
    LoadRequest request = job.load_request(common ? &*common : nullptr);
    LoadOptions options;
    options.directory = "run";
    options.excused = request.excused;
    reprise::load(ports, job.world(), request.wanted, options, policies_.load);
    job.take(request.wanted);
  }

  /// Requires that each rank has the host stream that belongs to its coordinates.
  void judge_streams(TrainingJob& job) {
    for (const auto& leaf : job.live_state().objects) {
      if (leaf.key != kRngKey) continue;
      const auto at = [&leaf](std::size_t d) {
        return static_cast<std::int32_t>(leaf.coordinate[d]);
      };
      const auto own = decode_rng(leaf.value).front();
      if (own.host.seed == HostRng::fresh(kSeed, at(0), at(1)).host.seed) continue;
      say("RNG_STREAM_COLLAPSE", "the stream of " + to_string(leaf.coordinate) + " is another's");
    }
  }

  void compare(TrainingJob& job) {
    judge_streams(job);
    const StateDict own = job.model_space();
    const RankState held{job.rank(), &own};
    const GlobalState& expected = reference(job.iteration()).state;
    JudgeOptions options{.expected = ExpectedTensors::kItsPart, .comparable = layout_free};
    for (const auto& leaf : own.objects) {
      if (leaf.key.ends_with(kRngKey)) options.skipped_objects.push_back(leaf.key);
    }
    const StateEvidence evidence = judge_state(expected, held, options);
    elements_ += evidence.compared.elements;
    add(evidence.findings);
    add(judge_derived(held, expected).findings);
  }

  struct ReferenceState {
    StepRecord record;
    GlobalState state;
  };

  /// Returns the state of the uninterrupted job, which runs on one rank with correct policies.
  static const ReferenceState& reference_of(const Lives& lives, Step step) {
    static std::map<std::string, std::vector<ReferenceState>> known;
    std::string name = lives.model;
    auto modules = lives.modules;
    for (auto& module : modules) {
      module.layout = {};
      module.ranks = {};
      name +=
          " " + module.name + " " + module.model + " " + std::to_string(module.loss_scale.scale);
    }
    auto& steps = known[name];
    if (steps.empty()) {
      SoloFabric fabric;
      TrainingJob job(
          {.makeup = {.model = lives.model, .modules = modules}, .training = {.seed = 7}}, fabric);
      for (int i = 0; i < kStepsBefore + kStepsAfter; ++i) {
        const StepRecord record = job.step();
        const StateDict state = job.model_space();
        const RankState whole{GlobalRank{0}, &state};
        judged::Findings findings;
        steps.push_back({record, assemble({&whole, 1}, findings)});
      }
    }
    return steps.at(static_cast<std::size_t>(step.value - 1));
  }
  const ReferenceState& reference(Step step) const { return reference_of(lives_, step); }

  void say(const std::string& code, const std::string& message) {
    verdicts_.emplace(code, message);
  }
  void add(const judged::Findings& findings) {
    for (const auto& finding : findings) {
      std::ostringstream text;
      text << finding;
      say(std::string(name_of(finding.code)), text.str());
    }
  }

  Lives lives_;
  Policies policies_;
  SimStore store_;
  std::vector<AuditPage> pages_;
  Verdicts verdicts_;
  std::uint64_t elements_ = 0;
  bool refused_ = false;
  bool saved_ = false;
};

}  // namespace reprise::sim

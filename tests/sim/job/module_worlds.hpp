#pragma once
// Runs jobs of several modules in a simulated world. The engine writes and reads their checkpoints.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "properties/global_state.hpp"
#include "sim/job/job.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim {

inline ModuleConfig module_on(const std::string& name, const std::string& model, const char* layout,
                              const std::vector<std::int32_t>& ranks = {},
                              const std::string& sharding = "fully_reshardable") {
  ModuleConfig module{.name = name,
                      .model = model,
                      .layout = parse_layout(layout),
                      .optimizer_sharding = sharding_named(sharding)};
  for (const auto rank : ranks) module.ranks.push_back({rank});
  return module;
}

inline JobConfig job_of(const std::vector<ModuleConfig>& modules, std::uint64_t seed = 7) {
  JobConfig config{.training = {.seed = seed}};
  config.makeup.modules = side_by_side(modules);
  config.groups.fallback = RegistryUse::kForbidden;
  return config;
}

/// Everything that a rank uses in a life of the job.
struct Seat {
  TrainingJob& job;
  Ports& ports;
  std::vector<StepRecord>& records;
  std::vector<std::string>& notes;  ///< messages that loads report

  void train(int steps) const {
    for (int i = 0; i < steps; ++i) records.push_back(job.step());
  }
  void save(const SaveParts& parts = {}) const {
    const StateDict state = job.state(parts);
    SaveOptions options;
    options.directory = "run";
    options.step = job.iteration().value;
    Save::begin(ports, job.world_group(), state, options).finish();
  }
  LoadResult load(bool release = false) const {
    LoadRequest request;
    const LoadOptions options{.directory = "run"};
    LoadResult report = reprise::load(ports, job.world(), options, [&](const Candidate& offered) {
      request = job.load_request(
          {.common = offered.common, .catalog = &offered.catalog, .release = release});
      return Wanted{&request.wanted, request.excused};
    });
    notes = request.notes;
    job.take(request.wanted);
    return report;
  }
};

using View = StateDict (*)(TrainingJob&);
inline StateDict model_space(TrainingJob& job) { return job.model_space(); }
inline StateDict live(TrainingJob& job) { return job.live_state(); }
/// Returns the state that the job passes to a save; collective.
inline StateDict handed_over(TrainingJob& job) { return job.state(); }

/// Result of one life of a job.
struct Life {
  GlobalState state;  ///< the part of the state that the view selects
  judged::Findings findings;
  std::vector<Value> commons;  ///< the common state that each rank has
  std::vector<std::vector<ObjectLeaf>> objects;
  std::vector<std::vector<StepRecord>> records;
  std::vector<std::vector<std::string>> notes;
  std::vector<std::optional<Error>> errors;  ///< the error of each rank, if any

  bool ended_well() const { return why().empty(); }
  /// Returns the text of the first rank's error; empty if no rank has one.
  std::string why() const {
    for (const auto& error : errors) {
      if (error) return error->what();
    }
    return {};
  }
  /// Returns the life. Throws if it ended with an error, because then there is nothing to check.
  Life sound() && {
    for (const auto& error : errors) {
      if (error) throw *error;
    }
    return std::move(*this);
  }
};

/// Makes a job on every rank and runs `work`.
inline Life live_on(SimStore& store, const JobConfig& config,
                    const std::function<void(const Seat&)>& work, View view = model_space,
                    const JobPolicy& policy = {}) {
  const auto ranks = job_members(modules_of(config)).size();
  const auto count = static_cast<std::size_t>(ranks);
  Life life{.commons = std::vector<Value>(count)};
  life.objects.resize(count);
  life.records.resize(count);
  life.notes.resize(count);
  life.errors.resize(count);
  std::vector<StateDict> dicts(count);
  World world({.world_size = ranks}, store);
  std::vector<std::unique_ptr<TrainingJob>> jobs(count);
  const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
    const auto r = static_cast<std::size_t>(rank.value);
    jobs[r] = std::make_unique<TrainingJob>(config, ports.fabric, policy);
    work({*jobs[r], ports, life.records[r], life.notes[r]});
    dicts[r] = view(*jobs[r]);
  });
  std::vector<RankState> views;
  for (std::size_t r = 0; r < count; ++r) {
    life.errors[r] = result.ranks[r].error;
    CHECK(result.ranks[r].message.empty(), r, result.ranks[r].message);
    life.commons[r] = dicts[r].common;
    life.objects[r] = dicts[r].objects;
    views.push_back({{static_cast<std::int32_t>(r)}, &dicts[r]});
  }
  if (life.ended_well()) life.state = assemble(views, life.findings);
  return life;
}

inline Life trained_on(const JobConfig& config, int steps, View view = model_space) {
  SimStore store;
  return live_on(
      store, config, [steps](const Seat& seat) { seat.train(steps); }, view);
}

/// Runs a life that trains and saves. Throws the error of the first rank that fails.
inline Life saved_on(SimStore& store, const JobConfig& config, int steps,
                     const SaveParts& parts = {}, const JobPolicy& policy = {}) {
  return live_on(
             store, config,
             [&](const Seat& seat) {
               seat.train(steps);
               seat.save(parts);
             },
             model_space, policy)
      .sound();
}

/// Runs a life that loads and trains.
inline Life resumed_on(SimStore& store, const JobConfig& config, int steps,
                       View view = model_space) {
  return live_on(
      store, config,
      [steps](const Seat& seat) {
        seat.load();
        seat.train(steps);
      },
      view);
}

/// Returns the value of an object from the rank that has it.
inline Value object_in(const Life& life, const std::string& key) {
  const auto* object = life.state.object(key);
  return object == nullptr ? Value() : object->value;
}

inline bool is_random(const std::string& key) { return key.find("rng_state") != std::string::npos; }

/// Returns the first tensor, optimizer setting or common value that differs; empty if none does.
/// Ignores random streams, which depend on grids.
inline std::string first_difference(const GlobalState& a, const GlobalState& b) {
  if (a.tensors.size() != b.tensors.size()) return "number of tensors";
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    const auto& one = a.tensors[t];
    const auto& other = b.tensors[t];
    if (one.key != other.key) return one.key + " for " + other.key;
    if (one.shape != other.shape || one.data != other.data) return one.key;
  }
  const auto settings = [](const GlobalState& state) {
    Dict all;
    for (const auto& object : state.objects) {
      if (!is_random(object.key)) all.emplace_back(object.key, object.value);
    }
    return Value(all);
  };
  for (const auto& differing : differences(settings(a), settings(b), 1)) return differing.path;
  for (const auto& differing : differences(layout_free(a.common), layout_free(b.common), 1)) {
    return "common" + differing.path + ": " + differing.left + ", " + differing.right;
  }
  return "";
}

}  // namespace reprise::sim

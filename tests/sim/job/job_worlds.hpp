#pragma once
// Runs whole jobs in tests: trains jobs, assembles their state, and loads one job's state into
// another without files.

#include <mutex>

#include "properties/content_digest.hpp"
#include "properties/global_state.hpp"
#include "sim/job/job.hpp"
#include "tests/contracts/thread_fabric.hpp"

namespace reprise::sim {

struct Trained {
  GlobalState state;
  judged::Findings findings;
  std::vector<StepRecord> records;  ///< records of rank 0
  std::uint64_t digest = 0;         ///< digest of all tensors
};

/// Creates a job on every rank, runs `work` with it, and then assembles the part of the jobs' state
/// that `view` selects.
inline Trained run_jobs(const JobConfig& config, const JobPolicy& policy,
                        const std::function<void(TrainingJob&, std::vector<StepRecord>&)>& work,
                        StateDict (TrainingJob::*view)() = &TrainingJob::live_state) {
  const auto ranks = static_cast<std::size_t>(config.makeup.layout.world_size());
  std::vector<std::unique_ptr<TrainingJob>> jobs(ranks);
  std::vector<std::vector<StepRecord>> records(ranks);
  std::vector<StateDict> dicts(ranks);
  contracts::run_world(config.makeup.layout.world_size(), [&](Fabric& fabric) {
    const auto rank = static_cast<std::size_t>(fabric.rank().value);
    jobs[rank] = std::make_unique<TrainingJob>(config, fabric, policy);
    work(*jobs[rank], records[rank]);
    dicts[rank] = (jobs[rank].get()->*view)();
  });
  std::vector<RankState> views;
  for (std::size_t r = 0; r < ranks; ++r) {
    views.push_back({{static_cast<std::int32_t>(r)}, &dicts[r]});
  }
  Trained trained;
  trained.state = assemble(views, trained.findings);
  trained.records = records.front();
  for (const auto& dict : dicts) trained.digest += content_digest(dict);
  return trained;
}

inline void train(TrainingJob& job, int steps, std::vector<StepRecord>& records) {
  for (int i = 0; i < steps; ++i) records.push_back(job.step());
}

inline Trained trained(const JobConfig& config, int steps,
                       StateDict (TrainingJob::*view)() = &TrainingJob::model_space) {
  return run_jobs(
      config, {}, [steps](TrainingJob& job, auto& records) { train(job, steps, records); }, view);
}
inline Trained trained(const Layout& layout, int steps) {
  return trained({.makeup = {.layout = layout}, .training = {.seed = 7}}, steps);
}

/// Simulates a load from a state in memory: fills each requested tensor that the saved state
/// contains.
inline void fill(StateDict& wanted, const GlobalState& saved) {
  for (auto& leaf : wanted.tensors) {
    const GlobalTensor* known = saved.tensor(leaf.key);
    if (known == nullptr) continue;
    const std::size_t width = size_of(leaf.dtype);
    for (const auto& piece : leaf.pieces) {
      const Bytes elements = elements_of(*known, piece.box);
      copy_strided({elements.data(), contiguous_strides(piece.box.extent)},
                   {leaf.data + static_cast<std::size_t>(piece.local) * width, piece.strides},
                   piece.box.extent, width);
    }
  }
  for (auto& leaf : wanted.objects) {
    const auto* known = saved.object(object_key(leaf.key, leaf.coordinate, leaf.grid));
    if (known != nullptr) leaf.value = known->value;
  }
  wanted.common = saved.common;
}

inline void load_from(TrainingJob& job, const GlobalState& saved) {
  auto request = job.load_request(&saved.common);
  fill(request.wanted, saved);
  job.take(request.wanted);
}

/// Makes a new job that loads `saved` and trains for `steps` steps.
inline Trained resumed(const GlobalState& saved, const JobConfig& config, int steps,
                       const JobPolicy& policy = {}) {
  return run_jobs(
      config, policy,
      [&](TrainingJob& job, auto& records) {
        load_from(job, saved);
        train(job, steps, records);
      },
      &TrainingJob::model_space);
}
inline Trained resumed(const GlobalState& saved, const Layout& layout, int steps,
                       const JobPolicy& policy = {}) {
  return resumed(saved, {.makeup = {.layout = layout}, .training = {.seed = 1234}}, steps, policy);
}

/// Returns the first tensor or value that differs; empty if none does.
inline std::string difference(const GlobalState& a, const GlobalState& b) {
  if (a.tensors.size() != b.tensors.size()) return "number of tensors";
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    const bool same =
        a.tensors[t].key == b.tensors[t].key && a.tensors[t].data == b.tensors[t].data;
    if (!same) return a.tensors[t].key;
  }
  const auto values = differences(layout_free(a.common), layout_free(b.common), 1);
  return values.empty() ? "" : "common" + values.front().path;
}

}  // namespace reprise::sim

#pragma once
// Makes the leaves of one module for a save or a load. Each kind of leaf has its own function.

#include <cstddef>

#include "core/state/catalog.hpp"
#include "sim/job/data/job_data.hpp"
#include "sim/job/data/job_groups.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/job/modules/module_keys.hpp"

namespace reprise::sim {

/// All inputs that determine the leaves of a module.
struct Making {
  const JobPolicy& policy;
  Module& module;
  CheckpointGroups groups;  ///< the dp_cp group comes from the metadata
  ContentMetadata metadata;
  ModuleKeys keys;
  SaveParts parts = {};
  const Catalog* catalog = nullptr;  ///< catalog of the checkpoint to load
  /// True if the leaves serve to compare jobs. They then have no vocabulary padding, and include
  /// only this rank's own random streams.
  bool model_space = false;
};

Making making_of(JobData& job, const JobPolicy& policy, std::size_t module, const Basis& basis,
                 KeyForm keys, const SaveParts& parts = {});

/// Type of JobPolicy's functions that describe a rank's part of a tensor.
using Describe = decltype(&JobPolicy::described_save);

/// Adds leaves of one module to a state. The leaves point into the job's memory.
class ModuleLeaves {
 public:
  /// `job` must outlive this object.
  ModuleLeaves(const JobData& job, Making making) : job_(job), making_(std::move(making)) {}

  const Making& making() const { return making_; }

  void add_weights(StateDict& state) const;
  /// Adds the weights, split into the same shares as the optimizer's state.
  void add_stored(StateDict& state, Family& family, Describe described) const;
  void add_slots(StateDict& state, Family& family, Sharding keys, Describe described) const;
  void add_random(StateDict& state) const;
  /// Adds the objects of an optimizer's entry to `state`. Returns the remaining part of the entry.
  Dict add_settings(StateDict& state, const Family& family, Sharding sharding) const;

 private:
  Holding holding_of(const Family& family, std::size_t parameter,
                     const OptimizerShard* share) const;
  /// Returns this rank's index in the parameter's mesh, computed from the groups it was given.
  GroupRank place_of(const LocalParameter& parameter) const;
  TensorLeaf leaf(const LocalParameter& parameter, const Description& description, DType dtype,
                  std::byte* data) const;
  /// If the checkpoint pads a vocabulary differently, requests only the rows that exist both in the
  /// checkpoint and in this job.
  void fit_to_stored(TensorLeaf& leaf, const ParameterSpec& spec) const;

  const JobData& job_;
  Making making_;
};

}  // namespace reprise::sim

#pragma once
// Defines one rank's part of a module: parameters, optimizers, random streams.

#include <memory>
#include <string>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/model/host_rng.hpp"
#include "sim/job/modules/content_metadata.hpp"
#include "sim/job/modules/module_config.hpp"
#include "sim/job/modules/module_keys.hpp"
#include "sim/job/optimizer/family.hpp"

namespace reprise::sim {

/// Random streams of a rank for one module.
struct Streams {
  HostRng host;
  HostRng expert;

  void advance() {
    host.advance();
    expert.advance();
  }
  /// Restores the streams of one kind from `before`.
  void put_back(const Streams& before, RandomStream HostRng::*kind) {
    host.*kind = before.host.*kind;
    expert.*kind = before.expert.*kind;
  }
};

/// Names under which a load requests state and later finds it.
struct RequestNames {
  std::string rng_prefix;    ///< prefix of the keys of random states
  ContentMetadata metadata;  ///< metadata with the checkpoint's sharding
  ModuleKeys keys;
};

struct Module {
  ModuleConfig config;
  ModelSpec model;
  std::shared_ptr<const Mesh> dense_mesh;
  std::shared_ptr<const Mesh> expert_mesh;
  std::shared_ptr<Communicator> group;  ///< communicator of all ranks of the module
  std::vector<Family> families;         ///< two (a chain) if the module has experts, otherwise one
  Streams streams;
  Streams streams_before;  ///< streams before the iteration's first run
  /// Streams of all ranks in this rank's dp x cp group, in the group's order. Used only if
  /// the streams of these ranks differ.
  std::vector<HostRng> streams_over_dp;
  std::shared_ptr<Communicator> dp_cp;  ///< exchanges `streams_over_dp`; null if unused
  GroupRank place;                      ///< index of this rank among the ranks of the module
  RequestNames asked;                   ///< names in the last request

  bool is_whole_job() const { return config.name.empty(); }
  std::string prefix() const { return module_prefix(config.name); }
  const Group& members() const { return dense_mesh->members(); }
};

/// Reorders streams: `streams` has one entry for each member of `held`, and the result has one for
/// each member of `order`. Throws LAYOUT_MISMATCH if `held` lacks a member of `order`.
std::vector<HostRng> streams_of(const std::optional<Group>& order, std::span<const HostRng> streams,
                                const Group& held);

/// Returns "module vision" or "the job", for messages.
std::string who(const Module& module);

}  // namespace reprise::sim

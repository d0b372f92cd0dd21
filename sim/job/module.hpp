#pragma once
// One rank's part of a module: its parameters, their optimizers, its random streams.

#include <memory>
#include <string>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/content_metadata.hpp"
#include "sim/job/family.hpp"
#include "sim/job/host_rng.hpp"
#include "sim/job/module_config.hpp"
#include "sim/job/module_keys.hpp"

namespace reprise::sim {

/// A rank's random streams of a module.
struct Streams {
  HostRng host;
  HostRng expert;

  void advance() {
    host.advance();
    expert.advance();
  }
  /// One kind of them as it was.
  void put_back(const Streams& before, RandomStream HostRng::*kind) {
    host.*kind = before.host.*kind;
    expert.*kind = before.expert.*kind;
  }
};

/// What a load asked of a checkpoint, by which what was loaded is found again.
struct AskedOfCheckpoint {
  std::string rng_prefix;    ///< of the keys of random states
  ContentMetadata metadata;  ///< with the checkpoint's sharding
  ModuleKeys keys;
};

struct Module {
  ModuleConfig config;
  ModelSpec model;
  std::shared_ptr<const Mesh> dense_mesh;
  std::shared_ptr<const Mesh> expert_mesh;
  std::shared_ptr<Communicator> group;  ///< all of the module's ranks
  std::vector<Family> families;         ///< a chain of two where it has experts
  Streams streams;
  Streams streams_before;  ///< the iteration's initial run
  /// Of the ranks of this rank's dp x cp group, in its order, where each has a stream of its own.
  std::vector<HostRng> streams_over_dp;
  std::shared_ptr<Communicator> dp_cp;  ///< over which these are told; else nullptr
  GroupRank place;                      ///< this rank among the module's
  AskedOfCheckpoint asked;              ///< last

  bool is_whole_job() const { return config.name.empty(); }
  std::string prefix() const { return module_prefix(config.name); }
  const Group& members() const { return dense_mesh->members(); }
};

/// The streams of `order`'s members, in its order, of those that `held`'s members have.
/// LAYOUT_MISMATCH if one of them has none.
std::vector<HostRng> streams_of(const std::optional<Group>& order, std::span<const HostRng> streams,
                                const Group& held);

/// "module vision", "the job"
std::string who(const Module& module);

}  // namespace reprise::sim

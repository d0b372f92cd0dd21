#pragma once
// Defines a job whose whole state is one number, its generation. Every element, object and common
// value contains this number.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/load/load.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise::sim {

struct TinyJob {
  TinyJob(GlobalRank rank, std::int32_t ranks, std::int64_t generation)
      : elements{generation, generation} {
    const auto r = static_cast<std::int64_t>(rank.value);
    TensorLeaf leaf;
    leaf.key = "w";
    leaf.dtype = DType::kInt64;
    leaf.shape = {2 * std::int64_t{ranks}};
    leaf.pieces = {contiguous_piece(Box{{2 * r}, {2}})};
    leaf.data = reinterpret_cast<std::byte*>(elements.data());
    state.tensors.push_back(leaf);
    state.objects.push_back({"o", {ranks}, {r}, 0, Value(generation)});
    state.common = Dict{{"generation", generation}};
  }
  TinyJob(const TinyJob&) = delete;
  TinyJob& operator=(const TinyJob&) = delete;

  /// Returns the generation if it is the same in all content; otherwise, returns nothing.
  std::optional<std::int64_t> generation() const {
    std::set<std::int64_t> found(elements.begin(), elements.end());
    found.insert(*state.objects[0].value.as<std::int64_t>());
    found.insert(*state.common.find("generation")->as<std::int64_t>());
    return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
  }

  std::vector<std::int64_t> elements;
  StateDict state;
};

inline std::shared_ptr<Communicator> all_ranks(const Ports& ports) {
  return ports.fabric.communicator(Group::world(ports.fabric.world_size()));
}

/// Loads the checkpoint at `path`. Returns its generation, or -1 if it contains several. All ranks
/// must call this together.
inline std::int64_t loaded(const Ports& ports, const std::string& path) {
  TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), -2);
  LoadOptions options;
  options.directory = path;
  const auto ask = [&job](const Candidate&) { return Wanted{&job.state, {}}; };
  load(ports, *all_ranks(ports), options, ask);
  return job.generation().value_or(-1);
}

}  // namespace reprise::sim

#pragma once
// A case of tests/interop/make_owners.py: the holders of shards, and the owners that Megatron-Core
// chose for them.

#include <istream>
#include <sstream>
#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

struct ElectedShard {
  std::string key;
  Box box;
  GroupRank owner;
};

struct OwnersCase {
  std::vector<LocalPlan> plans;
  std::vector<ElectedShard> shards;
};

inline DType dtype_of_width(std::size_t width) {
  for (const DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kFloat32}) {
    if (size_of(dtype) == width) return dtype;
  }
  return DType::kFloat64;
}

inline OwnersCase read_owners_case(std::istream& in) {
  OwnersCase read;
  std::vector<std::vector<TensorOffer>> given;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind('#', 0) == 0) continue;
    std::istringstream row(line);
    if (given.empty()) {
      std::size_t ranks = 0;
      row >> ranks;
      given.resize(ranks);
      continue;
    }
    ElectedShard shard{.key = {}, .box = {{0}, {0}}, .owner = {}};
    TensorOffer offer{.form = {.key = {}, .shape = {0}}, .boxes = {}, .denied = {}};
    std::size_t width = 0;
    row >> shard.owner.value >> shard.key >> shard.box.offset[0] >> shard.box.extent[0] >>
        offer.form.shape[0] >> width;
    offer.form.key = shard.key;
    offer.form.dtype = dtype_of_width(width);
    offer.boxes = {shard.box};
    for (std::size_t holder = 0; row >> holder; ++offer.replica) {
      given.at(holder).push_back(offer);
    }
    read.shards.push_back(std::move(shard));
  }
  for (auto& offers : given) {
    std::sort(offers.begin(), offers.end(),
              [](const TensorOffer& a, const TensorOffer& b) { return a.form.key < b.form.key; });
    read.plans.emplace_back().given = GivenOffers(offers);
  }
  return read;
}

/// Returns the shards whose owner in `plan` is not the one that Megatron-Core chose.
inline std::vector<std::string> owned_otherwise(const OwnersCase& expected,
                                                const GlobalPlan& plan) {
  std::vector<std::string> others;
  for (const auto& shard : expected.shards) {
    const auto tensor = std::lower_bound(
        plan.tensors.begin(), plan.tensors.end(), shard.key,
        [](const PlannedTensor& planned, const std::string& key) { return planned.key < key; });
    const auto at = std::lower_bound(tensor->boxes->begin(), tensor->boxes->end(), shard.box);
    const auto owner = tensor->owners.at(static_cast<std::size_t>(at - tensor->boxes->begin()));
    if (owner == shard.owner && *at == shard.box) continue;
    others.push_back(shard.key + " " + to_string(shard.box) + ": rank " +
                     std::to_string(owner.value) + ", Megatron-Core: rank " +
                     std::to_string(shard.owner.value));
  }
  return others;
}

}  // namespace reprise

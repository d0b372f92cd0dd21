#include "driver/judges/holders.hpp"

#include <algorithm>

#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

/// A communicator that can't communicate. A job that is built but never run needs no other.
class SilentCommunicator final : public Communicator {
 public:
  SilentCommunicator(Group group, GroupRank rank) : group_(std::move(group)), rank_(rank) {}

  const Group& group() const override { return group_; }
  GroupRank rank() const override { return rank_; }
  void barrier() override { refuse(); }
  std::vector<Bytes> all_gather(ByteSpan /*mine*/) override { refuse(); }
  Bytes broadcast(GroupRank /*root*/, ByteSpan /*bytes*/) override { refuse(); }
  std::vector<std::int64_t> all_reduce(Reduce /*how*/,
                                       std::span<const std::int64_t> /*mine*/) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    throw Error(Code::kInternal, "a job that only reports what it holds does not communicate");
  }

  Group group_;
  GroupRank rank_;
};

class SilentFabric final : public Fabric {
 public:
  SilentFabric(GlobalRank rank, std::int32_t world_size) : rank_(rank), world_size_(world_size) {}

  GlobalRank rank() const override { return rank_; }
  std::int32_t world_size() const override { return world_size_; }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    const auto member = group.rank_of(rank_);
    CHECK(member.has_value(), rank_, group);
    return std::make_shared<SilentCommunicator>(group, *member);
  }

 private:
  GlobalRank rank_;
  std::int32_t world_size_;
};

/// Returns the size of a world that contains all of these ranks.
std::int32_t world_of(const Group& ranks) {
  std::int32_t world = 0;
  for (const GlobalRank rank : ranks.members()) world = std::max(world, rank.value + 1);
  return world;
}

}  // namespace

Holders holders_of(const sim::JobConfig& config) {
  Holders main_copies;
  Holders others;
  const Group job_ranks = sim::job_members(sim::modules_of(config));
  for (const GlobalRank rank : job_ranks.members()) {
    SilentFabric fabric(rank, world_of(job_ranks));
    sim::TrainingJob job(config, fabric);
    for (const auto& leaf : job.model_space().tensors) {
      auto& holders = (leaf.replica == 0 ? main_copies : others)[leaf.key];
      for (const auto& piece : leaf.pieces) holders.push_back({piece.box, rank});
    }
  }
  for (auto& [key, holders] : others) {
    auto& all = main_copies[key];
    all.insert(all.end(), holders.begin(), holders.end());
  }
  return main_copies;
}

std::map<std::string, Value> objects_of(const sim::JobConfig& config, std::set<std::string> keys) {
  std::map<std::string, Value> found;
  const Group job_ranks = sim::job_members(sim::modules_of(config));
  for (const GlobalRank rank : job_ranks.members()) {
    if (keys.empty()) break;
    SilentFabric fabric(rank, world_of(job_ranks));
    sim::TrainingJob job(config, fabric);
    for (const auto& leaf : job.live_state().objects) {
      const std::string key = stored_key(leaf);
      if (keys.erase(key) > 0) found[key] = leaf.value;
    }
  }
  return found;
}

}  // namespace reprise::driver

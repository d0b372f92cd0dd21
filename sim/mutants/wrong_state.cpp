#include "sim/mutants/wrong_state.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

constexpr std::string_view kMasters = "optimizer.state.fp32_param.";
constexpr std::string_view kFirstMoments = "optimizer.state.exp_avg.";
constexpr std::string_view kSecondMoments = "optimizer.state.exp_avg_sq.";

StateDict without_tensors(StateDict state, std::string_view prefix) {
  std::erase_if(state.tensors,
                [prefix](const TensorLeaf& leaf) { return leaf.key.starts_with(prefix); });
  return state;
}

StateDict without_masters(StateDict state) { return without_tensors(std::move(state), kMasters); }
StateDict without_first_moments(StateDict state) {
  return without_tensors(std::move(state), kFirstMoments);
}
StateDict without_second_moments(StateDict state) {
  return without_tensors(std::move(state), kSecondMoments);
}
StateDict without_moments(StateDict state) {
  return without_second_moments(without_first_moments(std::move(state)));
}

Value* entry(Value* value, std::string_view key) {
  auto* dict = value == nullptr ? nullptr : value->as<Dict>();
  if (dict == nullptr) return nullptr;
  for (auto& [name, found] : *dict) {
    if (name == Value(std::string(key))) return &found;
  }
  return nullptr;
}

StateDict without_steps(StateDict state) {
  Value* groups = entry(entry(entry(&state.common, "optimizer"), "optimizer"), "param_groups");
  auto* list = groups == nullptr ? nullptr : groups->as<List>();
  if (list == nullptr) return state;
  for (auto& group : *list) {
    if (auto* settings = group.as<Dict>()) {
      std::erase_if(*settings, [](const auto& setting) { return setting.first == Value("step"); });
    }
  }
  return state;
}

StateDict without_optimizer(StateDict state) {
  return without_steps(without_moments(without_masters(std::move(state))));
}

void forget(Policies& policies, StateDict (*rest)(StateDict)) {
  policies.job.saved = rest;
  policies.job.requested = rest;
}

std::vector<RefreshStep> no_refresh(const Loaded& loaded) {
  auto steps = refresh_protocol(loaded);
  std::erase_if(steps, [](const RefreshStep& step) { return step.name != "check_masters"; });
  return steps;
}

std::vector<RefreshStep> refresh_without_gather(const Loaded& loaded) {
  auto steps = refresh_protocol(loaded);
  std::erase_if(steps, [](const RefreshStep& step) { return step.name == "gather"; });
  return steps;
}

/// The replica id as if the axis had one coordinate.
std::int32_t replica_without(const Placement& placement, const Mesh& mesh, GroupRank member,
                             std::initializer_list<std::string_view> axes) {
  std::vector<std::int32_t> coordinates;
  for (AxisIndex a = 0; a < mesh.axes().size(); ++a) {
    const bool dropped = std::find(axes.begin(), axes.end(), mesh.axes()[a].name) != axes.end();
    coordinates.push_back(dropped ? 0 : mesh.coordinate(member, a));
  }
  return placement.replica(mesh, mesh.member_at(coordinates));
}

std::int32_t replica_without_tp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, {"tp", "etp"});
}
std::int32_t replica_without_dp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member,
                         {"dp_shard", "dp_replicate", "edp_shard", "edp_replicate"});
}

}  // namespace

void lazy_state_template(Policies& policies) { policies.job.requested = without_moments; }

void forget_masters(Policies& policies) { forget(policies, without_masters); }
void forget_first_moments(Policies& policies) { forget(policies, without_first_moments); }
void forget_second_moments(Policies& policies) { forget(policies, without_second_moments); }
void forget_steps(Policies& policies) { forget(policies, without_steps); }
void forget_optimizer(Policies& policies) { forget(policies, without_optimizer); }

void skip_refresh(Policies& policies) { policies.job.refresh = no_refresh; }
void gather_nothing(Policies& policies) { policies.job.refresh = refresh_without_gather; }

void drop_tp_from_replica(Policies& policies) { policies.job.replica = replica_without_tp; }
void drop_dp_from_replica(Policies& policies) { policies.job.replica = replica_without_dp; }

}  // namespace reprise::sim

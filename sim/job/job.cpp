#include "sim/job/job.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "core/engine/agreement.hpp"

namespace reprise::sim {
namespace {

constexpr std::string_view kMasterPrefix = "optimizer.state.fp32_param.";
constexpr std::string_view kExpAvgPrefix = "optimizer.state.exp_avg.";
constexpr std::string_view kExpAvgSqPrefix = "optimizer.state.exp_avg_sq.";

std::string joined(std::string_view prefix, const std::string& key) {
  return std::string(prefix) + key;
}

void check_supported(const JobConfig& config) {
  check(config.layout);
  if (config.layout.pp > 1 || config.layout.ep > 1) {
    throw Error(Code::kUnsupported, "model " + config.model +
                                        " has neither pipeline stages nor experts: use pp 1 and "
                                        "ep 1, not " +
                                        to_string(config.layout));
  }
  if (config.optimizer_sharding != "fully_reshardable") {
    throw Error(Code::kUnsupported, "optimizer sharding '" + config.optimizer_sharding +
                                        "'; this job has fully_reshardable");
  }
}

/// Where the random states stand in their grid (pp, tp).
const Placement& rng_placement() {
  static const Placement placement({{"pp", 0}, {"tp", 1}});
  return placement;
}

template <class T>
std::byte* data_of(std::vector<T>& buffer) {
  return reinterpret_cast<std::byte*>(buffer.data());
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const StepRecord& record) {
  return out << "step " << record.step << " loss " << record.loss << " lr " << record.lr
             << " loss_scale " << record.loss_scale << (record.overflow ? " overflow" : "");
}

TrainingJob::TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy)
    : config_(std::move(config)), policy_(policy), rank_(fabric.rank()) {
  check_supported(config_);
  if (fabric.world_size() != config_.layout.world_size()) {
    throw Error(Code::kLayoutMismatch, "layout " + to_string(config_.layout) + " is for " +
                                           std::to_string(config_.layout.world_size()) +
                                           " ranks and there are " +
                                           std::to_string(fabric.world_size()));
  }
  mesh_ = std::make_shared<const Mesh>(dense_mesh(config_.layout));
  member_ = {rank_.value};
  world_ = fabric.communicator(mesh_->members());
  dp_ = fabric.communicator(mesh_->group_along(member_, "dp"));
  const ModelSpec model = model_named(config_.model);
  for (const auto& spec : model.parameters) {
    parameters_.push_back(place(spec, *mesh_, member_, policy_.slice));
    initialise(parameters_.back(), config_.seed);
  }
  progress_ = initial_progress(config_.seed, config_.schedule);
  rng_ = HostRng::fresh(config_.seed, mesh_->coordinate(member_, "pp"),
                        mesh_->coordinate(member_, "tp"));
}

StepRecord TrainingJob::step() {
  std::int64_t mine = 0;
  for (const auto& parameter : parameters_) mine += local_loss(parameter, progress_);
  const std::int64_t loss = world_->all_reduce(Reduce::kSum, std::span(&mine, 1)).front();
  const bool overflow = progress_.loss_scale.overflows();
  StepRecord record{.loss = loss,
                    .lr = progress_.groups.front().lr,
                    .loss_scale = progress_.loss_scale.scale,
                    .overflow = overflow};
  if (!overflow) {
    for (auto& parameter : parameters_) {
      update(parameter, progress_, loss);
      round_own(parameter);
    }
    gather_weights(parameters_, *dp_);
  }
  rng_.advance();
  progress_.after_step(overflow);
  record.step = iteration();
  return record;
}

// --- leaves -------------------------------------------------------------------------------------

TensorLeaf TrainingJob::leaf(std::string key, const LocalParameter& parameter) const {
  const Placement& placement = parameter.own_placement;
  TensorLeaf leaf{.key = std::move(key), .shape = parameter.spec.shape};
  if (!parameter.own_box.empty()) leaf.pieces.push_back(contiguous_piece(parameter.own_box));
  leaf.replica = policy_.replica(placement, *mesh_, member_);
  leaf.placed = Placed{mesh_, placement};
  return leaf;
}

TensorLeaf TrainingJob::weight_leaf(LocalParameter& parameter) const {
  const Placement& placement = parameter.spec.placement;
  TensorLeaf leaf{.key = parameter.spec.key, .dtype = DType::kBFloat16};
  leaf.shape = parameter.spec.shape;
  if (!parameter.weight_box.empty()) leaf.pieces.push_back(contiguous_piece(parameter.weight_box));
  leaf.data = data_of(parameter.weight);
  leaf.replica = policy_.replica(placement, *mesh_, member_);
  leaf.placed = Placed{mesh_, placement};
  return leaf;
}

TensorLeaf TrainingJob::stored_leaf(LocalParameter& parameter) const {
  TensorLeaf stored = leaf(parameter.spec.key, parameter);
  stored.dtype = DType::kBFloat16;
  stored.data = data_of(parameter.stored);
  return stored;
}

void TrainingJob::add_optimizer_leaves(StateDict& state, LocalParameter& parameter) const {
  const auto add = [&](std::string_view prefix, std::vector<float>& buffer) {
    state.tensors.push_back(leaf(joined(prefix, parameter.spec.key), parameter));
    state.tensors.back().data = data_of(buffer);
  };
  add(kMasterPrefix, parameter.master);
  add(kExpAvgPrefix, parameter.exp_avg);
  add(kExpAvgSqPrefix, parameter.exp_avg_sq);
}

ObjectLeaf TrainingJob::rng_leaf() const {
  return {.key = std::string(kRngKey),
          .grid = {config_.layout.pp, config_.layout.tp},
          .coordinate = {mesh_->coordinate(member_, "pp"), mesh_->coordinate(member_, "tp")},
          .replica = policy_.replica(rng_placement(), *mesh_, member_),
          .value = encode(rng_)};
}

Value TrainingJob::common() const {
  return encode(CommonState{.progress = progress_,
                            .model = config_.model,
                            .layout = config_.layout,
                            .optimizer_sharding = config_.optimizer_sharding,
                            .identity = {config_.run, parent_step_, config_.engine}});
}

StateDict TrainingJob::state() { return policy_.saved(leaves()); }

StateDict TrainingJob::live_state() {
  const JobPolicy policy = std::exchange(policy_, JobPolicy{});
  StateDict state = leaves();
  policy_ = policy;
  return state;
}

StateDict TrainingJob::leaves() {
  StateDict state;
  for (auto& parameter : parameters_) state.tensors.push_back(weight_leaf(parameter));
  for (auto& parameter : parameters_) add_optimizer_leaves(state, parameter);
  state.objects.push_back(rng_leaf());
  state.common = common();
  return state;
}

LoadRequest TrainingJob::load_request(const Value* stored_common) {
  LoadRequest request;
  for (auto& parameter : parameters_) request.wanted.tensors.push_back(stored_leaf(parameter));
  for (auto& parameter : parameters_) add_optimizer_leaves(request.wanted, parameter);
  const Layout stored =
      stored_common == nullptr ? config_.layout : decode_common(*stored_common).layout;
  if (stored.tp == config_.layout.tp && stored.pp == config_.layout.pp) {
    request.wanted.objects.push_back(rng_leaf());
  } else {
    request.excused.emplace_back(kRngKey);
    request.notes.push_back("the random states are of " + to_string(stored) + " and this job is " +
                            to_string(config_.layout) + ": they start anew");
  }
  request.wanted = policy_.requested(std::move(request.wanted));
  return request;
}

// --- taking -------------------------------------------------------------------------------------

void TrainingJob::take_values(const StateDict& loaded) {
  const CommonState common = decode_common(loaded.common);
  if (common.identity.run != config_.run || common.model != config_.model) {
    throw Error(Code::kForeignCheckpoint, "the checkpoint is of run '" + common.identity.run +
                                              "', model " + common.model + "; this job is run '" +
                                              config_.run + "', model " + config_.model);
  }
  if (common.optimizer_sharding != config_.optimizer_sharding) {
    throw Error(Code::kUnsupported, "the checkpoint's optimizer state is sharded '" +
                                        common.optimizer_sharding + "'; this job reads " +
                                        config_.optimizer_sharding);
  }
  HostRng rng = HostRng::fresh(common.progress.seed, mesh_->coordinate(member_, "pp"),
                               mesh_->coordinate(member_, "tp"));
  for (const auto& object : loaded.objects) {
    if (object.key == kRngKey) rng = decode_rng(object.value);
  }
  progress_ = common.progress;
  parent_step_ = common.progress.iteration;
  rng_ = rng;
}

void TrainingJob::take(StateDict& loaded) {
  agree_on(*world_, [&] {
    take_values(loaded);
    return Bytes{};
  });
  const Loaded sources{parameters_, *dp_, *world_};
  for (const auto& step : policy_.refresh(sources)) step.run();
}

}  // namespace reprise::sim

#include "sim/job/parameter.hpp"

#include <cmath>
#include <cstring>

namespace reprise::sim {
namespace {

/// Calls visit(local, global): row-major positions in the box and in the whole tensor.
template <class Visit>
void for_each_element(const Box& box, const Dims& shape, const Visit& visit) {
  const std::int64_t elements = box.elements();
  const std::int64_t run = box.rank() == 0 ? 1 : box.extent[box.rank() - 1];
  for (std::int64_t local = 0; local < elements; local += run) {
    Dims at = index_at(local, box.extent);
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += box.offset[d];
    const std::int64_t global = linear_index(at, shape);
    for (std::int64_t i = 0; i < run; ++i) visit(static_cast<std::size_t>(local + i), global + i);
  }
}

/// Where the elements of `box`, whole rows of the weight box, begin in the compute copy.
std::size_t start_of(const LocalParameter& parameter, const Box& box) {
  if (box.rank() == 0 || box.empty()) return 0;
  Dims at = Dims::filled(box.rank(), 0);
  at[0] = box.offset[0] - parameter.weight_box.offset[0];
  return static_cast<std::size_t>(linear_index(at, parameter.weight_box.extent));
}

std::size_t count_of(const Box& box) { return static_cast<std::size_t>(box.elements()); }

/// The part of an update that is the same for all elements of a parameter.
struct Adam {
  float lr, weight_decay, beta1, beta2, eps, correction1, correction2;

  explicit Adam(const GroupSettings& group)
      : lr(static_cast<float>(group.lr)),
        weight_decay(static_cast<float>(group.weight_decay)),
        beta1(static_cast<float>(group.beta1)),
        beta2(static_cast<float>(group.beta2)),
        eps(static_cast<float>(group.eps)),
        correction1(static_cast<float>(1 - power(group.beta1, group.step + 1))),
        correction2(static_cast<float>(1 - power(group.beta2, group.step + 1))) {}

  void apply(float& master, float& m, float& v, float g) const {
    m = beta1 * m + (1.0F - beta1) * g;
    v = beta2 * v + (1.0F - beta2) * (g * g);
    const float direction = (m / correction1) / (std::sqrt(v / correction2) + eps);
    master = master - lr * (direction + weight_decay * master);
  }
};

}  // namespace

LocalParameter place(const ParameterSpec& spec, const Mesh& mesh, GroupRank member,
                     ChunkRule slice) {
  LocalParameter parameter{.spec = spec, .own_placement = optimizer_placement(spec)};
  parameter.weight_box = spec.placement.box(spec.shape, mesh, member, slice);
  parameter.own_box = parameter.own_placement.box(spec.shape, mesh, member, slice);
  parameter.replica = spec.placement.replica(mesh, member);
  parameter.replicas = spec.placement.replicas(mesh);
  const Group dp = mesh.group_along(member, "dp");
  for (const auto rank : dp.members()) {
    const auto peer = mesh.members().rank_of(rank);
    CHECK(peer.has_value(), rank);
    parameter.dp_boxes.push_back(parameter.own_placement.box(spec.shape, mesh, *peer, slice));
  }
  const std::size_t own = count_of(parameter.own_box);
  parameter.weight.resize(count_of(parameter.weight_box));
  parameter.stored.resize(own);
  parameter.master.resize(own);
  parameter.exp_avg.resize(own);
  parameter.exp_avg_sq.resize(own);
  return parameter;
}

void initialise(LocalParameter& parameter, std::uint64_t seed) {
  const ParameterSpec& spec = parameter.spec;
  const Stream stream = parameter_stream(seed, spec.key);
  for_each_element(parameter.own_box, spec.shape, [&](std::size_t local, std::int64_t global) {
    parameter.master[local] = initial_value(stream, global, spec.norm);
  });
  for_each_element(parameter.weight_box, spec.shape, [&](std::size_t local, std::int64_t global) {
    parameter.weight[local] = to_bf16(initial_value(stream, global, spec.norm));
  });
}

std::int64_t local_loss(const LocalParameter& parameter, const Progress& progress) {
  const Batch batch{progress.iteration, progress.consumed_samples, 0};
  const Stream targets = batch.targets(parameter_stream(progress.seed, parameter.spec.key));
  std::int64_t sum = 0;
  for_each_element(parameter.weight_box, parameter.spec.shape,
                   [&](std::size_t local, std::int64_t global) {
                     const std::int64_t turn = (global + progress.iteration) % parameter.replicas;
                     if (turn != parameter.replica) return;
                     sum += loss_of(targets, global, from_bf16(parameter.weight[local]));
                   });
  return sum;
}

void update(LocalParameter& parameter, const Progress& progress, std::int64_t loss) {
  const Batch batch{progress.iteration, progress.consumed_samples, loss};
  const Stream gradients = batch.gradients(parameter_stream(progress.seed, parameter.spec.key));
  const Adam adam(progress.groups[static_cast<std::size_t>(parameter.spec.group)]);
  const std::size_t start = start_of(parameter, parameter.own_box);
  for_each_element(parameter.own_box, parameter.spec.shape,
                   [&](std::size_t local, std::int64_t global) {
                     const float weight = from_bf16(parameter.weight[start + local]);
                     const float g = gradient(gradients, global, weight, progress.loss_scale.scale);
                     adam.apply(parameter.master[local], parameter.exp_avg[local],
                                parameter.exp_avg_sq[local], g);
                   });
}

void round_own(LocalParameter& parameter) {
  const std::size_t start = start_of(parameter, parameter.own_box);
  for (std::size_t i = 0; i < parameter.master.size(); ++i) {
    parameter.weight[start + i] = to_bf16(parameter.master[i]);
  }
}

void install(LocalParameter& parameter, const Box& box, std::span<const std::uint16_t> share) {
  CHECK(share.size() == count_of(box), share.size(), box);
  if (share.empty()) return;
  std::memcpy(parameter.weight.data() + start_of(parameter, box), share.data(), share.size_bytes());
}

void gather_weights(std::span<LocalParameter> parameters, Communicator& dp) {
  Bytes mine;
  for (const auto& parameter : parameters) {
    const std::span<const std::uint16_t> weight(parameter.weight);
    const auto own =
        weight.subspan(start_of(parameter, parameter.own_box), parameter.stored.size());
    append(mine, std::as_bytes(own));
  }
  const auto shares = dp.all_gather(mine);
  for (std::size_t r = 0; r < shares.size(); ++r) {
    std::size_t at = 0;
    for (auto& parameter : parameters) {
      const Box& box = parameter.dp_boxes[r];
      std::vector<std::uint16_t> share(count_of(box));
      const std::size_t bytes = share.size() * sizeof(std::uint16_t);
      CHECK(at + bytes <= shares[r].size(), at, bytes, shares[r].size());
      if (bytes > 0) std::memcpy(share.data(), shares[r].data() + at, bytes);
      install(parameter, box, share);
      at += bytes;
    }
    CHECK(at == shares[r].size(), at, shares[r].size());
  }
}

}  // namespace reprise::sim
